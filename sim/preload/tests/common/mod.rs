//! Programs of others on one simulated fabric: a run directory, the library under them, a time limit over each.

#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[path = "../../../../src/device/tests/ports.rs"]
mod ports;

pub(crate) use ports::lasting_port;

/// One fabric, gone when dropped.
pub(crate) struct Fabric {
    run: PathBuf,
    options: String,
    environment: Vec<(String, String)>,
    /// Most of these programs spin: one fabric at a time is done sooner than several at once.
    _turn: MutexGuard<'static, ()>,
}

impl Fabric {
    /// A fabric with the device's defaults.
    pub(crate) fn new(name: &str) -> Self {
        Self::with_options(name, "")
    }

    /// A fabric with options.
    pub(crate) fn with_options(name: &str, options: &str) -> Self {
        // In the temporary directory, since paths of sockets are short.
        let run = std::env::temp_dir().join(format!("tagmatch-hca-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&run);
        fs::create_dir_all(&run).unwrap_or_else(|error| panic!("{}: {error}", run.display()));
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self { run, options: options.into(), environment: Vec::new(), _turn: turn }
    }

    /// A variable of the programs' environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.into(), value.into()));
    }

    /// A program on this fabric, ended after a minute.
    pub(crate) fn program(&self, command: &[&str]) -> Command {
        let (program, _) = command.split_first().unwrap_or_else(|| panic!("no program"));
        assert!(is_there(program), "{program} is not installed: {PACKAGES}");
        let mut timed = Command::new("timeout");
        timed.args(["--kill-after=5", SECONDS]).args(command);
        timed.env("LD_PRELOAD", library()).env("SYSFS_PATH", self.run.join("sys"));
        timed.env("TAGMATCH_HCA_RUN", &self.run).env("TAGMATCH_HCA_OPTIONS", &self.options);
        timed.envs(self.environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        timed
    }

    /// Run a program alone: what it wrote, if it ended well.
    pub(crate) fn run(&self, command: &[&str]) -> String {
        let output = self.program(command).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        well(command, &output)
    }

    /// Run a server and a client that meet on a TCP port, given in the place of `PORT`: what both wrote.
    pub(crate) fn pair(&self, server: &[&str], client: &[&str]) -> (String, String) {
        let (waiting, client) = self.serve(server, client);
        let client: Vec<&str> = client.iter().map(String::as_str).collect();
        let output = self.program(&client).output().unwrap_or_else(|error| panic!("{client:?}: {error}"));
        let ended = waiting.wait_with_output().unwrap_or_else(|error| panic!("{server:?}: {error}"));
        let both = format!("client: {}\nserver: {}", text(&output), text(&ended));
        assert!(output.status.success() && ended.status.success(), "{client:?}\n{both}");
        (well(server, &ended), well(&client, &output))
    }

    /// Run a server and a client, kill the server once the client has written `begun`, and let the client find out:
    /// what it wrote.
    pub(crate) fn survivor(&self, server: &[&str], client: &[&str], begun: &str) -> String {
        let (mut doomed, client) = self.serve(server, client);
        // Line by line, so that it is seen what it has come to.
        let mut command = vec!["stdbuf", "-oL"];
        command.extend(client.iter().map(String::as_str));
        let mut survivor = self
            .program(&command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{client:?}: {error}"));
        let output = survivor.stdout.take().unwrap_or_else(|| panic!("no output"));
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let has_begun = lines.by_ref().any(|line| line.contains(begun));
        // `timeout` passes this on, but not a signal that cannot be caught.
        kill(doomed.id(), libc::SIGTERM);
        doomed.wait().unwrap_or_else(|error| panic!("{error}"));
        let said: Vec<String> = lines.collect();
        let ended = survivor.wait_with_output().unwrap_or_else(|error| panic!("{client:?}: {error}"));
        assert!(has_begun, "the client never began: {}", text(&ended));
        assert_ne!(ended.status.code(), Some(124), "the client waits for ever: {}", text(&ended));
        said.join("\n") + &text(&ended)
    }

    /// Start a server, and wait until it listens; the client's command has the port in its place.
    fn serve(&self, server: &[&str], client: &[&str]) -> (Child, Vec<String>) {
        let port = lasting_port();
        let with_port = |command: &[&str]| -> Vec<String> {
            let port = port.to_string();
            command.iter().map(|part| if *part == "PORT" { port.clone() } else { (*part).into() }).collect()
        };
        let (server, client) = (with_port(server), with_port(client));
        let server: Vec<&str> = server.iter().map(String::as_str).collect();
        let mut waiting = self
            .program(&server)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{server:?}: {error}"));
        wait_for_port(port, &mut waiting);
        (waiting, client)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.run);
    }
}

fn kill(process: u32, signal: i32) {
    // SAFETY: a child of ours that has not been waited for.
    unsafe { libc::kill(i32::try_from(process).unwrap_or_else(|error| panic!("{error}")), signal) };
}

/// The library beside this test.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("{error}"));
    let library = test.with_file_name("libtagmatch_hca.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Until somebody listens there, without connecting: these servers take the first connection for their client.
fn wait_for_port(port: u16, server: &mut Child) {
    let begin = Instant::now();
    let entry = format!(":{port:04X} ");
    loop {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
        let is_listening = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1).is_some_and(|local| format!("{local} ").ends_with(&entry))
                && fields.get(3) == Some(&"0A")
        };
        if tables.iter().flat_map(|table| table.lines()).any(is_listening) {
            return;
        }
        let has_ended = server.try_wait().is_ok_and(|status| status.is_some());
        if has_ended || begin.elapsed() > Duration::from_secs(60) {
            let _ = server.kill();
            let mut said = String::new();
            if let Some(output) = &mut server.stdout {
                let _ = std::io::Read::read_to_string(output, &mut said);
            }
            if let Some(output) = &mut server.stderr {
                let _ = std::io::Read::read_to_string(output, &mut said);
            }
            panic!("the server does not listen on {port}: {said}");
        }
        std::thread::yield_now();
    }
}

fn well(command: &[&str], output: &Output) -> String {
    assert!(output.status.success(), "{command:?}: {}", text(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

static TURN: Mutex<()> = Mutex::new(());
const PACKAGES: &str =
    "apt-get install ibverbs-utils ibverbs-providers perftest ucx-utils (or what they are called elsewhere)";
/// Time limit of one program. `timeout` answers 124 then.
const SECONDS: &str = "60";
