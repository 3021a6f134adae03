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

/// The same, with every access to memory checked, and what is never given back.
fn checked(program: &Path, arguments: &[&str]) -> Output {
    let mut valgrind = start("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
    valgrind.args(["--errors-for-leak-kinds=definite,indirect,possible"]);
    run(valgrind.arg(program).args(arguments))
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
    for how in ["tcp", "shm", "model"] {
        let said = printed(start(&program).arg(how));
        assert!(
            said.starts_with(&format!("endpoint: over {how}, ")) && said.ends_with("all right\n"),
            "{said}"
        );
    }
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
