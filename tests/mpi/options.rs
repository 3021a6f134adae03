//! Every option that Open MPI's mpirun says it has: none of them hides from `tagmatch mpirun` what stands behind it.

use crate::installed::{OPEN_MPI_4, folder};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something that says it is this MPI's mpirun, and shows what it is given.
fn stand_in() -> PathBuf {
    let place = folder().join("options-mpirun");
    fs::create_dir_all(folder()).unwrap();
    let script =
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'mpirun (Open MPI) 4.1.4'\nprintf '%s\\n' \"$*\"\n";
    fs::write(&place, script).unwrap();
    fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    place
}

/// What mpirun is given for these arguments.
fn given(mpirun: &Path, library: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
    command.args(["mpirun", "--mpirun"]).arg(mpirun).args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("FI_") || name.starts_with("OMPI_")) {
            command.env_remove(name);
        }
    }
    let output = command.env("TAGMATCH_FI_LIB", library).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The options in the help of the real one, each with how many values it has.
fn options() -> Vec<(String, usize)> {
    let mut command = Command::new(&OPEN_MPI_4.ready().mpirun);
    command.args(["--allow-run-as-root", "--help", "full"]).stdin(Stdio::null());
    let help = String::from_utf8(command.output().unwrap().stdout).unwrap();
    // `   -wd|--wd <arg0>       Synonym for --wdir`
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-') && !line.starts_with("     "));
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let names: Vec<String> = words.next().unwrap().split('|').map(String::from).collect();
        let values = words.take_while(|word| word.starts_with("<arg")).count();
        names.into_iter().map(move |name| (name, values)).collect::<Vec<_>>()
    };
    lines.flat_map(of_line).collect()
}

#[test]
fn no_option_of_open_mpi_4_hides_a_variable_or_takes_a_program_for_one() {
    let (mpirun, library) = (stand_in(), crate::job::library());
    let options = options();
    assert!(options.len() > 100, "{options:?}");
    for (option, values) in &options {
        // What stands first may be an option of this command line.
        let mut arguments = vec!["-n", "1", option.as_str()];
        arguments.extend(["value"; 2].iter().take(*values));
        arguments.extend(["-x", "FI_PROVIDER_PATH=/mine", "program"]);
        assert_eq!(given(&mpirun, library, &arguments), arguments.join(" "), "{option}: said by the user");
        let end = arguments.len() - 3;
        arguments.truncate(end);
        arguments.extend(["program", "-x", "FI_PROVIDER_PATH=/mine"]);
        let all = format!("-x FI_PROVIDER_PATH {}", arguments.join(" "));
        assert_eq!(given(&mpirun, library, &arguments), all, "{option}: said by the program's user");
    }
}
