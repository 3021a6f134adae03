//! Programs of the system: whether they are there, in which package they are, and running them.

use crate::failure::{Failure, names};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where a program is: in PATH, or where programs of administrators are.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(ADMINISTRATION.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Those of these programs that are not there, with their packages.
pub(crate) fn missing(needed: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let missing = needed.iter().filter(|(program, _)| find(program).is_none());
    missing.map(|(program, package)| ((*program).to_owned(), *package)).collect()
}

/// Run a program to its end: what it wrote to its standard output.
pub(crate) fn output<I>(program: &str, package: &'static str, arguments: I) -> Result<Vec<u8>, Failure>
where
    I: IntoIterator,
    I::Item: AsRef<OsStr>,
{
    let mut command = command(program, package)?;
    command.args(arguments);
    let output = run(&mut command)?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(&command, &output)) }
}

/// A command of a program that must be there.
pub(crate) fn command(program: &str, package: &'static str) -> Result<Command, Failure> {
    let missing = || Failure::Missing { backend: "this", packages: vec![(program.to_owned(), package)] };
    let mut command = Command::new(find(program).ok_or_else(missing)?);
    // What is read from what they say is English.
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    Ok(command)
}

/// A command of a program that is killed when this process ends, even if nothing of this process is left to do it. (The
/// kernel does that when the thread that started it ends, which is therefore one that lasts.)
pub(crate) fn tied(program: &str, package: &'static str) -> Result<Command, Failure> {
    let real = command(program, package)?;
    tied_path(real.get_program())
}

/// The same for a program that is named as a person does; if it is not there, that is said with 127 as a shell does.
pub(crate) fn tied_path(program: &OsStr) -> Result<Command, Failure> {
    let mut tied = command("setpriv", "util-linux")?;
    tied.args(["--pdeathsig", "KILL", "--"]).arg(program).env_remove("LC_ALL");
    Ok(tied)
}

/// Run a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output();
    output.map_err(|error| Failure::system(command.get_program().display().to_string(), error))
}

/// How a command failed: the last of what it said.
pub(crate) fn failed(command: &Command, output: &Output) -> Failure {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.trim().lines().collect();
    let last = lines[lines.len().saturating_sub(SAID_MAX)..].join("\n");
    let said = if last.is_empty() { output.status.to_string() } else { last };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let command = words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ");
    Failure::Tool { command, said }
}

/// Install packages with apt-get, which only root may.
pub(crate) fn install(packages: &[(String, &'static str)]) -> Result<(), Failure> {
    for arguments in [&["-q", "update"][..], &["-qy", "install", "--no-install-recommends"][..]] {
        let mut command = command("apt-get", "apt")?;
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if arguments.contains(&"install") {
            command.args(names(packages));
        }
        let output = run(&mut command)?;
        if !output.status.success() {
            return Err(failed(&command, &output));
        }
    }
    Ok(())
}

const ADMINISTRATION: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
const SAID_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let needed = [("sh", "dash"), ("no-such-program", "a-package"), ("nor-this", "a-package")];
        let missing = missing(&needed);
        assert_eq!(names(&missing), ["a-package"]);
        let text = Failure::Missing { backend: "qemu", packages: missing }.to_string();
        assert!(text.contains("no-such-program (package a-package)"), "{text}");
        assert!(text.ends_with("apt-get install --no-install-recommends a-package"), "{text}");
    }

    #[test]
    fn a_program_that_fails_is_shown_with_what_it_said() {
        let failure = output("sh", "dash", ["-c", "echo no luck >&2; exit 3"]).unwrap_err();
        assert!(failure.to_string().contains("no luck"), "{failure}");
    }
}
