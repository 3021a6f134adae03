//! What is said, and the exit status, where no machine is needed to know.

use crate::bench::{Folder, Stage, errors, rxe, text};
use std::fs;

#[test]
fn what_is_missing_is_named_with_its_package_and_not_run() {
    let folder = Folder::new();
    folder.link(&["sh", "setpriv", "rdma", "tc"]);
    let output = rxe(&["--backend", "qemu", "--", "true"]).env("PATH", &folder.0).output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(125), "{said}");
    for package in ["qemu-system-x86_64 (package qemu-system-x86)", "busybox (package busybox-static)"] {
        assert!(said.contains(package), "{said}");
    }
    assert!(
        said.contains("apt-get install --no-install-recommends busybox-static qemu-system-x86 xz-utils"),
        "{said}"
    );
}

#[test]
fn without_lists_of_packages_and_without_a_kernel_it_is_said_what_to_do() {
    let stage = Stage::new("");
    fs::remove_dir_all(stage.folder.0.join("cache")).unwrap();
    stage.folder.program("apt-cache", "");
    let output = stage.command(&["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("apt-get update"), "{}", errors(&output));
}

#[test]
fn what_only_a_machine_can_have_is_refused_for_the_devices_of_this_one() {
    for option in [&["--hosts", "2"][..], &["--netem", "loss 1%"], &["--mtu", "9000"], &["--in", "a=b"]] {
        let arguments = [&["--backend", "native"][..], option, &["--", "true"]].concat();
        let output = rxe(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert!(errors(&output).contains(option[0]), "{}", errors(&output));
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_2() {
    for wrong in [
        &["--", ""][..0],
        &["--hosts", "3", "--", "true"],
        &["--netem", "loss 1%; reboot", "--", "true"],
        &["--in", "file", "--", "true"],
        &["--backend", "cloud", "--", "true"],
        &["--timeout", "0", "--", "true"],
    ] {
        assert_eq!(rxe(wrong).output().unwrap().status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_run_says_which_way_it_takes_and_why_and_with_quiet_only_what_failed() {
    let stage = Stage::new(": >ready; echo hello >out; echo 3 >rc.new; mv rc.new rc; exec sleep 3600");
    let output = stage.command(&["--", "true"]).output().unwrap();
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(3), "hello\n"));
    assert_eq!(errors(&output), "tagmatch rxe: qemu: an emulated machine with a kernel\n");
    let output = stage.command(&["--quiet", "--", "true"]).output().unwrap();
    assert_eq!(errors(&output), "");
    let stage = Stage::new(": >ready; echo 'Kernel panic - not syncing: no luck'");
    let output = stage.command(&["--quiet", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    assert!(errors(&output).contains("no luck"), "{}", errors(&output));
}
