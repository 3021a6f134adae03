//! `tagmatch-fuzz`: targets by hand, any number of inputs, on as many threads as asked for.
//!
//! Not here: coverage (`coverage.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use std::{fs, thread};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tagmatch_fuzz::inputs::Inputs;
use tagmatch_fuzz::{TARGETS, Target, target};

/// Feeds hostile input to everything that reads bytes which others have made
#[derive(Parser)]
#[command(name = "tagmatch-fuzz", version)]
struct Arguments {
    /// Targets; all if none is named
    targets: Vec<String>,
    /// Inputs for each target
    #[arg(long, default_value_t = 1_000_000)]
    inputs: u64,
    /// The same seed gives the same inputs
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Run just what is in this file, for the one target that is named
    #[arg(long)]
    file: Option<PathBuf>,
    /// Write seeds and kept inputs of the one target that is named into this folder, for `coverage` to begin with
    #[arg(long)]
    seeds_into: Option<PathBuf>,
    /// Where an input that fails is written
    #[arg(long, default_value = ".")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("tagmatch-fuzz: {wrong}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let find = |name: &String| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        target(name).ok_or_else(|| format!("there is no target {name}; there are {}", names.join(", ")))
    };
    let named = arguments.targets.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &arguments.file {
        let [target] = named[..] else { return Err("--file goes with one target".into()) };
        let input = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        (target.run)(&input);
        println!("{}: {} bytes read without complaint", target.name, input.len());
        return Ok(true);
    }
    if let Some(folder) = &arguments.seeds_into {
        let [target] = named[..] else { return Err("--seeds-into goes with one target".into()) };
        for (number, seed) in target.inputs().iter().flatten().enumerate() {
            let path = folder.join(format!("seed-{number}"));
            fs::write(&path, seed).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        return Ok(true);
    }
    let all: Vec<&Target> = if named.is_empty() { TARGETS.iter().collect() } else { named };
    let mut are_right = true;
    for target in all {
        are_right &= feed(target, arguments)?;
    }
    Ok(are_right)
}

/// All inputs of one target. False: one failed.
fn feed(target: &Target, arguments: &Arguments) -> Result<bool, String> {
    let style = ProgressStyle::with_template("{prefix:12} {wide_bar} {pos}/{len} {per_sec} {eta}");
    let bar = ProgressBar::new(arguments.inputs).with_prefix(target.name);
    bar.set_style(style.map_err(|error| error.to_string())?);
    let (understood, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let failed = thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.threads)
            .map(|number| {
                let (bar, understood, is_over) = (&bar, &understood, &is_over);
                scope.spawn(move || work(target, arguments, number, bar, understood, is_over))
            })
            .collect();
        threads.into_iter().find_map(|thread| thread.join().unwrap_or_default())
    });
    bar.finish_and_clear();
    if let Some(input) = failed {
        let path = arguments.out.join(format!("failed-{}", target.name));
        fs::write(&path, &input).map_err(|error| format!("{}: {error}", path.display()))?;
        eprintln!("{}: failed; the input is in {} (--file)", target.name, path.display());
        return Ok(false);
    }
    println!(
        "{}: {} inputs of seed {}, {} got past the first checks, {:.0} s",
        target.name,
        arguments.inputs,
        arguments.seed,
        understood.into_inner(),
        began.elapsed().as_secs_f64()
    );
    Ok(true)
}

/// A thread's share. What failed comes back.
fn work(
    target: &Target,
    arguments: &Arguments,
    number: u64,
    bar: &ProgressBar,
    understood: &AtomicU64,
    is_over: &AtomicBool,
) -> Option<Vec<u8>> {
    let seed = arguments.seed.wrapping_mul(1024).wrapping_add(number);
    let mut inputs = Inputs::new(seed, target.inputs(), target.length_max);
    let (share, rest) = (arguments.inputs / arguments.threads, arguments.inputs % arguments.threads);
    let mut left = share + u64::from(number < rest);
    while left > 0 && !is_over.load(Ordering::Relaxed) {
        let count = left.min(AT_ONCE);
        let mut good = 0;
        for _ in 0..count {
            let input = inputs.draw();
            if let Ok(is_good) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
                good += u64::from(is_good);
            } else {
                is_over.store(true, Ordering::Relaxed);
                return Some(input.to_vec());
            }
        }
        understood.fetch_add(good, Ordering::Relaxed);
        bar.inc(count);
        left -= count;
    }
    None
}

/// Inputs between two looks at the others.
const AT_ONCE: u64 = 4096;
