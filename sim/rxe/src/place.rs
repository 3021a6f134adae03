//! The directory of one run, and who cleans up after it.
//!
//! A small shell, the watcher, waits on a pipe that this process holds. When the pipe closes, for whatever reason, also
//! if this process was killed, the watcher kills the process groups that it was told of and removes the directory. There
//! is no other way of cleaning up, so that each run tries this one: a watcher that was killed has a successor at the end of
//! the run. What is left of a run that was killed together with its watcher is removed by the next run.

use crate::failure::Failure;
use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// A directory of this run's own; with its end, everything that belongs to the run is gone.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    watcher: Child,
    /// Told of process groups; closed at the end.
    pipe: Option<ChildStdin>,
    /// What it was told.
    groups: Vec<u32>,
    /// Locked as long as the run lasts.
    _alive: File,
}

impl RunDirectory {
    /// A new directory in that of temporary files.
    pub(crate) fn new() -> Result<Self, Failure> {
        let parent = std::path::absolute(env::temp_dir());
        let parent = parent.map_err(|error| Failure::file(&env::temp_dir(), error))?;
        remove_stale(&parent);
        Self::make(&parent).map_err(|error| Failure::file(&parent, error))
    }

    fn make(parent: &Path) -> io::Result<Self> {
        for number in 0..u32::MAX {
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // Locked before it has its name: whoever finds it free knows that the run is over.
                    let alive = File::create(path.join("new"))?;
                    alive.lock()?;
                    fs::rename(path.join("new"), path.join(ALIVE))?;
                    let mut watcher = watcher(&path)?;
                    let pipe = watcher.stdin.take();
                    return Ok(Self { path, watcher, pipe, groups: Vec::new(), _alive: alive });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Start a program in a process group of its own, which ends with this run, however this process ends.
    pub(crate) fn start(&mut self, command: &mut Command) -> io::Result<Child> {
        let mut child = command.process_group(0).spawn()?;
        let told = match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{}", child.id()).and_then(|()| pipe.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        self.groups.push(child.id());
        if let Err(error) = told {
            child.kill()?;
            child.wait()?;
            return Err(error);
        }
        Ok(child)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        self.pipe = None;
        if self.watcher.wait().is_ok_and(|ended| ended.success()) {
            return;
        }
        // It was killed. If its successor is as well, the next run does its work.
        let Ok(mut successor) = watcher(&self.path) else { return };
        if let Some(mut pipe) = successor.stdin.take() {
            for group in &self.groups {
                let _ = writeln!(pipe, "{group}");
            }
        }
        let _ = successor.wait();
    }
}

fn watcher(path: &Path) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", WATCHER, "tagmatch-rxe-watcher"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Signals of the terminal are not for it.
        .process_group(0)
        .spawn()
}

/// Remove the directories of runs that were killed together with their watchers.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let is_run = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_run && File::open(entry.path().join(ALIVE)).is_ok_and(|alive| alive.try_lock().is_ok()) {
            // Nobody is left who could be told of a failure; the next run tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

const PREFIX: &str = "tagmatch-rxe-run-";
const ALIVE: &str = "alive";
/// Its signals are those of nobody: it ends when the run has ended.
const WATCHER: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2
groups=
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -s KILL -- "-$group"; done
tries=0
while [ $tries -lt 200 ]; do
    alive=
    for group in $groups; do
        # Killed ones that nobody has waited for yet are there still, and do nothing any more.
        kill -s 0 -- "-$group" && read -r stat <"/proc/$group/stat" && [ "${stat##*) Z}" = "$stat" ] && alive=1
    done
    [ -n "$alive" ] || break
    tries=$((tries + 1))
    sleep 0.05
done
tries=0
until rm -rf -- "$1" || [ $tries -ge 20 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
"#;
