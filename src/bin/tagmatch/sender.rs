//! Senders of a replay in a process of their own: the hidden command `tagmatch sender`, and the replay's hold on it.
//!
//! One line asks and one line answers, through the process's standard input and output:
//!
//! | asked | answered |
//! |---|---|
//! | `open DEVICE CONTEXTS SENDERS EAGER-LIMIT LENGTH-MAX` (device `-`: the first) | `ok` |
//! | `prepare SENDER` | `address HEX` |
//! | `connect SENDER HEX` | `ok` |
//! | `send SENDER MESSAGE TAG LENGTH` | `ok`, or `full` |
//! | `outstanding` | `outstanding N` |
//! | `reset` | `ok` |
//!
//! or `error TEXT` to any of them. Messages themselves go through the device.

use crate::End;
use crate::output::complain;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tagmatch::device::verbs::address::ConnectInfo;
use tagmatch::ids::{PeerId, Tag};
use tagmatch::replay::Fault;
use tagmatch::replay::verbs::{Contexts, SenderSettings, Senders};
use tagmatch::traces::MessageNumber;

/// Senders in another process, which ends with this.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    /// Start it. `environment`: what it shall have in its environment beside this process's.
    pub(crate) fn start(settings: &SenderSettings, environment: &[(&str, String)]) -> Result<Self, Fault> {
        let failed = |error| Fault::new(format!("the sending process cannot be started: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("sender").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().map_err(failed)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Fault::new("the sending process has no standard input and output"));
        };
        let mut process = Self { child, to: Some(to), from: BufReader::new(from) };
        let SenderSettings { device, contexts, senders, eager_limit, length_max } = settings;
        let device = device.as_deref().unwrap_or("-");
        process.expect_ok(format_args!("open {device} {contexts} {senders} {eager_limit} {length_max}"))?;
        Ok(process)
    }

    fn ask(&mut self, question: impl Display) -> Result<String, Fault> {
        let gone = |error| Fault::new(format!("the sending process is gone: {error}"));
        let Some(to) = &mut self.to else { return Err(Fault::new("the sending process was ended")) };
        writeln!(to, "{question}").and_then(|()| to.flush()).map_err(gone)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(gone)?;
        match line.trim_end() {
            "" => Err(Fault::new("the sending process is gone")),
            answer => match answer.strip_prefix("error ") {
                Some(text) => Err(Fault::new(format!("the sending process: {text}"))),
                None => Ok(answer.to_owned()),
            },
        }
    }

    fn expect_ok(&mut self, question: impl Display) -> Result<(), Fault> {
        match self.ask(question)?.as_str() {
            "ok" => Ok(()),
            other => Err(Fault::new(format!("the sending process answered {other}"))),
        }
    }

    fn expect<T>(&mut self, question: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Fault> {
        let answer = self.ask(question)?;
        read(&answer).ok_or_else(|| Fault::new(format!("the sending process answered {answer}")))
    }
}

impl Senders for Process {
    fn prepare(&mut self, sender: PeerId) -> Result<ConnectInfo, Fault> {
        self.expect(&format!("prepare {}", sender.0), |answer| {
            ConnectInfo::decode(&from_hex(answer.strip_prefix("address ")?)?).ok()
        })
    }

    fn connect(&mut self, sender: PeerId, receiver: &ConnectInfo) -> Result<(), Fault> {
        self.expect_ok(format_args!("connect {} {}", sender.0, hex(&receiver.to_bytes())))
    }

    fn send(&mut self, sender: PeerId, message: MessageNumber, tag: Tag, length: u64) -> Result<bool, Fault> {
        let question = format!("send {} {} {} {length}", sender.0, message.0, tag.0);
        self.expect(&question, |answer| match answer {
            "ok" => Some(true),
            "full" => Some(false),
            _ => None,
        })
    }

    fn progress(&mut self) -> Result<bool, Fault> {
        // It looks after itself.
        Ok(false)
    }

    fn outstanding(&mut self) -> Result<u64, Fault> {
        self.expect("outstanding", |answer| answer.strip_prefix("outstanding ")?.parse().ok())
    }

    fn reset(&mut self) -> Result<(), Fault> {
        self.expect_ok("reset")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input is the end of it.
        self.to = None;
        let _ = self.child.wait();
    }
}

/// The process itself: answer until nobody asks any more.
pub(crate) fn run() -> End {
    let (to, questions) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    let mut contexts = None;
    loop {
        // Also without a question there is something to do: acknowledgements, reads, FINs.
        let question = match questions.recv_timeout(PAUSE) {
            Ok(question) => question,
            Err(RecvTimeoutError::Disconnected) => return End::AsExpected,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(Err(fault)) = contexts.as_mut().map(Contexts::progress) {
                    complain(fault);
                    return End::Unusable;
                }
                continue;
            }
        };
        let answer = answer(&question, &mut contexts).unwrap_or_else(|text| format!("error {text}"));
        let mut out = io::stdout().lock();
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return End::Unusable;
        }
    }
}

fn answer(question: &str, contexts: &mut Option<Contexts>) -> Result<String, String> {
    let text = |fault: Fault| fault.to_string();
    let words: Vec<&str> = question.split(' ').collect();
    if let ["open", device, rest @ ..] = words.as_slice() {
        *contexts = Some(Contexts::open(settings(device, rest)?).map_err(text)?);
        return Ok("ok".into());
    }
    let contexts = contexts.as_mut().ok_or("nothing is open")?;
    contexts.progress().map_err(text)?;
    match words.as_slice() {
        ["prepare", sender] => {
            let address = contexts.prepare(PeerId(number(sender)?)).map_err(text)?;
            Ok(format!("address {}", hex(&address.to_bytes())))
        }
        ["connect", sender, address] => {
            let bytes = from_hex(address).ok_or("no address")?;
            let address = ConnectInfo::decode(&bytes).map_err(|error| error.to_string())?;
            contexts.connect(PeerId(number(sender)?), &address).map_err(text)?;
            Ok("ok".into())
        }
        ["send", sender, message, tag, length] => {
            let (sender, message) = (PeerId(number(sender)?), MessageNumber(number(message)?));
            let sent = contexts.send(sender, message, Tag(number(tag)?), number(length)?).map_err(text)?;
            Ok(if sent { "ok" } else { "full" }.into())
        }
        ["outstanding"] => {
            contexts.progress().map_err(text)?;
            Ok(format!("outstanding {}", contexts.outstanding().map_err(text)?))
        }
        ["reset"] => contexts.reset().map(|()| "ok".into()).map_err(text),
        _ => Err(format!("unknown: {question}")),
    }
}

fn settings(device: &str, words: &[&str]) -> Result<SenderSettings, String> {
    let [contexts, senders, eager_limit, length_max] = words else {
        return Err("open wants five words".into());
    };
    Ok(SenderSettings {
        device: (device != "-").then(|| device.to_owned()),
        contexts: number(contexts)?,
        senders: number(senders)?,
        eager_limit: number(eager_limit)?,
        length_max: number(length_max)?,
    })
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("no number: {word}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// How long to wait for a question before looking after what is under way.
const PAUSE: Duration = Duration::from_micros(100);
