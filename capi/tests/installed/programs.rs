//! Programs in C: the examples, and those of docs/embed.md.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::stage::{package, prefix, printed, run};

/// What pkg-config says of the library, as arguments.
fn flags(what: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(what).arg("tagmatch").env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig"));
    printed(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compile a program as its users would, and say where it is.
fn compile(source: &Path, name: &str, more: &[&str]) -> PathBuf {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
    cc.args(more).arg("-o").arg(&program).arg(source);
    run(cc.args(flags(&["--cflags", "--libs"])));
    program
}

fn example(name: &str) -> PathBuf {
    package().join("examples").join(name)
}

fn of_the_guide() -> PathBuf {
    package().join("../docs/examples/message_layer.c")
}

/// A program that finds the library where it was installed.
fn start(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib"));
    command
}

/// The same, with every access to memory checked, and that everything is given back.
fn checked(program: &Path, arguments: &[&str]) -> Output {
    run(valgrind(program).args(arguments))
}

fn valgrind(program: &Path) -> Command {
    let mut valgrind = start("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    valgrind.args(["--show-leak-kinds=all", "--errors-for-leak-kinds=all"]);
    valgrind.arg(program);
    valgrind
}

/// Or the tests with valgrind could not fail.
#[test]
fn an_engine_that_is_never_closed_is_an_error_to_valgrind() {
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("leak.c");
    let text = "#include <tagmatch.h>\nint main(void) { tm_engine *e; return tm_engine_open(0, &e); }\n";
    std::fs::write(&source, text).unwrap();
    let program = compile(&source, "leak", &[]);
    run(&mut start(&program));
    assert_eq!(valgrind(&program).output().unwrap().status.code(), Some(9));
}

#[test]
fn pkg_config_knows_version_and_libraries() {
    assert_eq!(flags(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    assert!(flags(&["--libs"]).contains(&"-ltagmatch".to_owned()));
    assert!(flags(&["--libs", "--static"]).contains(&"-lpthread".to_owned()));
}

#[test]
fn the_engine_with_callbacks_runs_also_under_valgrind() {
    let program = compile(&example("engine.c"), "engine", &[]);
    assert_eq!(printed(&mut start(&program)), "engine: 7 completions, all right\n");
    checked(&program, &[]);
}

#[test]
fn a_device_that_matches_is_given_receives_also_under_valgrind() {
    let program = compile(&example("device.c"), "device", &[]);
    assert!(printed(&mut start(&program)).starts_with("device: 4 of 8 receives matched by the device"));
    checked(&program, &[]);
}

#[test]
fn the_message_layer_of_the_guide_runs_also_under_valgrind() {
    let program = compile(&of_the_guide(), "message_layer", &[]);
    run(&mut start(&program));
    checked(&program, &[]);
}

#[test]
fn endpoints_run_over_tcp_shared_memory_and_the_model_of_a_device() {
    let program = compile(&example("endpoint.c"), "endpoint", &[]);
    for (how, is_offloaded) in [("tcp", false), ("shm", false), ("model", true)] {
        is_said(&printed(start(&program).arg(how)), how, is_offloaded);
    }
}

fn is_said(said: &str, how: &str, is_offloaded: bool) {
    assert!(said.starts_with(&format!("endpoint: over {how}, ")) && said.ends_with("all right\n"), "{said}");
    assert_eq!(!said.contains(" 0 matched by a device"), is_offloaded, "{said}");
}

/// On a simulated ConnectX under the real driver.
#[test]
fn endpoints_run_over_a_verbs_device_and_one_that_matches() {
    let program = compile(&example("endpoint.c"), "endpoint-verbs", &[]);
    let library = std::env::current_exe().unwrap().with_file_name("libtagmatch_hca.so");
    assert!(library.exists(), "cargo built no {}", library.display());
    for (how, is_offloaded) in [("verbs", false), ("card", true)] {
        // In the temporary directory, since paths of sockets are short.
        let fabric = std::env::temp_dir().join(format!("tagmatch-c-{how}-{}", std::process::id()));
        std::fs::create_dir_all(&fabric).unwrap();
        let mut command = start(&program);
        command.arg(how).env("LD_PRELOAD", &library).env("SYSFS_PATH", fabric.join("sys"));
        let output = command.env("TAGMATCH_HCA_RUN", &fabric).output();
        std::fs::remove_dir_all(&fabric).unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        is_said(&String::from_utf8_lossy(&output.stdout), how, is_offloaded);
    }
}

#[test]
fn a_verbs_device_that_is_not_there_is_said_so() {
    let program = compile(&example("endpoint.c"), "endpoint-none", &[]);
    let empty = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no-devices");
    std::fs::create_dir_all(&empty).unwrap();
    let output = start(&program).arg("verbs").env("SYSFS_PATH", &empty).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("endpoint: verbs: there is no such device ("), "{said}");
}

#[test]
fn endpoints_are_clean_under_valgrind() {
    let program = compile(&example("endpoint.c"), "endpoint-checked", &[]);
    for how in ["tcp", "shm", "model"] {
        checked(&program, &[how]);
    }
}

#[test]
fn programs_are_clean_with_the_address_sanitizer() {
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (source, name, arguments) in [
        (example("engine.c"), "engine-asan", vec![""]),
        (example("device.c"), "device-asan", vec![""]),
        (of_the_guide(), "message_layer-asan", vec![""]),
        (example("endpoint.c"), "endpoint-asan", vec!["tcp", "shm", "model"]),
    ] {
        let program = compile(&source, name, &sanitized);
        for argument in arguments {
            run(start(&program).args(Some(argument).filter(|argument| !argument.is_empty())));
        }
    }
}

/// A program of random calls: each seed is a run.
fn random(name: &str) -> PathBuf {
    package().join("tests/random").join(name)
}

#[test]
fn random_calls_are_clean_with_the_address_sanitizer() {
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let engine = compile(&random("engine.c"), "random-engine-asan", &sanitized);
    let endpoint = compile(&random("endpoint.c"), "random-endpoint-asan", &sanitized);
    for seed in 0..SEEDS {
        run(start(&engine).args([&seed.to_string(), "20000"]));
        for how in ["tcp", "shm", "model"] {
            run(start(&endpoint).args([how, &seed.to_string(), "20000"]));
        }
    }
}

#[test]
fn random_calls_are_clean_under_valgrind() {
    checked(&compile(&random("engine.c"), "random-engine", &[]), &["1", "10000"]);
    let endpoint = compile(&random("endpoint.c"), "random-endpoint", &[]);
    for how in ["tcp", "shm", "model"] {
        checked(&endpoint, &[how, "1", "10000"]);
    }
}

#[test]
fn a_program_can_be_linked_with_the_archive_alone() {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("engine-static");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-o"]).arg(&program).arg(example("engine.c"));
    cc.args(flags(&["--cflags"])).arg(prefix().join("lib/libtagmatch.a"));
    let private = flags(&["--libs", "--static"]);
    cc.args(private.iter().filter(|flag| !flag.contains("tagmatch") && !flag.starts_with("-L")));
    run(&mut cc);
    assert_eq!(printed(&mut Command::new(&program)), "engine: 7 completions, all right\n");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("header.cc");
    std::fs::write(&source, "#include <tagmatch.h>\nint main() { return tm_version() == 0; }\n").unwrap();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("header");
    let mut cc = Command::new("c++");
    cc.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program).arg(&source);
    run(cc.args(flags(&["--cflags", "--libs"])));
    run(&mut start(&program));
}

/// Of random calls, with the address sanitizer.
const SEEDS: u64 = 10;
