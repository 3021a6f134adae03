//! The guides for users: programs in them are files that run, and commands are commands that there are; those in blocks
//! marked `run` are run. Those that need the simulated card are run in `sim/preload`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "common/guides.rs"]
mod guides;
#[path = "../docs/examples/message_layer.rs"]
mod message_layer;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use guides::{GUIDES, blocks, page, top};

#[test]
fn the_message_layer_in_rust_passes_messages() {
    message_layer::main();
}

#[test]
fn programs_in_the_guide_are_the_files_beside_it() {
    let guide = page("docs/embed.md");
    for (language, file) in [("rust", "message_layer.rs"), ("c", "message_layer.c")] {
        let text = std::fs::read_to_string(top().join("docs/examples").join(file)).unwrap();
        assert!(
            blocks(&guide, language).contains(&text),
            "docs/embed.md does not have docs/examples/{file} as it is"
        );
    }
}

/// The words of a command of this project's up to where those of another program begin.
fn words(line: &str) -> Option<Vec<String>> {
    let (_, command) = line.split_once("target/release/tagmatch ")?;
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for letter in command.chars() {
        match (letter, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    let ends =
        |word: &String| !["--", "|", "&", ";", "#", ""].contains(&word.as_str()) && !word.starts_with('>');
    Some(words.into_iter().take_while(ends).collect())
}

#[test]
fn every_command_in_a_guide_is_one_that_there_is() {
    let mut checked = 0;
    for guide in GUIDES {
        let text = page(guide);
        let all = blocks(&text, "sh").into_iter().chain(blocks(&text, "sh run"));
        for line in all.collect::<Vec<_>>().iter().flat_map(|block| block.lines()) {
            let Some(mut words) = words(line) else { continue };
            // What stands behind are options of mpirun's.
            if words.first().is_some_and(|word| word == "mpirun") {
                words.truncate(1);
            }
            // Arguments are looked at from left to right, and help is given only if those before it can be.
            let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
            let output = command.args(&words).arg("--help").stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{guide}: {line}: {said}");
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} commands");
}

#[test]
fn commands_marked_so_run_as_the_guides_say() {
    let folder =
        guides::stage(Path::new(env!("CARGO_BIN_EXE_tagmatch")), PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let lines = guides::lines_to_run(|line| !guides::needs_card(line));
    assert!(lines.len() > 8, "{lines:?}");
    for (guide, line) in lines {
        guides::run(&guide, &line, &folder, &[]);
    }
}
