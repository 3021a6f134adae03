//! A machine that QEMU emulates, with the kernel of Debian's package.
//!
//! Nothing has to be built, and it has several processors. The root outside is its root, over 9p and read-only, below a
//! file system in memory. Why each argument: docs/rxe.md.

use crate::Options;
use crate::cpio::Archive;
use crate::failure::Failure;
use crate::guest::{COMMON, INIT, SHARE, Session};
use crate::kernel::Kernel;
use crate::protocol::Place;
use crate::tools;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Programs that a run needs, with their packages.
pub(crate) const PROGRAMS: [(&str, &str); 3] =
    [(QEMU, "qemu-system-x86"), ("busybox", "busybox-static"), ("xz", "xz-utils")];

/// What machines of this kind are made from.
#[derive(Debug)]
pub(crate) struct Qemu {
    kernel: Kernel,
    busybox: PathBuf,
}

impl Qemu {
    pub(crate) fn new(kernel: Kernel) -> Result<Self, Failure> {
        let missing = || Failure::Missing { backend: "qemu", packages: lacks() };
        Ok(Self { kernel, busybox: busybox().ok_or_else(missing)? })
    }

    /// The program that is a machine.
    pub(crate) fn command(&self, options: &Options, place: &Place) -> Result<Command, Failure> {
        let share = PathBuf::from(SHARE);
        let session = Session {
            options,
            host: place.host,
            common: if options.hosts > 1 { PathBuf::from(COMMON) } else { share.clone() },
            share,
            system: PathBuf::new(),
            environment: std::env::vars_os().collect(),
            directory: options.directory.clone(),
        };
        let file = place.share.join("session");
        fs::write(&file, session.script()).map_err(|error| Failure::file(&file, error))?;
        let archive = place.run.join(format!("initramfs{}", place.host));
        self.initramfs(&archive)?;
        let mut command = tools::tied(QEMU, "qemu-system-x86")?;
        command.current_dir(&place.run).stdin(Stdio::null()).args(self.arguments(options, place, &archive));
        if options.hosts > 1 {
            wire(place, &mut command)?;
        }
        Ok(command)
    }

    fn arguments(&self, options: &Options, place: &Place, archive: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(|&word| word.to_owned()));
        let word = OsStr::new;
        add(&["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"].map(word));
        add(&["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"].map(word));
        add(&[word("-smp"), word(&options.smp.to_string())]);
        add(&[word("-m"), word(&options.memory.to_string())]);
        let line =
            if options.hosts > 1 { format!("{COMMAND_LINE} tagmatch_common=1") } else { COMMAND_LINE.into() };
        add(&["-serial", "stdio", "-monitor", "none"].map(word));
        add(&[word("-kernel"), self.kernel.image.as_os_str()]);
        add(&[word("-initrd"), archive.as_os_str()]);
        add(&[word("-append"), word(&line)]);
        let mut folders =
            vec![("root", Path::new("/"), ",readonly=on"), ("share", place.share.as_path(), "")];
        let common = place.run.join("common");
        if options.hosts > 1 {
            folders.push(("common", common.as_path(), ""));
        }
        for (name, path, how) in folders {
            let mut device =
                OsString::from(format!("local,id={name},security_model=none,multidevs=remap{how},path="));
            device.push(escaped(path));
            add(&[word("-fsdev"), &device]);
            add(&[word("-device"), word(&format!("virtio-9p-pci,fsdev={name},mount_tag={name}"))]);
        }
        arguments
    }

    /// The first root: busybox, the modules, the first program.
    fn initramfs(&self, file: &Path) -> Result<(), Failure> {
        let failed = |error| Failure::file(file, error);
        let mut archive = Archive::new(BufWriter::new(File::create(file).map_err(failed)?));
        for folder in ["proc", "sys", "dev", "outside", "over", "new", "modules"] {
            archive.directory(folder).map_err(failed)?;
        }
        let read = |path: &Path| fs::read(path).map_err(|error| Failure::file(path, error));
        archive.file("busybox", &read(&self.busybox)?).map_err(failed)?;
        archive.file("init", INIT.as_bytes()).map_err(failed)?;
        let entries = fs::read_dir(&self.kernel.modules);
        let entries = entries.map_err(|error| Failure::file(&self.kernel.modules, error))?;
        let mut modules: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        modules.sort();
        for module in modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archive.file(&format!("modules/{name}"), &read(&module)?).map_err(failed)?;
        }
        archive.finish().map(drop).map_err(failed)
    }
}

/// What is missing on this machine for it.
pub(crate) fn lacks() -> Vec<(String, &'static str)> {
    let mut missing = tools::missing(&PROGRAMS);
    if busybox().is_none() && !missing.iter().any(|(_, package)| *package == "busybox-static") {
        missing.push(("a busybox without shared libraries".into(), "busybox-static"));
    }
    missing
}

/// The one without shared libraries.
fn busybox() -> Option<PathBuf> {
    let found = tools::find("busybox")?;
    is_static(&fs::read(&found).ok()?).then_some(found)
}

/// Whether a program names no loader: it has no program header PT_INTERP (elf(5), 64 bits).
fn is_static(program: &[u8]) -> bool {
    let half =
        |place: usize| Some(usize::from(u16::from_le_bytes(program.get(place..place + 2)?.try_into().ok()?)));
    let headers = || {
        let start = usize::try_from(u64::from_le_bytes(program.get(32..40)?.try_into().ok()?)).ok()?;
        Some((start, half(54)?, half(56)?))
    };
    let Some((start, size, count)) = headers().filter(|_| program.starts_with(b"\x7fELF\x02")) else {
        return false;
    };
    (0..count).all(|number| {
        let kind =
            start.checked_add(number * size).and_then(|place| program.get(place..place.checked_add(4)?));
        kind.is_some_and(|kind| kind != PT_INTERP)
    })
}

/// The wire between two machines: a socket that the first one listens at.
fn wire(place: &Place, command: &mut Command) -> Result<(), Failure> {
    let common = place.run.join("common");
    let socket = place.run.join(WIRE);
    if place.host == 0 {
        // Of an attempt before.
        let _ = fs::remove_dir_all(&common);
        let _ = fs::remove_file(&socket);
        fs::create_dir(&common).map_err(|error| Failure::file(&common, error))?;
    } else {
        let start = Instant::now();
        while !socket.exists() {
            if start.elapsed() > WIRE_TIME {
                return Err(Failure::Refused("the first machine's end of the wire does not appear".into()));
            }
            thread::park_timeout(Duration::from_millis(20));
        }
    }
    let server = if place.host == 0 { "on" } else { "off" };
    command.arg("-netdev");
    command.arg(format!("stream,id=wire,server={server},addr.type=unix,addr.path={WIRE}"));
    command.arg("-device");
    command.arg(format!("virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:09:00:0{}", place.host + 1));
    Ok(())
}

/// In options of QEMU a comma is written twice.
fn escaped(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = path.as_os_str().as_bytes();
    OsString::from_vec(
        bytes.iter().flat_map(|&byte| std::iter::repeat_n(byte, if byte == b',' { 2 } else { 1 })).collect(),
    )
}

const QEMU: &str = "qemu-system-x86_64";
/// Relative to the directory of the run, since the path of a socket must be short.
const WIRE: &str = "wire";
const WIRE_TIME: Duration = Duration::from_secs(60);
const PT_INTERP: [u8; 4] = [3, 0, 0, 0];
/// no_timer_check: on a busy machine the emulated timer looks broken, and the kernel panics. panic=-1: a panic ends the
/// machine at once. earlyprintk: so that one before there is a console is seen.
const COMMAND_LINE: &str = "console=ttyS0 earlyprintk=ttyS0 no_timer_check panic=-1 loglevel=5 mitigations=off \
    random.trust_cpu=on net.ifnames=0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_paths_do_not_end_an_option() {
        assert_eq!(escaped(Path::new("/a,b/c")), "/a,,b/c");
    }

    #[test]
    fn a_program_with_a_loader_is_told_from_one_without() {
        let mut program = vec![0; 64 + 2 * 56];
        program[..5].copy_from_slice(b"\x7fELF\x02");
        (program[32], program[54], program[56]) = (64, 56, 2);
        (program[64], program[64 + 56]) = (1, 6);
        assert!(is_static(&program));
        program[64 + 56] = 3;
        assert!(!is_static(&program));
        program.truncate(100);
        assert!(!is_static(&program), "cut off");
        assert!(!is_static(b"#!/bin/sh\n"));
    }
}
