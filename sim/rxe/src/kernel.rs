//! The kernel of Debian's package, unpacked without being installed: the kernel itself uncompressed, which starts three
//! seconds faster in an emulated machine, and the modules that are needed, in the order in which they can be loaded.
//!
//! Downloading and unpacking need no privileges. The newest that apt offers is taken.

use crate::cache::Cache;
use crate::failure::Failure;
use crate::modules;
use crate::relay::Relay;
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// What it is, for people.
    pub(crate) name: String,
    /// The kernel.
    pub(crate) image: PathBuf,
    /// Its modules, named in the order in which they are to be loaded.
    pub(crate) modules: PathBuf,
}

/// The kernel that apt offers, from the cache if it is there. If apt does not know, the one that was made last.
///
/// With `update` the lists of apt are brought up to date if they are missing or too old to be of use, which only root may.
pub(crate) fn stock(cache: &Cache, update: bool, relay: &mut dyn Relay) -> Result<Kernel, Failure> {
    let mut folder = kept(cache, relay);
    if update && matches!(folder, Err(Failure::Refused(_) | Failure::Tool { .. })) {
        relay.note("bringing the lists of packages up to date");
        tools::output("apt-get", "apt", ["-q", "update"])?;
        folder = kept(cache, relay);
    }
    let folder = folder?;
    let name = fs::read_to_string(folder.join("name")).map_err(|error| Failure::file(&folder, error))?;
    Ok(Kernel { name, image: folder.join("kernel"), modules: folder.join("modules") })
}

/// Whether one was made before.
pub(crate) fn is_kept(cache: &Cache) -> bool {
    cache.newest(PREFIX).is_some()
}

fn kept(cache: &Cache, relay: &mut dyn Relay) -> Result<PathBuf, Failure> {
    match offered(META, "linux-image-") {
        Ok(package) => cache.get(&package.key(), |new| make(&package, new, relay)),
        Err(failure) => cache.newest(PREFIX).ok_or(failure),
    }
}

/// A package in a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Package {
    /// Changes with all that what is made from it depends on.
    fn key(&self) -> String {
        format!("{PREFIX}{}_{}_{FORMAT}", self.name, self.version)
    }
}

/// The package that a package of packages names, by the beginning of its name.
pub(crate) fn offered(meta: &str, prefix: &str) -> Result<Package, Failure> {
    let said = tools::output("apt-cache", "apt", ["show", "--no-all-versions", meta])?;
    parse(&String::from_utf8_lossy(&said), meta, prefix)
}

/// The first package of this kind that a description depends on.
fn parse(description: &str, meta: &str, prefix: &str) -> Result<Package, Failure> {
    let field = |name: &str| description.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let depends = field("Depends: ").split([',', '|']).map(str::trim);
    let kernel = depends.filter_map(|text| text.split_whitespace().next());
    let name = kernel.into_iter().find(|name| name.starts_with(prefix));
    let version = field("Version: ").trim();
    match name {
        Some(name) if !version.is_empty() => Ok(Package { name: name.into(), version: version.into() }),
        _ => Err(Failure::Refused(format!(
            "apt knows no {meta}: has `apt-get update` been run (as root), and is this Debian on amd64?"
        ))),
    }
}

/// Download, unpack, keep what is needed.
fn make(package: &Package, new: &Path, relay: &mut dyn Relay) -> Result<(), Failure> {
    let what = format!("kernel {} {}", package.name, package.version);
    relay.progress(&format!("{what}: downloading"), 0, 4);
    let root = unpacked(&package.name, new)?;
    relay.progress(&format!("{what}: unpacking the kernel"), 1, 4);
    let image = only(&root.join("boot"), "vmlinuz-")?;
    let packed = fs::read(&image).map_err(|error| Failure::file(&image, error))?;
    let kernel = match payload(&packed) {
        Some(payload) => unxz(payload, new)?,
        None => packed,
    };
    write(&new.join("kernel"), &kernel)?;
    relay.progress(&format!("{what}: choosing modules"), 2, 4);
    let modules = ["lib/modules", "usr/lib/modules"].map(|folder| root.join(folder));
    let tree = modules.iter().find(|folder| folder.is_dir()).map(|folder| only(folder, "")).transpose()?;
    let tree = tree.ok_or_else(|| Failure::Kernel("its package has no modules".into()))?;
    let folder = new.join("modules");
    fs::create_dir(&folder).map_err(|error| Failure::file(&folder, error))?;
    for (number, module) in modules::in_order(&tree, &MODULES)?.iter().enumerate() {
        write(&folder.join(format!("{number:03}-{}.ko", module.name)), &module.content)?;
    }
    write(&new.join("name"), format!("{} {}", package.name, package.version).as_bytes())?;
    relay.progress(&format!("{what}: cleaning up"), 3, 4);
    fs::remove_dir_all(&root).map_err(|error| Failure::file(&root, error))?;
    relay.progress(&what, 4, 4);
    Ok(())
}

/// A package downloaded and unpacked: the root that it makes. The package itself is removed again.
pub(crate) fn unpacked(package: &str, new: &Path) -> Result<PathBuf, Failure> {
    let mut download = tools::command("apt-get", "apt")?;
    download.args(["-q", "download", package]).current_dir(new);
    let output = tools::run(&mut download)?;
    if !output.status.success() {
        return Err(tools::failed(&download, &output));
    }
    let archive = only(new, &format!("{package}_"))?;
    let root = new.join("root");
    tools::output("dpkg-deb", "dpkg", ["-x".as_ref(), archive.as_os_str(), root.as_os_str()])?;
    fs::remove_file(&archive).map_err(|error| Failure::file(&archive, error))?;
    Ok(root)
}

/// The one entry of a directory whose name begins so.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::file(folder, error))?;
    let mut names = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path());
    names.next().ok_or_else(|| Failure::Kernel(format!("{} has no {prefix}*", folder.display())))
}

/// The kernel inside a bzImage (Documentation/x86/boot.rst: setup_sects, payload_offset, payload_length), if it is packed
/// with xz. The four bytes behind it are its unpacked size.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |place: usize| {
        let bytes = image.get(place..place + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let start = (usize::from(*image.get(0x1f1)?) + 1) * 512 + number(0x248)?;
    let payload = image.get(start..start + number(0x24c)?.checked_sub(4)?)?;
    payload.starts_with(b"\xfd7zXZ\0").then_some(payload)
}

fn unxz(payload: &[u8], folder: &Path) -> Result<Vec<u8>, Failure> {
    let file = folder.join("payload.xz");
    write(&file, payload)?;
    let kernel = tools::output("xz", "xz-utils", ["-dc".as_ref(), file.as_os_str()])?;
    fs::remove_file(&file).map_err(|error| Failure::file(&file, error))?;
    Ok(kernel)
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::write(file, content).map_err(|error| Failure::file(file, error))
}

/// The package that depends on the newest kernel.
const META: &str = "linux-image-amd64";
const PREFIX: &str = "stock-";
/// Raised with each change of what is kept.
const FORMAT: u32 = 1;
/// What is loaded, besides what these need. rdma_rxe registers no device without crc32, and asks for it by name only.
const MODULES: [&str; 15] = [
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "overlay",
    "crc32_generic",
    "crc32c_generic",
    "af_packet",
    "virtio_net",
    "veth",
    "dummy",
    "sch_netem",
    "ib_uverbs",
    "ib_umad",
    "rdma_ucm",
    "rdma_rxe",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_first_one_that_the_package_depends_on() {
        let text = "Package: linux-image-amd64\nVersion: 6.1.9-3\nDepends: linux-base, linux-image-6.1.0-5-amd64 (= 6.1.9-3)\n";
        let package = parse(text, META, "linux-image-").unwrap();
        assert_eq!(package, Package { name: "linux-image-6.1.0-5-amd64".into(), version: "6.1.9-3".into() });
        assert!(parse("", META, "linux-image-").unwrap_err().to_string().contains("apt-get update"));
    }

    #[test]
    fn the_packed_kernel_is_found_where_the_header_says() {
        let mut image = vec![0; 4096];
        image[0x1f1] = 3;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&100_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&20_u32.to_le_bytes());
        image[2148..2154].copy_from_slice(b"\xfd7zXZ\0");
        assert_eq!(payload(&image).map(<[u8]>::len), Some(16));
        image[2148] = 0;
        assert_eq!(payload(&image), None, "packed in another way");
        image[0x24c..0x250].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(payload(&image), None, "longer than the file");
        assert_eq!(payload(b"short"), None);
    }
}
