//! Man pages and completions: each command has a page, each page each option, and the programs that read them take them.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn run(program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
}

fn tagmatch(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_tagmatch"), arguments)
}

fn printed(arguments: &[&str]) -> String {
    let output = tagmatch(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The pages by their files' names, written for the test of this name.
fn pages(test: &str) -> (PathBuf, BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual").join(test);
    let _ = fs::remove_dir_all(&folder);
    let listed = printed(&["man", folder.to_str().unwrap()]);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let pages: BTreeMap<String, String> = listed
        .lines()
        .map(|path| {
            (name(Path::new(path)), fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}")))
        })
        .collect();
    assert_eq!(pages.len(), fs::read_dir(&folder).unwrap().count(), "what is written is what is listed");
    (folder, pages)
}

/// Every command that help shows, as its words, the commands in commands too.
fn commands() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = all.get(next).cloned() {
        for line in help(&command).lines().skip_while(|line| *line != "Commands:").skip(1) {
            // The list ends with an empty line; a line of a description is indented further.
            let Some(line) = line.strip_prefix("  ") else { break };
            let name = line.split(' ').next().unwrap();
            if !name.is_empty() && name != "help" {
                all.push([command.clone(), vec![name.to_owned()]].concat());
            }
        }
        next += 1;
    }
    all
}

fn help(command: &[String]) -> String {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    printed(&arguments)
}

/// The long options at the beginning of lines of help.
fn options(help: &str) -> Vec<String> {
    let starts = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = starts.filter_map(|line| line.split([' ', ',']).find(|word| word.starts_with("--")));
    words.map(|word| word.trim_end_matches("...").to_owned()).collect()
}

#[test]
fn every_command_has_a_page_and_no_page_is_of_anything_else() {
    let (_, pages) = pages("every");
    let mut expected: Vec<String> = commands()
        .iter()
        .map(|command| format!("{}.1", [&["tagmatch".into()], &command[..]].concat().join("-")))
        .collect();
    expected.sort();
    assert!(expected.contains(&"tagmatch-trace-check.1".to_owned()), "{expected:?}");
    assert_eq!(pages.keys().cloned().collect::<Vec<_>>(), expected);
}

#[test]
fn a_page_names_each_option_of_its_command() {
    let (_, pages) = pages("options");
    let mut count = 0;
    for command in commands() {
        let name = format!("{}.1", [&["tagmatch".into()], &command[..]].concat().join("-"));
        for option in options(&help(&command)) {
            let escaped = option.replace('-', "\\-");
            assert!(pages[&name].contains(&escaped), "{name} does not name {option}:\n{}", pages[&name]);
            count += 1;
        }
    }
    // --help is an option of each.
    assert!(count > 2 * pages.len(), "{count} options of {} commands: too few to be all", pages.len());
}

#[test]
fn pages_name_version_and_exit_codes() {
    let (_, pages) = pages("words");
    let version = concat!("tagmatch ", env!("CARGO_PKG_VERSION"));
    for (name, page) in &pages {
        assert!(page.contains(version), "{name} does not name {version}");
    }
    assert!(pages["tagmatch-mpirun.1"].contains("125: the provider cannot be used"));
}

#[test]
fn groff_has_nothing_to_complain_of() {
    let (folder, pages) = pages("groff");
    let groff = |page: &str| run("groff", &["-ww", "-b", "-z", "-Kutf8", "-man", "-Tutf8", page]);
    for name in pages.keys() {
        let output = groff(folder.join(name).to_str().unwrap());
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{name}: {}\n{complaints}", output.status);
    }
    // Or this could not fail.
    let bad = folder.join("bad.1");
    fs::write(&bad, ".TH bad 1\n.nosuchmacro\n").unwrap();
    assert!(!groff(bad.to_str().unwrap()).stderr.is_empty());
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual-is-a-file");
    fs::write(&place, "").unwrap();
    let output = tagmatch(&["man", place.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("manual-is-a-file: "), "{output:?}");
}

#[test]
fn completions_of_each_shell_name_each_command() {
    let commands = commands();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = printed(&["completions", shell]);
        for word in commands.iter().flatten() {
            assert!(text.contains(word.as_str()), "{shell} does not know {word}");
        }
    }
    let output = tagmatch(&["completions", "cmd"]);
    assert_eq!(output.status.code(), Some(2));
}

/// What bash offers behind these words, the last of which is under way.
fn offered(words: &[&str]) -> Vec<String> {
    let script = r#"
        source <(printf '%s' "$COMPLETIONS") || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _tagmatch tagmatch "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"])
        .args(words)
        .env("COMPLETIONS", printed(&["completions", "bash"]));
    let output = bash.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    assert_eq!(offered(&["tagmatch", "rep"]), ["replay"]);
    let commands = offered(&["tagmatch", ""]);
    assert!(commands.contains(&"stats".to_owned()), "{commands:?}");
    // Those that are hidden are of this program's own processes.
    assert!(!commands.iter().any(|command| command == "half" || command == "sender"), "{commands:?}");
    assert_eq!(offered(&["tagmatch", "mpirun", "--over"]), ["--oversubscribe"]);
    assert_eq!(offered(&["tagmatch", "env", "--shell", ""]), ["sh", "fish", "csh"]);
}
