//! `tagmatch mpirun` and `tagmatch env` without an MPI: what mpirun is given, what it answers, what is refused.
//!
//! In the place of mpirun is a script that says which MPI it is and shows how it was started.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OPEN_MPI: &str = "mpirun (Open MPI) 4.1.4";
const MPICH: &str = "HYDRA build details:\n    Version: 5.0.2";

/// A folder with a provider as it is built, and a stand-in for mpirun.
struct World {
    folder: PathBuf,
}

impl World {
    fn new(name: &str, version: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpirun").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("bin")).unwrap_or_else(|error| panic!("{error}"));
        let world = Self { folder };
        let script = format!(
            "#!/bin/sh\ncase $1 in --version) echo '{version}'; exit;; die) kill -9 $$;; esac\n\
             env | grep -E '^(FI_|OMPI_|PRTE_|MPIR_)' | sort\necho arguments: \"$@\"\nexit 7\n"
        );
        world.program("mpirun", &script);
        fs::write(world.folder.join("libtagmatch_fi.so"), "").unwrap_or_else(|error| panic!("{error}"));
        world.set_mode("libtagmatch_fi.so", 0o644);
        world.set_mode(".", 0o755);
        world
    }

    /// A program beside mpirun.
    fn program(&self, name: &str, script: &str) {
        let name = format!("bin/{name}");
        fs::write(self.folder.join(&name), script).unwrap_or_else(|error| panic!("{error}"));
        self.set_mode(&name, 0o755);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        let path = self.folder.join(name);
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap_or_else(|error| panic!("{error}"));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tagmatch"));
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, _) in std::env::vars() {
            if ["FI_", "OMPI_", "PRTE_", "MPIR_"].iter().any(|start| name.starts_with(start)) {
                command.env_remove(name);
            }
        }
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        command.env("TAGMATCH_FI_LIB", self.folder.join("libtagmatch_fi.so"));
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap_or_else(|error| panic!("{error}"))
    }

    fn provider(&self) -> String {
        self.folder.join("tagmatch-fi").display().to_string()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn complaints(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn mpirun_is_started_with_the_provider_and_its_exit_status_is_passed_on() {
    let world = World::new("status", OPEN_MPI);
    let output = world.run(&["mpirun", "-n", "2", "program", "-v", "--layout"]);
    assert_eq!(output.status.code(), Some(7), "{}", complaints(&output));
    let text = out(&output);
    assert!(text.contains(&format!("FI_PROVIDER_PATH={}\n", world.provider())), "{text}");
    assert!(text.contains("OMPI_MCA_mtl_ofi_provider_include=tagmatch\nOMPI_MCA_pml=cm\n"), "{text}");
    assert!(text.ends_with("arguments: -x FI_PROVIDER_PATH -n 2 program -v --layout\n"), "{text}");
    assert_eq!(complaints(&output), "", "silent without -v");
    let link = Path::new(&world.provider()).join("libtagmatch-fi.so");
    let library = world.folder.join("libtagmatch_fi.so");
    assert_eq!(fs::canonicalize(link).ok(), fs::canonicalize(library).ok(), "the link leads to the library");
}

#[test]
fn mpirun_ended_by_a_signal_is_seen_as_ended_by_it() {
    let world = World::new("signal", MPICH);
    assert_eq!(world.run(&["mpirun", "die"]).status.signal(), Some(9));
}

#[test]
fn verbose_says_what_is_set_and_why_and_what_is_run() {
    let world = World::new("verbose", OPEN_MPI);
    let arguments = ["mpirun", "-v", "--tm", "soft", "--layout", "source-in-tag", "-n", "1", "program"];
    let mut command = world.command(&arguments);
    let output = command.env("OMPI_MCA_pml", "ob1").output().unwrap_or_else(|error| panic!("{error}"));
    let said = complaints(&output);
    assert!(said.contains("mpirun is Open MPI 4.1.4\n"), "{said}");
    assert!(said.contains("OMPI_MCA_pml=ob1 (kept as it was)\n"), "{said}");
    assert!(said.contains("FI_TAGMATCH_TM=soft (asked for with --tm)\n"), "{said}");
    assert!(said.contains("OMPI_MCA_mtl_ofi_tag_mode=ofi_tag_1 ("), "{said}");
    assert!(said.contains("programs with MPI_Ssend hang"), "{said}");
    assert!(said.contains("mpirun -x FI_PROVIDER_PATH -x FI_TAGMATCH_TM -n 1 program\n"), "{said}");
    assert!(out(&output).contains("OMPI_MCA_pml=ob1\n"), "what was set stays: {}", out(&output));
}

#[test]
fn providers_of_others_stay_in_the_path() {
    let world = World::new("others", MPICH);
    let with = |set: &str| {
        let mut command = world.command(&["mpirun", "program"]);
        out(&command.env("FI_PROVIDER_PATH", set).output().unwrap_or_else(|error| panic!("{error}")))
    };
    let provider = world.provider();
    assert!(with("/a:/b").contains(&format!("FI_PROVIDER_PATH={provider}:/a:/b\n")));
    assert!(with("@/a").contains(&format!("FI_PROVIDER_PATH=@{provider}:/a\n")));
    let has_one = format!("/a:{provider}");
    assert!(with(&has_one).contains(&format!("FI_PROVIDER_PATH={has_one}\n")), "one that is there is used");
    assert!(with("/a").contains("FI_PROVIDER=tagmatch\n"), "{}", with("/a"));
}

#[test]
fn env_prints_lines_that_a_shell_takes() {
    let world = World::new("env it's", OPEN_MPI);
    let lines = out(&world.run(&["env", "--layout", "source-in-tag"]));
    let script = format!("{lines}\nprintf '%s\\n' \"$FI_PROVIDER_PATH\" \"$OMPI_MCA_mtl_ofi_tag_mode\"");
    let shell = Command::new("sh").args(["-c", &script]).output().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(out(&shell), format!("{}\nofi_tag_1\n", world.provider()), "{lines}");
    let fish = out(&world.run(&["env", "--shell", "fish"]));
    assert!(fish.contains("set -gx OMPI_MCA_pml cm;\n") && fish.contains(r"env it\'s"), "{fish}");
    let csh = out(&world.run(&["env", "--shell", "csh"]));
    assert!(csh.contains("setenv OMPI_MCA_pml cm;\n"), "{csh}");
    let json: serde_json::Value = serde_json::from_slice(&world.run(&["env", "--json"]).stdout)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(json[0]["name"], "FI_PROVIDER_PATH");
    assert!(json[0]["why"].is_string());
}

#[test]
fn what_anybody_may_write_is_not_loaded() {
    for (name, mode) in [(".", 0o777), ("libtagmatch_fi.so", 0o666)] {
        let world = World::new("writable", OPEN_MPI);
        world.set_mode(name, mode);
        let output = world.run(&["mpirun", "-n", "1", "program"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(complaints(&output).contains("can be written by anybody"), "{}", complaints(&output));
    }
}

#[test]
fn what_anybody_may_write_is_not_loaded_where_the_path_names_it_already() {
    let world = World::new("writable already", OPEN_MPI);
    world.run(&["mpirun", "program"]);
    let run = || {
        let mut command = world.command(&["mpirun", "program"]);
        command.env("FI_PROVIDER_PATH", world.provider());
        command.output().unwrap_or_else(|error| panic!("{error}"))
    };
    assert_eq!(run().status.code(), Some(7));
    for (name, open, shut) in [("tagmatch-fi", 0o777, 0o755), ("libtagmatch_fi.so", 0o666, 0o644)] {
        world.set_mode(name, open);
        let output = run();
        assert_eq!(output.status.code(), Some(125));
        assert!(complaints(&output).contains("can be written by anybody"), "{}", complaints(&output));
        world.set_mode(name, shut);
    }
}

#[test]
fn parameters_that_are_set_go_to_processes_on_other_machines() {
    let world = World::new("parameters", OPEN_MPI);
    let mut command = world.command(&["mpirun", "program"]);
    command.env("FI_TAGMATCH_IFACE", "eth0").env("FI_TAGMATCH_JOB_KEY", "sixteen and more");
    let output = command.output().unwrap_or_else(|error| panic!("{error}"));
    let text = out(&output);
    let passed = "-x FI_PROVIDER_PATH -x FI_TAGMATCH_IFACE -x FI_TAGMATCH_JOB_KEY program\n";
    assert!(text.ends_with(passed), "{text}");
}

#[test]
fn what_cannot_be_said_stops_nothing() {
    let world = World::new("unsaid", OPEN_MPI);
    let full = || fs::File::options().write(true).open("/dev/full").unwrap_or_else(|error| panic!("{error}"));
    let output = world.command(&["mpirun", "-v", "program"]).stderr(full()).output();
    assert_eq!(output.ok().and_then(|output| output.status.code()), Some(7));
    let output = world.command(&["mpirun", "--mpirun", "no-such-mpirun", "program"]).stderr(full()).output();
    assert_eq!(output.ok().and_then(|output| output.status.code()), Some(127));
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let world = World::new("missing", "Some MPI 1.0");
    let output = world.run(&["mpirun", "program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(complaints(&output).contains("neither Open MPI's nor MPICH's: it says \"Some MPI 1.0\""));
    let output = world.run(&["mpirun", "--mpirun", "no-such-mpirun", "program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(complaints(&output), "tagmatch mpirun: there is no no-such-mpirun in PATH\n");
    let output = world.run(&["env", "--mpirun", "no-such-mpirun"]);
    assert_eq!(output.status.code(), Some(2));
    let world = World::new("missing library", OPEN_MPI);
    fs::remove_file(world.folder.join("libtagmatch_fi.so")).unwrap_or_else(|error| panic!("{error}"));
    let output = world.run(&["mpirun", "program"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(complaints(&output).contains("TAGMATCH_FI_LIB names "), "{}", complaints(&output));
}

#[test]
fn a_launcher_is_known_under_every_name_that_its_mpi_has_for_it() {
    let world = World::new("names", MPICH);
    for (name, version, sign) in [
        ("mpirun.openmpi", "mpirun.openmpi (OpenRTE) 4.1.4", "OMPI_MCA_mtl_ofi_provider_include=tagmatch\n"),
        ("orterun", "orterun (OpenRTE) 4.1.4", "OMPI_MCA_mtl_ofi_provider_include=tagmatch\n"),
        ("mpiexec.openmpi", "mpiexec.openmpi (Open MPI) 5.0.11", "OMPI_MCA_opal_common_ofi_provider_include"),
        ("mpiexec.hydra", MPICH, "MPIR_CVAR_CH4_NETMOD=ofi\n"),
    ] {
        let script = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}' && exit\nenv\n");
        world.program(name, &script);
        let output = world.run(&["mpirun", "--mpirun", name, "program"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", complaints(&output));
        assert!(out(&output).contains(sign), "{name}: {}", out(&output));
        assert_eq!(world.run(&["env", "--mpirun", name]).status.code(), Some(0), "{name}");
    }
}

#[test]
fn for_the_runtime_of_open_mpi_its_mpirun_is_run() {
    for (version, is_its_own) in [("mpirun (Open MPI) 5.0.11", true), (OPEN_MPI, false), (MPICH, false)] {
        let world = World::new("runtime", version);
        // One that was moved says nothing of itself, and its name has to do.
        let said = if is_its_own { "-----\nSorry!" } else { "prterun (PRRTE) 3.0.14" };
        world.program("prterun", &format!("#!/bin/sh\necho '{said}'\n"));
        let output = world.run(&["mpirun", "-v", "--mpirun", "prterun", "program"]);
        let said = complaints(&output);
        if is_its_own {
            assert_eq!(output.status.code(), Some(7), "{said}");
            assert!(said.contains("bin/mpirun is Open MPI 5.0.11\n"), "{said}");
            assert!(out(&output).contains("OMPI_MCA_pml=cm\n"), "{}", out(&output));
        } else {
            assert_eq!(output.status.code(), Some(127), "{said}");
            assert!(
                said.contains("is PRRTE 3.0.14, without an mpirun of Open MPI 5 or later beside it"),
                "{said}"
            );
        }
    }
}

#[test]
fn mpich_gets_its_layout_by_a_parameter_of_the_provider_and_no_warning() {
    let world = World::new("layout", MPICH);
    let output = world.run(&["mpirun", "--layout", "source-in-tag", "program"]);
    assert_eq!(output.status.code(), Some(7), "{}", complaints(&output));
    assert!(out(&output).contains("FI_TAGMATCH_DIRECTED_RECV=0\n"), "{}", out(&output));
    assert_eq!(complaints(&output), "", "its synchronous sends work in every layout");
}

#[test]
fn an_mpich_that_is_not_built_for_libfabric_is_refused() {
    let world = World::new("mpich", MPICH);
    let script = "#!/bin/sh\necho 'MPICH Version: 4.0.2'\necho 'MPICH Device:    ch4:ucx'\n";
    world.program("mpichversion", script);
    let output = world.run(&["mpirun", "program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(complaints(&output).contains("is built for ch4:ucx and does not use libfabric"));
}

/// In the place of mpirun: two ranks that count, and one that says nothing at its end.
const COUNTING: &str = r#"
echo from the program
for rank in 1 0; do
    printf 'tagmatch-statistics 2\npid %s\nstarted 1\nhost here\nrank %s\ncommand p\nreceived %s\npeeks 0\nend\n' \
        7$rank $rank 4$rank >"$FI_TAGMATCH_STATS/$rank"
done
echo half a report >"$FI_TAGMATCH_STATS/2"
exit 7
"#;

#[test]
fn what_the_processes_have_counted_is_shown_when_the_job_has_ended() {
    let world = World::new("counted", OPEN_MPI);
    world.program(
        "mpirun",
        &format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{OPEN_MPI}' && exit\n{COUNTING}"),
    );
    let temporary = world.folder.join("temporary");
    fs::create_dir(&temporary).unwrap_or_else(|error| panic!("{error}"));
    let run = |more: &[&str]| {
        let arguments = [&["mpirun", "--stats"], more, &["-n", "3", "program"]].concat();
        let mut command = world.command(&arguments);
        command.env("TMPDIR", &temporary).output().unwrap_or_else(|error| panic!("{error}"))
    };
    let output = run(&[]);
    let (said, shown) = (out(&output), complaints(&output));
    assert_eq!((output.status.code(), said.as_str()), (Some(7), "from the program\n"), "{shown}");
    let rows = "counter   all  least  most      70      71\nreceived   81     40    41      40      41\n";
    assert!(
        shown.contains(rows) && shown.contains("rank 0  rank 1\n") && !shown.contains("peeks"),
        "{shown}"
    );
    assert!(shown.contains("tagmatch: 2 of 3 processes have told what they counted; "), "{shown}");

    let output = run(&["--json"]);
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", out(&output)));
    assert_eq!((json["asked"].as_u64(), json["total"]["received"].as_u64()), (Some(3), Some(81)), "{json}");
    let first = &json["processes"][0];
    assert_eq!((first["rank"].as_u64(), first["host"].as_str()), (Some(0), Some("here")), "{json}");
    assert_eq!(first["counters"]["peeks"].as_u64(), Some(0), "{json}");
    assert!(
        complaints(&output).contains("from the program\n"),
        "the document is alone: {}",
        complaints(&output)
    );
    let left = fs::read_dir(&temporary).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(left.count(), 0, "nothing is left");
}

#[test]
fn where_no_process_tells_what_it_counted_that_is_said_and_mpirun_has_ended_as_it_did() {
    let world = World::new("uncounted", MPICH);
    let output = world.run(&["mpirun", "--stats", "-n", "2", "program"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(out(&output).contains("FI_TAGMATCH_STATS="), "{}", out(&output));
    assert!(complaints(&output).contains("0 of 2 processes have told"), "{}", complaints(&output));
    let output = world.run(&["mpirun", "--stats", "die"]);
    assert_eq!(output.status.code(), Some(137), "ended by a signal");
    for more in [&["--stats", "--beside", "1"][..], &["--json"]] {
        let output = world.run(&[&["mpirun"], more, &["program"]].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
    }
}

#[test]
fn a_program_is_run_both_ways_in_turns_and_its_times_are_compared() {
    for (version, sign) in [(OPEN_MPI, "OMPI_MCA_pml"), (MPICH, "MPIR_CVAR_CH4_NETMOD")] {
        let world = World::new("beside", version);
        // It takes longer over the provider, and says so; what it does not say as a time is passed over.
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}' && exit\n\
             echo 'something else'\n[ -n \"${sign}\" ] && time=3 || time=2\n\
             echo \"time p $time us a step of all\"\n"
        );
        fs::write(world.folder.join("bin/mpirun"), script).unwrap_or_else(|error| panic!("{error}"));
        // What was set before, for instance by `tagmatch env`, is taken away for the other way.
        let output =
            world.command(&["mpirun", "--beside", "3", "--json", "program"]).env(sign, "ofi").output();
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", out(&output)));
        assert_eq!((json[0]["name"].as_str(), json[0]["what"].as_str()), (Some("p"), Some("a step of all")));
        assert_eq!(
            (json[0]["provider_us"]["median"].as_f64(), json[0]["own_us"]["most"].as_f64()),
            (Some(3.0), Some(2.0))
        );
        assert_eq!((json[0]["ratio"]["median"].as_f64(), json[0]["rounds"].as_u64()), (Some(1.5), Some(3)));
        let output = world.run(&["mpirun", "--beside", "1", "program"]);
        assert!(out(&output).contains("p: a step of all "), "{}", out(&output));
    }
}

#[test]
fn a_run_beside_that_fails_or_tells_no_time_ends_so() {
    let world = World::new("beside nothing", OPEN_MPI);
    let output = world.run(&["mpirun", "--beside", "1", "program"]);
    assert_eq!(output.status.code(), Some(7), "the code of mpirun");
    assert!(complaints(&output).contains("a run ended with "), "{}", complaints(&output));
    let script = format!("#!/bin/sh\necho '{OPEN_MPI}'\n");
    fs::write(world.folder.join("bin/mpirun"), script).unwrap_or_else(|error| panic!("{error}"));
    let output = world.run(&["mpirun", "--beside", "1", "program"]);
    assert_eq!(output.status.code(), Some(126));
    assert!(complaints(&output).contains("the program says no times"), "{}", complaints(&output));
}
