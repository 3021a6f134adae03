//! `run.sh`, the README's first command, on machines that lack something: what is installed, what is said, what is run.
//!
//! A machine here is a folder of programs that is all of PATH: a few of the system's, and stand-ins for cargo, apt-get and
//! an MPI. (On a real one the command is a step of `test.sh`.)
#![cfg(target_os = "linux")]
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A machine with Rust, a C compiler and nothing else.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-command").join(name);
        let _ = fs::remove_dir_all(&folder);
        let machine = Self { folder };
        let release = machine.folder.join("target/release");
        for made in [&release, &machine.folder.join("bin")] {
            fs::create_dir_all(made).unwrap_or_else(|error| panic!("{error}"));
        }
        for name in ["bash", "sh", "env", "dirname", "id", "mkdir", "cp", "chmod", "cat"] {
            machine.link(&system(name), &machine.bin(name));
        }
        machine.link(Path::new(env!("CARGO_BIN_EXE_tagmatch")), &release.join("tagmatch"));
        fs::write(machine.folder.join("libtagmatch_fi.so"), "").unwrap_or_else(|error| panic!("{error}"));
        machine.script("cargo", "echo cargo \"$@\"");
        machine.script("cc", "exit 1");
        machine.script("sudo", "shift; exec \"$@\"");
        machine.script("apt-get", "echo 'E: no network' >&2; exit 100");
        machine
    }

    fn bin(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    fn link(&self, to: &Path, place: &Path) {
        symlink(to, place)
            .unwrap_or_else(|error| panic!("{} in {}: {error}", to.display(), self.folder.display()));
    }

    fn script(&self, name: &str, text: &str) {
        let place = self.bin(name);
        fs::write(&place, format!("#!/bin/sh\n{text}\n")).unwrap_or_else(|error| panic!("{error}"));
        fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap_or_else(|error| panic!("{error}"));
    }

    fn without(&self, name: &str) {
        fs::remove_file(self.bin(name)).unwrap_or_else(|error| panic!("{error}"));
    }

    fn run(&self) -> Output {
        Command::new(self.bin("bash"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("run.sh"))
            .env_clear()
            .env("PATH", self.folder.join("bin"))
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .env("TAGMATCH_FI_LIB", self.folder.join("libtagmatch_fi.so"))
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

fn system(name: &str) -> PathBuf {
    let found = ["/bin", "/usr/bin"].iter().map(|folder| Path::new(folder).join(name));
    found.into_iter().find(|place| place.exists()).unwrap_or_else(|| panic!("there is no {name}"))
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn where_there_is_no_mpi_it_is_installed_and_the_program_is_run() {
    let machine = Machine::new("installs");
    let mpirun = format!("case $1 in --version) echo '{OPEN_MPI}'; exit;; esac; echo mpirun \"$@\"");
    machine.script("new-mpirun", &mpirun);
    machine.script("new-mpicc", "echo mpicc \"$@\"");
    let bin = machine.folder.join("bin").display().to_string();
    machine.script(
        "apt-get",
        &format!(
            "echo apt-get \"$@\"\ncase $* in *' install '*openmpi*) for p in mpirun mpicc; do \
             cp {bin}/new-$p {bin}/$p; done;; esac"
        ),
    );
    let output = machine.run();
    let text = out(&output);
    assert!(output.status.success(), "{text}{}", complaints(&output));
    let in_order = [
        "cargo build --release --locked -p tagmatch -p tagmatch-fi -p tagmatch-hca\n",
        "apt-get -q update\n",
        "apt-get -qy install --no-install-recommends openmpi-bin libopenmpi-dev\n",
        "mpicc -std=c11 ",
        "-n 4 ",
    ];
    let places: Vec<_> = in_order.iter().map(|line| text.find(line)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {text}");
    assert!(complaints(&output).contains("OMPI_MCA_mtl=ofi"), "it says what is set: {}", complaints(&output));
}

#[test]
fn where_nothing_can_be_installed_the_packages_are_named() {
    let machine = Machine::new("cannot");
    let output = machine.run();
    let said = complaints(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("run.sh: apt-get could not install openmpi-bin libopenmpi-dev (see above).\n"),
        "{said}"
    );
    assert!(said.contains("run.sh: Install these packages by hand and run this again.\n"), "{said}");
}

#[test]
fn an_mpi_that_cannot_use_the_provider_is_not_taken_for_one() {
    let machine = Machine::new("another");
    machine.script("mpirun", "echo 'Some MPI 1.0'");
    machine.script("mpicc", "exit 1");
    machine.script("apt-get", "exit 0");
    let output = machine.run();
    let said = complaints(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it says \"Some MPI 1.0\""), "{said}");
    assert!(said.contains("there is no MPI that can be run over the provider (see above)"), "{said}");
    // Called so it says another name of itself than as mpirun.
    let version = "mpirun.openmpi (OpenRTE) 4.1.4";
    let mpirun = format!("case $1 in --version) echo '{version}'; exit;; esac; echo mpirun \"$@\"");
    machine.script("mpirun.openmpi", &mpirun);
    machine.script("mpicc.openmpi", "exit 0");
    let output = machine.run();
    assert!(output.status.success(), "beside it there is one: {}", complaints(&output));
}

#[test]
fn without_rust_it_says_where_rust_is() {
    let machine = Machine::new("rust");
    machine.without("cargo");
    let output = machine.run();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        complaints(&output),
        "run.sh: there is no cargo: install Rust (https://rustup.rs) and run this again.\n"
    );
}

const OPEN_MPI: &str = "mpirun (Open MPI) 4.1.4";
