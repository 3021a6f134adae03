//! A Linux that is a process (User Mode Linux), built once from the source in Debian's package.
//!
//! It needs no emulator, no modules and little memory, and system calls are slow in it; it has one processor. The root
//! outside is its root, over hostfs and read-only, below a file system in memory. Debian's package of a User Mode Linux
//! has no RDMA, hence the building. Why each setting: docs/rxe.md.

use crate::Options;
use crate::cache::Cache;
use crate::failure::Failure;
use crate::guest::{Session, UML_INIT};
use crate::kernel::{self, Package};
use crate::protocol::Place;
use crate::relay::Relay;
use crate::tools;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kernel that can be run.
#[derive(Debug)]
pub(crate) struct Uml {
    program: PathBuf,
    /// What it is, for people.
    pub(crate) name: String,
    /// The second machine's end of the wire.
    wire: RefCell<Option<UnixDatagram>>,
}

impl Uml {
    /// The kernel that was built from what apt offers, else the one that was built last; `None` if there is none.
    pub(crate) fn built(cache: &Cache) -> Option<Self> {
        let offered = kernel::offered(META, SOURCE).ok().and_then(|package| cache.find(&key(&package)));
        let folder = offered.or_else(|| cache.newest(PREFIX))?;
        let name = fs::read_to_string(folder.join("name")).ok()?;
        Some(Self { program: folder.join("linux"), name, wire: RefCell::default() })
    }

    /// Build it, if it is not there.
    pub(crate) fn build(cache: &Cache, jobs: u32, relay: &mut dyn Relay) -> Result<(), Failure> {
        let package = kernel::offered(META, SOURCE)?;
        cache.get(&key(&package), |new| make(&package, jobs, new, relay)).map(drop)
    }

    /// The program that is a machine.
    pub(crate) fn command(&self, options: &Options, place: &Place) -> Result<Command, Failure> {
        let share = PathBuf::from(crate::guest::SHARE);
        let common = PathBuf::from(crate::guest::COMMON);
        let session = Session {
            options,
            host: place.host,
            common: if options.hosts > 1 { common } else { share.clone() },
            share,
            system: PathBuf::new(),
            environment: std::env::vars_os().collect(),
            directory: options.directory.clone(),
        };
        let init = place.share.join("init");
        for (file, content) in [("session", session.script()), ("init", UML_INIT.into())] {
            let file = place.share.join(file);
            fs::write(&file, content).map_err(|error| Failure::file(&file, error))?;
        }
        executable(&init)?;
        let mut command = tools::tied_path(self.program.as_os_str())?;
        command.current_dir(&place.run).stdin(Stdio::null()).args([
            // Any name: without one the kernel of a process looks for a disk, which this one knows nothing of.
            "root=none",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "con=null",
            "con0=null,fd:1",
            "panic=-1",
            "loglevel=5",
            "random.trust_bootloader=on",
        ]);
        command.arg(format!("mem={}M", options.memory)).arg(format!("umid=machine{}", place.host));
        // Else a directory is made in the user's home.
        command.arg(assigned("uml_dir=", &place.run));
        command.arg(assigned("init=", &init)).arg(assigned("tagmatch_share=", &place.share));
        if options.hosts > 1 {
            command.arg(assigned("tagmatch_common=", &place.run.join("common")));
            self.wire(place, &mut command)?;
        }
        Ok(command)
    }

    /// The wire between two machines: a pair of sockets, one of which is the standard input of each.
    fn wire(&self, place: &Place, command: &mut Command) -> Result<(), Failure> {
        let failed = |error| Failure::system("a wire between machines", error);
        let end = if place.host == 0 {
            let common = place.run.join("common");
            // Of an attempt before.
            let _ = fs::remove_dir_all(&common);
            fs::create_dir(&common).map_err(|error| Failure::file(&common, error))?;
            let (first, second) = UnixDatagram::pair().map_err(failed)?;
            self.wire.replace(Some(second));
            first
        } else {
            let end = self.wire.take();
            end.ok_or_else(|| Failure::Refused("there is no first machine".into()))?
        };
        command.stdin(OwnedFd::from(end));
        command.arg(format!("vec0:transport=fd,fd=0,vec=0,mac=52:54:00:09:00:0{}", place.host + 1));
        Ok(())
    }
}

/// What is missing on this machine to build one.
pub(crate) fn lacks() -> Vec<(String, &'static str)> {
    tools::missing(&[
        ("make", "make"),
        ("gcc", "gcc"),
        ("ld", "binutils"),
        ("flex", "flex"),
        ("bison", "bison"),
        ("bc", "bc"),
        ("perl", "perl"),
        ("tar", "tar"),
        ("xz", "xz-utils"),
    ])
}

/// Changes with all that a kernel is built from.
fn key(package: &Package) -> String {
    let mut hasher = DefaultHasher::new();
    (CONFIG, REGISTERS).hash(&mut hasher);
    format!("{PREFIX}{}_{}_{:016x}", package.name, package.version, hasher.finish())
}

/// Download, unpack, configure, build.
fn make(package: &Package, jobs: u32, new: &Path, relay: &mut dyn Relay) -> Result<(), Failure> {
    let what = format!("User Mode Linux from {} {}", package.name, package.version);
    relay.progress(&format!("{what}: downloading"), 0, OBJECTS);
    let root = kernel::unpacked(&package.name, new)?;
    relay.progress(&format!("{what}: unpacking"), 0, OBJECTS);
    let archive = root.join("usr/src").join(format!("{}.tar.xz", package.name));
    let source = new.join("source");
    fs::create_dir(&source).map_err(|error| Failure::file(&source, error))?;
    let mut tar = tools::command("tar", "tar")?;
    tar.arg("-xJf").arg(&archive).arg("-C").arg(&source).args(["--strip-components=1"]).args(LEFT_OUT);
    checked(&mut tar)?;
    relay.progress(&format!("{what}: configuring"), 0, OBJECTS);
    widen_registers(&source)?;
    build(&source, jobs, &|target| format!("{what}: {target}"), relay)?;
    let keep = |from: &str| {
        let from = source.join(from);
        let name = from.file_name().unwrap_or_default().to_owned();
        fs::copy(&from, new.join(name)).map_err(|error| Failure::file(&from, error))
    };
    keep("linux")?;
    let name = format!("User Mode Linux from {} {}", package.name, package.version);
    fs::write(new.join("name"), name).map_err(|error| Failure::file(new, error))?;
    for folder in [root, source] {
        fs::remove_dir_all(&folder).map_err(|error| Failure::file(&folder, error))?;
    }
    relay.progress(&what, OBJECTS, OBJECTS);
    Ok(())
}

fn build(
    source: &Path,
    jobs: u32,
    text: &dyn Fn(&str) -> String,
    relay: &mut dyn Relay,
) -> Result<(), Failure> {
    let make = || -> Result<Command, Failure> {
        let mut make = tools::command("make", "make")?;
        // Of a make that this may run under.
        make.arg("ARCH=um").current_dir(source).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        Ok(make)
    };
    checked(make()?.arg("tinyconfig"))?;
    let file = source.join(".config");
    let failed = |error| Failure::file(&file, error);
    let config = fs::read_to_string(&file).map_err(failed)? + CONFIG;
    fs::write(&file, config).map_err(failed)?;
    checked(make()?.arg("olddefconfig"))?;
    let config = fs::read_to_string(&file).map_err(failed)?;
    let lacking = lacking(&config);
    if !lacking.is_empty() {
        return Err(Failure::Kernel(format!("this source cannot have {}", lacking.join(", "))));
    }
    let mut command = make()?;
    command.arg(format!("-j{jobs}")).arg("linux").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Failure::system("make", error))?;
    // Complaints are read aside, so that neither pipe is full while the other one is waited for.
    let mut complaints = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(pipe) = &mut complaints {
            let _ = std::io::Read::read_to_end(pipe, &mut text);
        }
        text
    });
    let mut done = 0;
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok)
    {
        if let Some(file) = line.strip_prefix("  CC ") {
            // How many there will be is known roughly.
            done = (done + 1).min(OBJECTS - 1);
            relay.progress(&text(file.trim()), done, OBJECTS);
        }
    }
    let status = child.wait().map_err(|error| Failure::system("make", error))?;
    let stderr = reader.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    Err(tools::failed(&command, &std::process::Output { status, stdout: Vec::new(), stderr }))
}

/// Room for all registers that a processor has. Linux 6.1 writes back 2,696 bytes of them, as many as AVX-512 needs, and a
/// newer kernel outside takes them all or none: with AMX there are 11,008, and no program would start. Later sources ask
/// how many there are; they do not have this line, and are left as they are.
fn widen_registers(source: &Path) -> Result<(), Failure> {
    let file = source.join("arch/x86/um/user-offsets.c");
    let failed = |error| Failure::file(&file, error);
    let text = fs::read_to_string(&file).map_err(failed)?;
    fs::write(&file, text.replace(REGISTERS.0, REGISTERS.1)).map_err(failed)
}

/// Settings that were asked for and are not there.
fn lacking(config: &str) -> Vec<&'static str> {
    let asked = CONFIG.lines().filter(|line| line.starts_with("CONFIG_"));
    asked.filter(|&asked| !config.lines().any(|line| line == asked)).collect()
}

fn checked(command: &mut Command) -> Result<(), Failure> {
    let output = tools::run(command)?;
    if output.status.success() { Ok(()) } else { Err(tools::failed(command, &output)) }
}

fn executable(file: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let result = fs::set_permissions(file, fs::Permissions::from_mode(0o755));
    result.map_err(|error| Failure::file(file, error))
}

fn assigned(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(path);
    word
}

const META: &str = "linux-source";
const SOURCE: &str = "linux-source-";
const PREFIX: &str = "uml-";
const CONFIG: &str = include_str!("uml.config");
/// The size in bytes of the registers' copy, and what takes its place. Two copies are on each kernel stack, which
/// `CONFIG_KERNEL_STACK_ORDER` makes large enough.
const REGISTERS: (&str, &str) = ("HOST_FP_SIZE, 2696", "HOST_FP_SIZE, 16384");
/// About as many files are compiled.
const OBJECTS: u64 = 1200;
/// Large parts of the source that are never read.
const LEFT_OUT: [&str; 3] =
    ["--exclude=*/drivers/gpu/drm/amd/include", "--exclude=*/tools/testing", "--exclude=*/arch/*/boot/dts"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_a_source_cannot_have_are_named() {
        let whole: String = CONFIG
            .lines()
            .filter(|line| *line != "CONFIG_RDMA_RXE=y")
            .fold(String::new(), |text, line| text + line + "\n");
        assert_eq!(lacking(&whole), ["CONFIG_RDMA_RXE=y"]);
        assert_eq!(lacking(CONFIG), [""; 0]);
    }

    #[test]
    fn another_version_is_another_kernel() {
        let package = |version: &str| Package { name: "linux-source-6.1".into(), version: version.into() };
        assert_eq!(key(&package("1")), key(&package("1")));
        assert_ne!(key(&package("1")), key(&package("2")));
    }
}
