//! Places on the fabric, and what may come over its sockets.

use super::super::sysfs::fresh_directory;
use super::*;
use crate::hca::HcaConfig;

/// A run directory, gone when dropped.
struct Run(PathBuf);

impl Run {
    fn new() -> Self {
        Self(fresh_directory(&std::env::temp_dir(), "tagmatch-fabric-test").unwrap())
    }

    fn join(&self) -> (Fabric, Hca<ProcessMemory>) {
        let fabric = Fabric::join(&self.0).unwrap();
        let config = HcaConfig { process: fabric.process(), ..HcaConfig::default() };
        (fabric, Hca::new(config, ProcessMemory))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_process_has_a_number_that_was_not_used_before() {
    let run = Run::new();
    let (first, _) = run.join();
    let (second, _) = run.join();
    assert_eq!((first.process(), second.process()), (0, 1));
    drop(first);
    let (third, _) = run.join();
    assert_eq!(third.process(), 2, "old packets may still be under way to the first one");
}

#[test]
fn a_run_directory_whose_path_is_too_long_for_a_socket_is_refused_with_what_to_do() {
    let run = Run::new();
    let long = run.0.join("x".repeat(100));
    fs::create_dir_all(&long).unwrap();
    let error = Fabric::join(&long).unwrap_err().to_string();
    assert!(error.contains("at most 107 bytes") && error.contains("TMPDIR"), "{error}");
}

#[test]
fn numbers_come_again_when_all_were_used() {
    let run = Run::new();
    let (first, _) = run.join();
    let numbers: Vec<u8> = (0..256).map(|_| run.join().0.process()).collect();
    assert_eq!(numbers.first(), Some(&1));
    assert_eq!(numbers.get(254), Some(&255));
    assert_eq!(numbers.last(), Some(&1), "0 is still held");
    assert_eq!(first.process(), 0);
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let run = Run::new();
    assert!(Fabric::join(&run.0.join("nowhere")).is_err());
}

#[test]
fn what_is_no_packet_ends_its_connection_alone() {
    let run = Run::new();
    let (mut fabric, mut hca) = run.join();
    let hostile = Connection::connect(&path(&run.0, 0)).unwrap();
    let honest = Connection::connect(&path(&run.0, 0)).unwrap();
    assert!(hostile.send(&[7]).unwrap());
    assert!(honest.send(&[8]).unwrap());
    assert!(hostile.send(&[0xff; 1000]).unwrap());
    while fabric.receive(&mut hca) {}
    let from: Vec<Option<u8>> = fabric.incoming.values().map(|incoming| incoming.process).collect();
    assert_eq!(from, [Some(8)]);
    let mut room = [0; 16];
    assert_eq!(hostile.receive(&mut room).unwrap(), Some(0), "closed");
}

#[test]
fn who_does_not_say_who_it_is_is_not_listened_to() {
    let run = Run::new();
    let (mut fabric, mut hca) = run.join();
    for first in [&[][..], &[1, 2], &[0; 100]] {
        let nameless = Connection::connect(&path(&run.0, 0)).unwrap();
        assert!(nameless.send(first).unwrap());
        while fabric.receive(&mut hca) {}
        assert!(fabric.incoming.is_empty(), "{first:?}");
    }
}

#[test]
fn the_end_of_a_connection_is_the_end_of_the_way_to_its_process() {
    let run = Run::new();
    let (mut fabric, mut hca) = run.join();
    let (other, _) = run.join();
    assert!(fabric.connect(1), "the other one is there");
    let theirs = Connection::connect(&path(&run.0, 0)).unwrap();
    assert!(theirs.send(&[1]).unwrap());
    while fabric.receive(&mut hca) {}
    assert!(fabric.outgoing.contains_key(&1));
    drop(theirs);
    drop(other);
    while fabric.receive(&mut hca) {}
    assert!(fabric.outgoing.is_empty());
    assert!(!fabric.connect(1), "nobody is there any more");
}

#[test]
fn who_ends_without_a_connection_of_its_own_is_known_to_be_gone() {
    let run = Run::new();
    let (mut fabric, mut hca) = run.join();
    let (mut other, mut theirs) = run.join();
    assert!(fabric.connect(1));
    while other.receive(&mut theirs) {}
    while fabric.receive(&mut hca) {}
    assert!(fabric.outgoing.contains_key(&1), "it is there");
    drop(other);
    while fabric.receive(&mut hca) {}
    assert!(fabric.outgoing.is_empty());
}
