//! Host instructions of an offloaded receive through the real driver, counted by valgrind's callgrind: from post to
//! completion read, told apart by who spends them - engine and backend, libibverbs and libmlx5, the C library.
//!
//! The program runs itself under callgrind with the simulated card preloaded, which it moves on between the parts that
//! are counted: the card's work, and the sender's, are in no figure but the last. How much that last one is says
//! nothing about a card.
//!
//! `cargo bench -p tagmatch-hca --bench driver -- [--check | --record]`; needs valgrind, libibverbs and libmlx5.

#![allow(clippy::panic, reason = "a bench that cannot go on ends")]

#[path = "../../../benches/common/arguments.rs"]
#[allow(dead_code, reason = "shared: no number is taken here")]
mod arguments;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use arguments::Arguments;
use serde_json::{Value, json};
use tagmatch::device::Device;
use tagmatch::device::verbs::device::{HostMemory, Message, TagMatching, VerbsConfig};
use tagmatch::device::verbs::memory::RemoteAccess;
use tagmatch::device::verbs::{SimulatedHca, VerbsDevice};
use tagmatch::engine::{Config, End, Engine, Kind, Receive};
use tagmatch::ids::{DeviceId, Ignore, MessageToken, PeerId, Source, Tag};
use tagmatch::matching::Pattern;
use tagmatch::seam::{Add, Answer, Buffer, Event, EventSink, Placer};
use tagmatch::wire::AppContext;

fn main() -> ExitCode {
    let arguments = Arguments::of_process(&["--check", "--record", INSIDE], &[]);
    let has = |name: &str| arguments.has(name);
    if has(INSIDE) {
        inside();
        return ExitCode::SUCCESS;
    }
    if !has("--bench") {
        return ExitCode::SUCCESS;
    }
    let counted = count("counted_part").and_then(|host| report(&host, &count("round")?, &arguments));
    counted.unwrap_or_else(|why| {
        eprintln!("driver: {why}");
        ExitCode::from(2)
    })
}

fn report(host: &Figures, all: &Figures, arguments: &Arguments) -> Result<ExitCode, String> {
    let has = |name: &str| arguments.has(name);
    let of = |figures: &Figures, who: &str| figures.get(who).copied().unwrap_or(0.0);
    if of(host, CARD) > 0.0 || of(host, DRIVER) == 0.0 || of(host, ENGINE) == 0.0 {
        return Err(format!("the parts could not be told apart: {host:?}"));
    }
    if has("--record") {
        let round = |who: &&str| (who.to_string(), json!((of(host, who) * 10.0).round() / 10.0));
        let figures: serde_json::Map<String, Value> =
            [ENGINE, BACKEND, DRIVER, LIBC].iter().map(round).collect();
        let record = json!({
            "what": format!(
                "instructions per offloaded receive through libmlx5, {DEPTH} posted at a time and each handed down at once, \
                 buffers of {BUFFER} bytes, messages of {BYTES} bytes"
            ),
            "figures": figures,
            "the simulated card, sender's side included (a model)": of(all, CARD).round(),
            "tolerance": TOLERANCE,
            "goal for engine and backend": GOAL,
        });
        fs::write(file(), format!("{record:#}\n"))
            .map_err(|error| format!("{}: {error}", file().display()))?;
    }
    let text = fs::read_to_string(file()).map_err(|error| format!("{}: {error}", file().display()))?;
    let record: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    println!("instructions per offloaded receive, {DEPTH} posted at a time: now, recorded");
    let mut over = 0;
    for who in [ENGINE, BACKEND, DRIVER, LIBC, LOOP] {
        let recorded = record["figures"][who].as_f64();
        let told = recorded.map_or("-".into(), |recorded| format!("{recorded:.1}"));
        println!("{who:<32} {:>8.1} {told:>8}", of(host, who));
        let is_ours = who == ENGINE || who == BACKEND;
        let limit = recorded.unwrap_or(0.0) * (1.0 + TOLERANCE);
        over += u32::from(is_ours && of(host, who) > limit);
    }
    println!("{CARD:<32} {:>8.1}          (a model; sender's side included)", of(all, CARD));
    let ours = of(host, ENGINE) + of(host, BACKEND);
    let verdict = if ours <= GOAL { "met" } else { "missed" };
    println!("engine and backend {ours:.1}, goal {GOAL:.0}: {verdict}; {over} over what is recorded");
    Ok(if has("--check") && over > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../benches/record/driver-instructions.json")
}

/// Instructions per receive, by who spends them.
type Figures = BTreeMap<String, f64>;

/// Count what happens inside this function of the program.
fn count(function: &str) -> Result<Figures, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = program.with_file_name("libtagmatch_hca.so");
    if !library.exists() {
        return Err(format!("{} was not built", library.display()));
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let out = folder.join(format!("driver-{}-{function}.callgrind", std::process::id()));
    let run = folder.join(format!("driver-{}-{function}", std::process::id()));
    fs::create_dir_all(&run).map_err(|error| format!("{}: {error}", run.display()))?;
    let ended = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--separate-threads=no"])
        .arg(format!("--toggle-collect=*driver*{function}*"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(&program)
        .arg(INSIDE)
        .env("LD_PRELOAD", &library)
        .env("TAGMATCH_HCA_RUN", &run)
        .env("SYSFS_PATH", run.join("sys"))
        .env("TAGMATCH_HCA_OPTIONS", "tags=127,drive=steps")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind cannot be run ({error}); on Debian it is the package valgrind"))?;
    let _ = fs::remove_dir_all(&run);
    if !ended.status.success() {
        return Err(format!(
            "valgrind ended with {}:\n{}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        ));
    }
    let figures = read(&out, &program)?;
    let _ = fs::remove_file(&out);
    Ok(figures)
}

/// What each object file spent by itself (valgrind manual, "Callgrind Format Specification"), and of this program each
/// layer. What the compiler drew into the bench's loop is told from the loop's own, and of that the backend's from the
/// engine's, by its source file: what a layer uses of the standard library there counts as the engine's.
fn read(file: &Path, program: &Path) -> Result<Figures, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut names: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let (mut object, mut function, mut source, mut is_call) = ("", "", "", false);
    let mut figures = Figures::new();
    for line in text.lines() {
        if let Some((what, name)) = line.split_once("=(") {
            let (id, name) = name.split_once(") ").unwrap_or((name.trim_end_matches(')'), ""));
            let kind = match what {
                "ob" | "cob" => OBJECT,
                "fn" | "cfn" => FUNCTION,
                _ => SOURCE,
            };
            if !name.is_empty() {
                names.insert((kind, id), name);
            }
            match what {
                "ob" => object = id,
                "fn" => function = id,
                "fl" | "fi" | "fe" => source = id,
                _ => {}
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // Behind a call stands what it cost inside, which is counted where it was spent.
            if !std::mem::take(&mut is_call) {
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<f64>().ok()).unwrap_or(0.0);
                let name = |kind, id| names.get(&(kind, id)).copied().unwrap_or(id);
                let who = who(name(OBJECT, object), name(FUNCTION, function), name(SOURCE, source), program);
                *figures.entry(who.into()).or_default() += cost / f64::from(RECEIVES);
            }
        }
    }
    Ok(figures)
}

fn who(object: &str, function: &str, source: &str, program: &Path) -> &'static str {
    let name = Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or(object);
    if Path::new(object) == program {
        return if function.contains("device::verbs") || source.contains("src/device/verbs/") {
            BACKEND
        } else if function.contains("driver::") && source.ends_with("benches/driver.rs") {
            LOOP
        } else {
            ENGINE
        };
    }
    if name.contains("ibverbs") || name.contains("mlx5") {
        DRIVER
    } else if name.contains("tagmatch_hca") {
        CARD
    } else {
        LIBC
    }
}

/// Receiver and sender on one card, and rounds of receives.
fn inside() {
    let mut setting = Setting::new();
    for _ in 0..WARM_UP {
        driver_warm_up(&mut setting);
    }
    for _ in 0..RECEIVES / DEPTH {
        driver_round(&mut setting);
    }
    assert_eq!(setting.completed, (WARM_UP + RECEIVES / DEPTH) * DEPTH, "every receive completed");
    assert_eq!(setting.engine.statistics().matched_by_device, u64::from(setting.completed), "in hardware");
}

#[inline(never)]
fn driver_warm_up(setting: &mut Setting) {
    setting.post();
    setting.hardware();
    setting.poll();
    setting.send();
    setting.hardware();
    setting.poll();
    setting.hardware();
}

/// All of it is inside; what counts is in the parts.
#[inline(never)]
fn driver_round(setting: &mut Setting) {
    driver_counted_part_post(setting);
    setting.hardware();
    driver_counted_part_poll(setting);
    setting.send();
    setting.hardware();
    driver_counted_part_poll(setting);
    setting.hardware();
}

#[inline(never)]
fn driver_counted_part_post(setting: &mut Setting) {
    setting.post();
}

#[inline(never)]
fn driver_counted_part_poll(setting: &mut Setting) {
    setting.poll();
}

struct Setting {
    engine: Engine,
    receiver: VerbsDevice,
    sender: VerbsDevice,
    card: SimulatedHca,
    memory: Buffer,
    completed: u32,
}

impl Setting {
    fn new() -> Self {
        let card = SimulatedHca::find().unwrap_or_else(|| panic!("the card is not preloaded"));
        let open = |tag_matching, tags| {
            let config = VerbsConfig { tag_matching, tags, peers: 1, ..VerbsConfig::default() };
            VerbsDevice::open(config, HostMemory::registered()).unwrap_or_else(|error| panic!("{error}"))
        };
        let mut receiver = open(TagMatching::Required, 64);
        let mut sender = open(TagMatching::Off, 0);
        let mut engine = Engine::new(Config::default());
        engine.add_device(receiver.capabilities()).unwrap_or_else(|error| panic!("{error}"));
        let length = DEPTH as usize * usize::try_from(BUFFER).unwrap_or(0);
        let memory = receiver.allocate(length, RemoteAccess::NONE).unwrap_or_else(|error| panic!("{error}"));
        let mut setting = Self { engine, receiver, sender, card, memory: memory.buffer, completed: 0 };
        setting.submit();
        let to = setting.receiver.prepare(PEER).unwrap_or_else(|error| panic!("{error}"));
        sender = setting.sender;
        let from = sender.prepare(PEER).unwrap_or_else(|error| panic!("{error}"));
        setting.receiver.connect(PEER, &from).unwrap_or_else(|error| panic!("{error}"));
        sender.connect(PEER, &to).unwrap_or_else(|error| panic!("{error}"));
        setting.sender = sender;
        setting
    }

    fn submit(&mut self) {
        let commands = self.engine.poll_commands(DEVICE);
        if commands.is_empty() {
            return;
        }
        let taken = self.receiver.submit(commands).unwrap_or_else(|error| panic!("{error}"));
        self.engine.handle_submitted(DEVICE, taken);
    }

    /// A round of receives is posted, one after the other, and each is handed down at once.
    fn post(&mut self) {
        for number in 0..u64::from(DEPTH) {
            let pattern = Pattern { tag: Tag(number), ignore: Ignore::NONE, source: Source::Any };
            let address = self.memory.address + number * BUFFER;
            let buffer = Buffer { address, length: BUFFER, ..self.memory };
            let receive = Receive { pattern, buffer, context: number, kind: Kind::Once };
            self.engine.post_placing(&receive, &mut Hand(&mut self.receiver));
        }
        // What was not.
        self.submit();
    }

    /// Everything that came is told, and completions are read.
    fn poll(&mut self) {
        while self.receiver.poll(EVENTS, &mut self.engine).unwrap_or_else(|error| panic!("{error}")) > 0 {}
        while let Some(completion) = self.engine.next_completion() {
            assert!(matches!(completion.end, End::Received(_)), "{completion:?}");
            self.completed += 1;
        }
        self.submit();
    }

    fn send(&mut self) {
        for number in 0..u64::from(DEPTH) {
            let message =
                Message::Eager { context: AppContext::default(), tag: Tag(number), payload: &[7; BYTES] };
            self.sender.send(PEER, &message, None, 0).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn hardware(&mut self) {
        self.card.run();
        let mut nobody = Nobody;
        self.sender.poll(EVENTS, &mut nobody).unwrap_or_else(|error| panic!("{error}"));
        while self.sender.poll_sent().is_some() {}
    }
}

/// The receiver's device, for its engine.
struct Hand<'a>(&'a mut VerbsDevice);

impl Placer for Hand<'_> {
    fn place(&mut self, _: DeviceId, message: MessageToken, buffer: &Buffer) -> bool {
        self.0.place_held(message, buffer)
    }

    #[inline(always)]
    fn add(&mut self, _: DeviceId, add: &Add<'_>) -> bool {
        self.0.add(add)
    }
}

struct Nobody;

impl EventSink for Nobody {
    fn handle_event(&mut self, _: DeviceId, _: &Event) -> Answer {
        Answer::Hold
    }
}

const INSIDE: &str = "--counted";
// What names stand for in callgrind's files.
const OBJECT: &str = "object";
const FUNCTION: &str = "function";
const SOURCE: &str = "source";
const ENGINE: &str = "engine";
const BACKEND: &str = "backend (device/verbs)";
const LOOP: &str = "the bench's loop";
const DRIVER: &str = "libibverbs and libmlx5";
const LIBC: &str = "C library and loader";
const CARD: &str = "the simulated card";
const PEER: PeerId = PeerId(0);
const DEVICE: DeviceId = DeviceId(0);
/// Receives posted at a time.
const DEPTH: u32 = 16;
/// Receives counted.
const RECEIVES: u32 = 4096;
const WARM_UP: u32 = 64;
/// Bytes of a receive: those that a device takes without a bounce buffer.
const BUFFER: u64 = 8192;
/// Bytes of a message.
const BYTES: usize = 8;
const EVENTS: usize = 64;
/// What the project wants of engine and backend together.
const GOAL: f64 = 300.0;
/// How much more than recorded fails.
const TOLERANCE: f64 = 0.05;
