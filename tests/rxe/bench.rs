//! What the tests of `tagmatch rxe` share: directories of their own, the command, and programs that look like others.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tagmatch-test-{}-{number:03}", std::process::id()));
        fs::create_dir(&path).unwrap();
        // Somebody else runs commands here, too.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    /// A file that is a program.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let file = self.0.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Names of this folder for programs that are there.
    pub(crate) fn link(&self, names: &[&str]) {
        for name in names {
            let found = ["/usr/bin", "/bin", "/usr/sbin"].iter().map(|folder| Path::new(folder).join(name));
            let found = found.into_iter().find(|file| file.exists());
            symlink(found.unwrap_or_else(|| panic!("there is no {name}")), self.0.join(name)).unwrap();
        }
    }

    /// A directory in it.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `tagmatch rxe` with these arguments.
pub(crate) fn rxe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    command.arg("rxe").args(arguments).stdin(Stdio::null());
    command
}

/// Where the kernel of these tests is kept, made if it is not there.
pub(crate) fn cache() -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rxe");
    let output = rxe(&["--build", "--backend", "qemu", "--install", "--cache"]).arg(&cache).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    cache
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A place where everything that `tagmatch rxe` uses only looks like it: a machine is `script`, which has the share in
/// $share.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        let folder = Folder::new();
        let share = r#"for word; do case $word in local,id=share,*) share=${word##*path=} ;; esac; done; cd "$share""#;
        folder.program("qemu-system-x86_64", &format!("{share}\n{script}"));
        folder.program("apt-cache", "exit 1");
        folder.folder("temporary");
        let kernel = folder.folder("cache/stock-1");
        fs::create_dir(kernel.join("modules")).unwrap();
        fs::write(kernel.join("name"), "a kernel").unwrap();
        fs::write(kernel.join("kernel"), "").unwrap();
        Self { folder }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = rxe(&["--backend", "qemu", "--cache"]);
        let path = std::env::var("PATH").unwrap();
        command
            .arg(self.folder.0.join("cache"))
            .args(arguments)
            .env("TMPDIR", self.folder.0.join("temporary"))
            .env("PATH", format!("{}:{path}", self.folder.0.display()));
        command
    }

    /// Started, and so far that the machine has said `begun`. Signals mean to it what they mean by default, whatever they do to
    /// these tests: under `nohup` a hang-up is nothing.
    pub(crate) fn begun(&self, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
        let run = self.command(arguments);
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(run.get_program()).args(run.get_args());
        command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "begun\n");
        (child, out)
    }

    /// What is in the directory of temporary files.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.0.join("temporary")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Processes whose arguments or directories are of this place.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mine = self.folder.0.display().to_string();
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let about = entries.filter_map(|entry| {
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            (words.contains(&mine) || folder.starts_with(&self.folder.0)).then_some(words)
        });
        about.collect()
    }
}
