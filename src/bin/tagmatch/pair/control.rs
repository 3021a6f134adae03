//! The line between the two halves: a line of JSON for each thing that is said, and a thread that listens.
//!
//! ```text
//!   measuring thread ──▶ socket           socket ──▶ listening thread ──▶ measuring thread
//!                                                        │ the other half ended, or nothing gets on:
//!                                                        └─▶ STOPPED, which every loop looks at
//! ```
//!
//! A loop that waits for a message asks [`stopped`] now and then, so that it ends and closes what it opened. One that
//! does not come back from a library is ended with the process, some seconds later.

use super::plan::Line;
use super::system;
use crate::output::complain;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What carries the lines.
#[derive(Debug)]
pub(super) enum Socket {
    /// Between a process and the other half that it started.
    Near(UnixStream),
    /// Between two hosts.
    Far(TcpStream),
}

impl Socket {
    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Near(socket) => socket.try_clone().map(Self::Near),
            Self::Far(socket) => socket.try_clone().map(Self::Far),
        }
    }

    fn set_patience(&self) -> io::Result<()> {
        match self {
            Self::Near(socket) => socket.set_read_timeout(Some(TICK)),
            Self::Far(socket) => socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_nodelay(true)),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Near(socket) => socket.read(into),
            Self::Far(socket) => socket.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Near(socket) => socket.write(bytes),
            Self::Far(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// This half's end of the line.
#[derive(Debug)]
pub(super) struct Control {
    socket: Socket,
    heard: Receiver<Line>,
    shared: Arc<Shared>,
}

/// What the measuring and the listening thread share.
#[derive(Debug)]
struct Shared {
    begin: Instant,
    /// Milliseconds since `begin` at which what is going on began, and 1; 0: nothing is.
    since: AtomicU64,
    /// How long anything may take.
    patience: Duration,
    /// Why it is over.
    why: Mutex<Option<String>>,
    /// It is known.
    known: Condvar,
    /// Nobody is told of anything any more: this half has said its last word.
    is_over: AtomicBool,
    /// It has.
    over: Condvar,
    /// The other half, if this process started it.
    child: Mutex<Option<Child>>,
}

/// Whether loops are to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether what goes on is to end.
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

impl Control {
    /// Over this socket; a child is the other half. Nothing may take longer than `patience`.
    pub(super) fn new(socket: Socket, child: Option<Child>, patience: Duration) -> io::Result<Self> {
        socket.set_patience()?;
        let ear = socket.try_clone()?;
        let (tell, heard) = channel();
        let shared = Arc::new(Shared {
            begin: Instant::now(),
            since: AtomicU64::new(0),
            patience,
            why: Mutex::new(None),
            known: Condvar::new(),
            is_over: AtomicBool::new(false),
            over: Condvar::new(),
            child: Mutex::new(child),
        });
        let listening = Arc::clone(&shared);
        std::thread::Builder::new().name("other half".into()).spawn(move || listening.listen(ear, tell))?;
        Ok(Self { socket, heard, shared })
    }

    /// Say something.
    pub(super) fn say(&mut self, line: &Line) -> Result<(), String> {
        let mut text = serde_json::to_string(line).map_err(|error| error.to_string())?;
        text.push('\n');
        self.socket.write_all(text.as_bytes()).map_err(|error| self.why_soon(&error.to_string()))
    }

    /// What the other half says next.
    pub(super) fn hear(&self) -> Result<Line, String> {
        match self.heard.recv() {
            Ok(line) => Ok(line),
            Err(_) => Err(self.why(GONE)),
        }
    }

    /// Something begins that is to end in time.
    pub(super) fn begin(&self) {
        let now = u64::try_from(self.shared.begin.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.shared.since.store(now + 1, Ordering::Relaxed);
    }

    /// It has ended.
    pub(super) fn end(&self) {
        self.shared.since.store(0, Ordering::Relaxed);
    }

    /// Nothing that happens from now on is worth a word.
    pub(super) fn over(&self) {
        let _known = self.shared.why.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.over.notify_all();
    }

    /// Why it is over, if that is known; else this.
    pub(super) fn why(&self, otherwise: &str) -> String {
        let why = self.shared.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone().unwrap_or_else(|| otherwise.to_owned())
    }

    /// The same of something that failed, which may be only what comes of the other half's end.
    pub(super) fn why_soon(&self, otherwise: &str) -> String {
        let why = self.shared.why.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.shared.known.wait_timeout_while(why, SOON, |why| why.is_none());
        let (why, _) = wait.unwrap_or_else(PoisonError::into_inner);
        why.clone().unwrap_or_else(|| otherwise.to_owned())
    }

    /// Wait for the other half to end, if it is a child.
    pub(super) fn wait_for_child(&self) {
        self.over();
        if let Some(child) = &mut *self.shared.child.lock().unwrap_or_else(PoisonError::into_inner) {
            // It ends when it was told so, or when this line does.
            let _ = child.wait();
        }
    }
}

impl Shared {
    fn listen(&self, ear: Socket, tell: Sender<Line>) {
        let mut ear = BufReader::new(ear).take(0);
        let mut text = Vec::new();
        let why = loop {
            ear.set_limit((LINE_MAX - text.len()) as u64);
            match ear.read_until(b'\n', &mut text) {
                Ok(0) if text.len() >= LINE_MAX => break "the other half says too much".to_owned(),
                Ok(0) => break self.how_it_ended(),
                Ok(_) if text.ends_with(b"\n") => match serde_json::from_slice(&text) {
                    // Whatever goes on here waits for the other half in vain.
                    Ok(Line::Failed { why }) => break why,
                    Ok(line) => match tell.send(line) {
                        Ok(()) => text.clear(),
                        Err(_) => return,
                    },
                    Err(error) => break format!("the other half says what is not understood: {error}"),
                },
                Ok(_) => {}
                Err(error) if is_patience(&error) => {
                    if let Some(why) = self.takes_too_long() {
                        break why;
                    }
                }
                // Who is killed with something unread resets the connection.
                Err(_) => break self.how_it_ended(),
            }
        };
        self.stop(why, tell);
    }

    /// It is over: first as an error of whatever goes on, then, if that does not end, with the process.
    fn stop(&self, why: String, tell: Sender<Line>) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
        self.known.notify_all();
        STOPPED.store(true, Ordering::Relaxed);
        // Who waits for a line is told too.
        drop(tell);
        let known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        let is_not_over = |_: &mut Option<String>| !self.is_over.load(Ordering::Relaxed);
        let wait = self.over.wait_timeout_while(known, GRACE, is_not_over);
        let (known, waited) = wait.unwrap_or_else(PoisonError::into_inner);
        drop(known);
        if waited.timed_out() {
            complain(why);
            system::exit(2);
        }
    }

    fn takes_too_long(&self) -> Option<String> {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        let spent = self.begin.elapsed().saturating_sub(Duration::from_millis(since));
        (spent > self.patience)
            .then(|| format!("nothing came to an end within {} s (--timeout)", self.patience.as_secs()))
    }

    fn how_it_ended(&self) -> String {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        match child.as_mut().map(Child::wait) {
            Some(Ok(status)) => format!("the other half ended with {status}"),
            Some(Err(error)) => format!("{GONE}: {error}"),
            None => GONE.into(),
        }
    }
}

/// Nothing was said for a while.
fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// How often it is looked whether something takes too long.
const TICK: Duration = Duration::from_millis(250);
/// How long a loop may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// How long it takes at most to hear of the other half's end.
const SOON: Duration = Duration::from_secs(1);
/// The longest line.
const LINE_MAX: usize = 1 << 20;
const GONE: &str = "the other half is gone";
