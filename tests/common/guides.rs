//! The guides and their blocks, and running the commands in them.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// For each of the three users.
pub(crate) const GUIDES: [&str; 3] = ["docs/embed.md", "docs/without-hardware.md", "docs/study.md"];

/// The repository.
pub(crate) fn top() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().find(|folder| folder.join("docs/embed.md").exists()).unwrap().to_owned()
}

/// The text of a page.
pub(crate) fn page(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks that begin with exactly this behind three backticks.
pub(crate) fn blocks(page: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(found) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        if found == kind {
            blocks.push(block.join("\n") + "\n");
        }
    }
    blocks
}

/// Lines of blocks marked `run`, with the guide in which each stands.
pub(crate) fn lines_to_run(is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for guide in GUIDES {
        for block in blocks(&page(guide), "sh run") {
            let lines = block.lines().filter(|line| is_wanted(line));
            all.extend(lines.map(|line| (guide.to_owned(), line.to_owned())));
        }
    }
    all
}

/// Whether a command needs programs of other packages: the simulated card, the suite for verbs devices.
pub(crate) fn needs_card(line: &str) -> bool {
    line.contains("hca") || line.contains("tagmatch-hw-tests")
}

/// A folder in which the command and the traces are where the guides have them.
pub(crate) fn stage(command: &Path, temporary: PathBuf) -> PathBuf {
    let folder = temporary.join(format!("guides-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("target/release")).unwrap();
    symlink(command, folder.join("target/release/tagmatch")).unwrap();
    symlink(top().join("traces"), folder.join("traces")).unwrap();
    folder
}

/// Run a line of a guide, which must end well.
pub(crate) fn run(guide: &str, line: &str, folder: &Path, environment: &[(&str, &Path)]) {
    let mut shell = Command::new("timeout");
    shell.args(["300", "sh", "-c", line]).current_dir(folder);
    shell.envs(environment.iter().copied()).stdin(std::process::Stdio::null());
    let output = shell.output().unwrap();
    let (out, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{guide}: {line}: {}\n{out}{complaints}", output.status);
}
