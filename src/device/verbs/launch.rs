//! A program that this process runs in its own place: it hears this process's signals, does not outlive it, and holds
//! a lock of this process's as long as it or whatever it starts runs.
//!
//! For `tagmatch hca -- PROGRAM`, whose run directory must stay while a program meets others there. It is here since
//! starting a process with a signal mask and an inherited descriptor is not to be had without unsafe code.
//! Not here: what the program's environment is.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::ptr;

use libc::{c_int, pid_t, siginfo_t, sigset_t};

/// Run a program to its end: how it ended.
///
/// The signals by which a process is told to end (TERM, HUP, INT, QUIT, USR1, USR2) are passed on to it meanwhile, but
/// for those that the terminal sends to both. If this process is killed, the program is sent TERM. `held` stays open in
/// the program and in what it starts, so that a lock of it is held until the last of them ends.
///
/// # Errors
/// It cannot be started: the error of the system.
pub fn run(command: &mut Command, held: &File) -> io::Result<ExitStatus> {
    let signals = Blocked::new()?;
    let children = Children::tell()?;
    let is_ignored = children.is_ignored();
    let (before, held, parent) = (signals.before, held.as_raw_fd(), std::process::id());
    let prepare = move || {
        // SAFETY: between fork and exec; this asks for a signal and touches no memory.
        checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) })?;
        // SAFETY: a question to the system.
        let is_orphan = u32::try_from(unsafe { libc::getppid() }) != Ok(parent);
        if is_orphan {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        inherit(held).or_else(|_| inherit_low(held))?;
        if is_ignored {
            act(&action(libc::SIG_IGN), None)?;
        }
        set_mask(&before)
    };
    // SAFETY: the closure makes system calls alone, and neither allocates nor locks.
    let mut child = unsafe { command.pre_exec(prepare) }.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        signals.wait_and_pass_on(&child)?;
    }
}

/// Keep a second descriptor of the file open in the program, where programs and shell scripts do not put their own.
fn inherit(held: c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, since the caller of `run` lends the file for as long as that lasts.
    checked(unsafe { libc::fcntl(held, libc::F_DUPFD, DESCRIPTOR_MIN) })
}

/// The same where so many descriptors are not allowed.
fn inherit_low(held: c_int) -> io::Result<()> {
    // SAFETY: as above.
    checked(unsafe { libc::fcntl(held, libc::F_DUPFD, 10) })
}

/// The system tells of children that end, until this is dropped. (Where SIGCHLD is ignored, which a program inherits from
/// who starts it, it does not, and nobody can wait for them: wait(2).)
struct Children {
    before: libc::sigaction,
}

impl Children {
    fn tell() -> io::Result<Self> {
        let mut before = action(libc::SIG_DFL);
        act(&action(libc::SIG_DFL), Some(&mut before))?;
        Ok(Self { before })
    }

    fn is_ignored(&self) -> bool {
        self.before.sa_sigaction == libc::SIG_IGN
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        // The action is one that the system gave out.
        let _ = act(&self.before, None);
    }
}

/// The action of a signal that is ignored, or does what it does by itself.
fn action(handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: zero is a value of every field: no flags, and an empty set.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler;
    action
}

/// Set what happens when a child ends; what happened before goes to `old`.
fn act(new: &libc::sigaction, old: Option<&mut libc::sigaction>) -> io::Result<()> {
    let old = old.map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: both actions live until this returns; the new one calls nothing, or is one that was set before.
    checked(unsafe { libc::sigaction(libc::SIGCHLD, ptr::from_ref(new), old) })
}

/// Signals that wait to be taken, until this is dropped.
struct Blocked {
    set: sigset_t,
    before: sigset_t,
}

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut set = empty();
        for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD]) {
            // SAFETY: the set is one, and the signal exists.
            checked(unsafe { libc::sigaddset(&raw mut set, signal) })?;
        }
        let mut before = empty();
        // SAFETY: both sets live until this returns.
        errno(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) })?;
        Ok(Self { set, before })
    }

    /// Take one signal. A child that ends is one.
    fn wait_and_pass_on(&self, child: &Child) -> io::Result<()> {
        // SAFETY: zero is a value of every field.
        let mut info: siginfo_t = unsafe { mem::zeroed() };
        // SAFETY: set and information live until this returns.
        let signal = unsafe { libc::sigwaitinfo(&raw const self.set, &raw mut info) };
        if signal < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        // The kernel sends those of the terminal, to the child as well; a process's have a code of 0 or less.
        if signal != libc::SIGCHLD && info.si_code <= 0 {
            let child = pid_t::try_from(child.id()).map_err(io::Error::other)?;
            // SAFETY: the child has not been waited for, so its number is no other's.
            checked(unsafe { libc::kill(child, signal) })?;
        }
        Ok(())
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // The set is one that the system gave out.
        let _ = set_mask(&self.before);
    }
}

fn empty() -> sigset_t {
    // SAFETY: zero is a value of every field.
    let mut set: sigset_t = unsafe { mem::zeroed() };
    // SAFETY: there is room for a set.
    unsafe { libc::sigemptyset(&raw mut set) };
    set
}

fn set_mask(set: &sigset_t) -> io::Result<()> {
    // SAFETY: the set lives until this returns.
    errno(unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(set), ptr::null_mut()) })
}

/// Of a call that says -1 and leaves errno.
fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Of a call that returns it.
fn errno(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// Scripts number theirs from 3, shells from 10.
const DESCRIPTOR_MIN: c_int = 200;
const PASSED_ON: [c_int; 6] =
    [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
