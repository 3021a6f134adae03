//! The directory tree that stands for `/sys`: what libibverbs, and programs that look for themselves, read of a
//! device. In the kernel's shape: the class directories hold links into the directory of a PCI device.
//!
//! Nothing here is read back by the model.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// What the tree says of one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SysfsDevice {
    /// Number of the device: `mlx5_<index>`, `uverbs<index>`.
    pub(crate) index: u32,
    /// GUID of the node, in host order.
    pub(crate) node_guid: u64,
    /// LID of the port; 0 on Ethernet.
    pub(crate) lid: u16,
    /// Whether the port is Ethernet (RoCE).
    pub(crate) is_ethernet: bool,
    /// GIDs of the port, in order.
    pub(crate) gids: Vec<[u8; 16]>,
    /// Network device behind the port, for RoCE.
    pub(crate) network_device: Option<String>,
}

impl SysfsDevice {
    /// Name of the device in `/sys/class/infiniband`.
    pub(crate) fn name(&self) -> String {
        format!("mlx5_{}", self.index)
    }
}

/// A tree in a directory of its own, removed when dropped.
#[derive(Debug)]
pub(crate) struct Sysfs {
    root: PathBuf,
    /// Who made it.
    process: u32,
    /// Locked as long as the tree is wanted.
    _alive: File,
}

impl Sysfs {
    /// A new tree without devices, in a new private directory under `parent`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        let process = std::process::id();
        remove_stale(parent);
        let root = fresh_directory(parent, PREFIX)?;
        // Locked before it has its name: whoever finds it free knows that the process was killed.
        let alive = File::create(root.join("new"))?;
        alive.lock()?;
        fs::rename(root.join("new"), root.join(ALIVE))?;
        let tree = Self { root, process, _alive: alive };
        tree.file("class/infiniband_verbs/abi_version", "6")?;
        fs::create_dir_all(tree.root.join("class/infiniband"))?;
        fs::create_dir_all(tree.root.join("bus/pci/devices"))?;
        Ok(tree)
    }

    /// The tree's place: the value for `SYSFS_PATH`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether this process made it; after a fork it is the parent's.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Take a device out of the lists. What else there is of it stays until the end.
    pub(crate) fn remove(&self, index: u32) {
        // It may have been taken out before.
        let _ = fs::remove_file(self.root.join(format!("class/infiniband_verbs/uverbs{index}")));
        let _ = fs::remove_file(self.root.join(format!("class/infiniband/mlx5_{index}")));
    }

    /// Add a device.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn add(&self, device: &SysfsDevice) -> io::Result<()> {
        let name = device.name();
        let uverbs = format!("uverbs{}", device.index);
        let pci_name = format!("0000:{:02x}:{:02x}.0", 3 + device.index / 32, device.index % 32);
        let pci = format!("devices/pci0000:00/{pci_name}");
        self.pci(&pci, device)?;
        self.uverbs(&format!("{pci}/infiniband_verbs/{uverbs}"), &name)?;
        self.ib(&format!("{pci}/infiniband/{name}"), device)?;
        symlink(format!("../../../{pci}"), self.root.join(format!("bus/pci/devices/{pci_name}")))?;
        symlink(
            format!("../../{pci}/infiniband/{name}"),
            self.root.join(format!("class/infiniband/{name}")),
        )?;
        // Last, since it is what libibverbs looks for.
        symlink(
            format!("../../{pci}/infiniband_verbs/{uverbs}"),
            self.root.join(format!("class/infiniband_verbs/{uverbs}")),
        )
    }

    /// The PCI function. A ConnectX-5, so that libmlx5's table of PCI numbers knows it.
    fn pci(&self, path: &str, device: &SysfsDevice) -> io::Result<()> {
        let class = if device.is_ethernet { "0x020000" } else { "0x020700" };
        let files = [
            ("vendor", "0x15b3"),
            ("device", "0x1017"),
            ("subsystem_vendor", "0x15b3"),
            ("subsystem_device", "0x0020"),
            ("revision", "0x00"),
            ("class", class),
            ("modalias", "pci:v000015B3d00001017sv000015B3sd00000020bc02sc07i00"),
            ("numa_node", "-1"),
            ("local_cpus", "ffffffff"),
            ("local_cpulist", "0-31"),
            ("current_link_speed", "8.0 GT/s PCIe"),
            ("current_link_width", "16"),
            ("max_link_speed", "8.0 GT/s PCIe"),
            ("max_link_width", "16"),
            ("resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000"),
            ("uevent", "DRIVER=mlx5_core"),
        ];
        for (name, value) in files {
            self.file(&format!("{path}/{name}"), value)?;
        }
        Ok(())
    }

    /// The character device. Its number is that of `/dev/zero`, which stands for it.
    fn uverbs(&self, path: &str, name: &str) -> io::Result<()> {
        self.file(&format!("{path}/ibdev"), name)?;
        self.file(&format!("{path}/dev"), "1:5")?;
        self.file(&format!("{path}/abi_version"), "1")?;
        symlink("../..", self.root.join(path).join("device"))
    }

    fn ib(&self, path: &str, device: &SysfsDevice) -> io::Result<()> {
        let guid = guid(device.node_guid);
        let files = [
            ("node_type", "1: CA"),
            ("node_guid", guid.as_str()),
            ("sys_image_guid", guid.as_str()),
            ("node_desc", "tagmatch simulated HCA"),
            ("fw_ver", "16.35.2000"),
            ("hw_rev", "0"),
            ("hca_type", "MT4119"),
            ("board_id", "TAGMATCH0SIM"),
        ];
        for (name, value) in files {
            self.file(&format!("{path}/{name}"), value)?;
        }
        symlink("../..", self.root.join(path).join("device"))?;
        self.port(&format!("{path}/ports/1"), device)
    }

    fn port(&self, path: &str, device: &SysfsDevice) -> io::Result<()> {
        let lid = format!("{:#x}", device.lid);
        let link = if device.is_ethernet { "Ethernet" } else { "InfiniBand" };
        let files = [
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "100 Gb/sec (4X EDR)"),
            ("lid", lid.as_str()),
            ("lid_mask_count", "0"),
            ("sm_lid", lid.as_str()),
            ("sm_sl", "0"),
            ("cap_mask", "0x2651e848"),
            ("link_layer", link),
            ("pkeys/0", "0xffff"),
        ];
        for (name, value) in files {
            self.file(&format!("{path}/{name}"), value)?;
        }
        for (index, gid) in device.gids.iter().enumerate() {
            self.file(&format!("{path}/gids/{index}"), &gid_text(gid))?;
            let kind = if device.is_ethernet { "RoCE v2" } else { "IB/RoCE v1" };
            self.file(&format!("{path}/gid_attrs/types/{index}"), kind)?;
            // Without a network device the file is empty, as libibverbs takes a failing read.
            let network = device.network_device.as_deref().unwrap_or_default();
            self.file(&format!("{path}/gid_attrs/ndevs/{index}"), network)?;
        }
        let counters = ["port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"];
        for counter in counters {
            self.file(&format!("{path}/counters/{counter}"), "0")?;
        }
        Ok(())
    }

    /// Write a file, with the line's end that files of sysfs have.
    fn file(&self, path: &str, value: &str) -> io::Result<()> {
        let path = self.root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if value.is_empty() { fs::write(path, "") } else { fs::write(path, format!("{value}\n")) }
    }
}

/// Remove what killed processes have left: trees whose lock is free.
fn remove_stale(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let alive = File::open(entry.path().join(ALIVE));
        if alive.is_ok_and(|alive| alive.try_lock().is_ok()) {
            // Another process may be at it as well.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

const PREFIX: &str = "tagmatch-hca-sys";
const ALIVE: &str = "alive";

/// A new directory of this user's alone.
///
/// # Errors
/// It cannot be made.
pub(crate) fn fresh_directory(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    let process = std::process::id();
    for number in 0..u32::MAX {
        let path = parent.join(format!("{prefix}-{process}-{number}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

impl Drop for Sysfs {
    fn drop(&mut self) {
        // Nobody is left who could be told of a failure.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A GUID as sysfs writes it.
fn guid(guid: u64) -> String {
    let words: Vec<String> =
        guid.to_be_bytes().chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
    words.join(":")
}

/// A GID as sysfs writes it.
fn gid_text(gid: &[u8; 16]) -> String {
    let words: Vec<String> = gid.chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1])).collect();
    words.join(":")
}
