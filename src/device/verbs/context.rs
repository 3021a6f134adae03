//! Devices and ports: which there are, what they can do, and an open one.

use std::ffi::CStr;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::error::{Errno, VerbsError};
use super::sys::{self, Library, types};

/// A verbs device that libibverbs sees.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DeviceEntry {
    /// Its name, as `ibv_devices` shows it.
    pub name: String,
    /// `enum ibv_node_type`; 1 an HCA (InfiniBand or RoCE), 4 an iWARP card.
    pub node_type: u32,
}

/// All verbs devices of this machine. Empty: libibverbs is there, and sees none.
///
/// # Errors
/// [`VerbsError::NoLibrary`], or the list cannot be read.
pub fn devices() -> Result<Vec<DeviceEntry>, VerbsError> {
    let list = DeviceList::read()?;
    Ok(list.devices().map(entry).collect())
}

/// An open device. Clones share it; it is closed when the last of them and of all objects made from it is gone.
#[derive(Clone, Debug)]
pub struct Context(Arc<Open>);

impl Context {
    /// Open a device: the one of this name, or the first.
    ///
    /// # Errors
    /// There is none (the error lists what there is), or it cannot be opened.
    pub fn open(name: Option<&str>) -> Result<Self, VerbsError> {
        let list = DeviceList::read()?;
        let found = list.devices().map(|device| (device, entry(device)));
        let mut found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(VerbsError::NoDevice);
        }
        if let Some(wanted) = name {
            let there = found.iter().map(|(_, entry)| entry.name.as_str()).collect::<Vec<_>>().join(", ");
            found.retain(|(_, entry)| entry.name == wanted);
            if found.is_empty() {
                return Err(VerbsError::UnknownDevice { wanted: wanted.to_owned(), there });
            }
        }
        let Some((device, DeviceEntry { name, .. })) = found.into_iter().next() else {
            return Err(VerbsError::NoDevice);
        };
        // SAFETY: the device is in the list, which is still there.
        let raw = unsafe { (list.library.ibv_open_device)(device) };
        if raw.is_null() {
            return Err(VerbsError::call("ibv_open_device", &name, Errno::last()));
        }
        let open = Open { raw, library: list.library, name };
        open.events_without_waiting()?;
        Ok(Self(Arc::new(open)))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it can do.
    ///
    /// # Errors
    /// The query failed.
    pub fn limits(&self) -> Result<Limits, VerbsError> {
        // SAFETY: all fields are numbers, for which zero is a value.
        let mut attr: types::ibv_device_attr_ex = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open.
        let mut errno = unsafe { sys::inline::query_device_ex(self.raw(), &mut attr) };
        if errno == libc::EOPNOTSUPP || errno == libc::ENOSYS {
            // As the header does it: a provider without the extended query says nothing beyond the old one.
            attr.tm_caps = types::ibv_tm_caps::default();
            // SAFETY: the context is open.
            errno = unsafe { (self.library().ibv_query_device)(self.raw(), &raw mut attr.orig_attr) };
        }
        if errno != 0 {
            return Err(VerbsError::call("ibv_query_device_ex", self.name(), Errno::returned(errno)));
        }
        Ok(Limits::new(&attr))
    }

    /// A port, from 1.
    ///
    /// # Errors
    /// It has no such port, or the query failed.
    pub fn port(&self, number: u8) -> Result<Port, VerbsError> {
        let ports = self.limits()?.ports;
        if number == 0 || number > ports {
            return Err(VerbsError::NoPort { device: self.name().to_owned(), port: number, ports });
        }
        let mut attr = types::ibv_port_attr::default();
        // SAFETY: the context is open.
        let errno = unsafe { sys::inline::query_port(self.library(), self.raw(), number, &mut attr) };
        if errno != 0 {
            return Err(VerbsError::call("ibv_query_port", self.name(), Errno::returned(errno)));
        }
        Ok(Port::new(number, &attr))
    }

    /// The first port that carries something.
    ///
    /// # Errors
    /// None does, or a query failed.
    pub fn active_port(&self) -> Result<Port, VerbsError> {
        let ports = self.limits()?.ports;
        let mut first = None;
        for number in 1..=ports {
            let port = self.port(number)?;
            if port.is_active() {
                return Ok(port);
            }
            first.get_or_insert(port);
        }
        let no_port = || VerbsError::NoPort { device: self.name().to_owned(), port: 1, ports };
        Err(first.as_ref().map_or_else(no_port, |port| self.port_down(port)))
    }

    pub(super) fn port_down(&self, port: &Port) -> VerbsError {
        VerbsError::PortDown { device: self.name().to_owned(), port: port.number, state: port.state }
    }

    /// An entry of a port's GID table, and its type (`enum ibv_gid_type`) where the library tells.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn gid(&self, port: u8, index: u8) -> Result<([u8; 16], Option<u32>), VerbsError> {
        let failed = |call, errno| Err(VerbsError::call(call, self.name(), errno));
        if let Some(query) = self.library().query_gid_ex {
            let mut entry = types::ibv_gid_entry::default();
            let size = size_of::<types::ibv_gid_entry>();
            // SAFETY: the context is open; the function knows the size of the entry.
            let errno = unsafe { query(self.raw(), port.into(), index.into(), &raw mut entry, 0, size) };
            return match errno {
                0 => Ok((entry.gid.raw, Some(entry.gid_type))),
                errno => failed("ibv_query_gid_ex", Errno::returned(errno)),
            };
        }
        let mut gid = types::ibv_gid::default();
        // SAFETY: the context is open.
        let result = unsafe { (self.library().ibv_query_gid)(self.raw(), port, index.into(), &raw mut gid) };
        if result == 0 { Ok((gid.raw, None)) } else { failed("ibv_query_gid", Errno::last()) }
    }

    /// Readable when there is an asynchronous event.
    pub(super) fn event_descriptor(&self) -> i32 {
        // SAFETY: the context is open.
        unsafe { (*self.raw()).async_fd }
    }

    /// The oldest asynchronous event that was not asked for yet. Never waits.
    #[must_use]
    pub fn poll_event(&self) -> Option<AsyncEvent> {
        let mut event = types::ibv_async_event { element: ptr::null_mut(), event_type: u32::MAX };
        // SAFETY: the context is open, and its descriptor does not wait.
        let result = unsafe { (self.library().ibv_get_async_event)(self.raw(), &raw mut event) };
        if result != 0 {
            return None;
        }
        let told = AsyncEvent { kind: event.event_type, object: event.element.addr() };
        // SAFETY: the event comes from the call above. At once, since an object's destruction waits for it.
        unsafe { (self.library().ibv_ack_async_event)(&raw mut event) };
        Some(told)
    }

    pub(super) fn raw(&self) -> *mut types::ibv_context {
        self.0.raw
    }

    pub(super) fn library(&self) -> &'static Library {
        self.0.library
    }

    /// An error of a call that left its reason in `errno`.
    pub(super) fn failed(&self, call: &'static str) -> VerbsError {
        VerbsError::call(call, self.name(), Errno::last())
    }

    /// An error of a call that returned its reason.
    pub(super) fn returned(&self, call: &'static str, errno: i32) -> VerbsError {
        VerbsError::call(call, self.name(), Errno::returned(errno))
    }
}

/// Something that a device says by itself (`ibv_get_async_event(3)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AsyncEvent {
    /// `enum ibv_event_type`
    pub kind: u32,
    /// The address of the object that it is about; of a port its number.
    pub object: usize,
}

/// What a device can do (`ibv_query_device_ex(3)`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// The firmware's version.
    pub firmware: String,
    /// `vendor_id` and `vendor_part_id`
    pub vendor: (u32, u32),
    /// Ports.
    pub ports: u8,
    /// QPs.
    pub queue_pairs: u32,
    /// Requests in a work queue.
    pub work_requests: u32,
    /// Segments of a request.
    pub segments: u32,
    /// Entries of a completion queue.
    pub completions: u32,
    /// Receives in an SRQ.
    pub shared_receives: u32,
    /// READs under way as their target, and as their issuer.
    pub reads: (u8, u8),
    /// Bytes of a memory region.
    pub region: u64,
    /// Tag matching, if there is any.
    pub tag_matching: Option<TagMatchingLimits>,
}

/// What a device's tag matching can do (`tm_caps`, TM-CONTRACT 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TagMatchingLimits {
    /// `max_num_tags`
    pub tags: u32,
    /// `max_ops`
    pub operations: u32,
    /// `max_sge`
    pub segments: u32,
    /// `max_rndv_hdr_size`: bytes of a rendezvous request, headers included.
    pub rendezvous_header: u32,
    /// `IBV_TM_CAP_RC`: the device reads the data of a matched rendezvous. It may match and not do that.
    pub rendezvous: bool,
}

impl Limits {
    fn new(attr: &types::ibv_device_attr_ex) -> Self {
        let (base, tm) = (&attr.orig_attr, &attr.tm_caps);
        let firmware: Vec<u8> =
            base.fw_ver.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect();
        let count = |value: i32| u32::try_from(value).unwrap_or(0);
        let small = |value: i32| u8::try_from(value.clamp(0, 255)).unwrap_or(0);
        let tag_matching = (tm.max_num_tags > 0).then_some(TagMatchingLimits {
            tags: tm.max_num_tags,
            operations: tm.max_ops,
            segments: tm.max_sge,
            rendezvous_header: tm.max_rndv_hdr_size,
            rendezvous: tm.flags & sys::IBV_TM_CAP_RC != 0,
        });
        Self {
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            vendor: (base.vendor_id, base.vendor_part_id),
            ports: base.phys_port_cnt,
            queue_pairs: count(base.max_qp),
            work_requests: count(base.max_qp_wr),
            segments: count(base.max_sge),
            completions: count(base.max_cqe),
            shared_receives: count(base.max_srq_wr),
            reads: (small(base.max_qp_rd_atom), small(base.max_qp_init_rd_atom)),
            region: base.max_mr_size,
            tag_matching,
        }
    }
}

/// A port of a device (`ibv_query_port(3)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Port {
    /// From 1.
    pub number: u8,
    /// `enum ibv_port_state`
    pub state: u32,
    /// What it is.
    pub link: LinkLayer,
    /// Its address on InfiniBand.
    pub lid: u16,
    /// `enum ibv_mtu` as the link has it, 1 to 5.
    pub mtu: u8,
    /// Bytes of the longest message.
    pub message: u32,
    /// Entries of its GID table.
    pub gids: u32,
    /// Whether every address must have a GID (`IBV_QPF_GRH_REQUIRED`).
    pub needs_gid: bool,
}

impl Port {
    fn new(number: u8, attr: &types::ibv_port_attr) -> Self {
        let link = match u32::from(attr.link_layer) {
            sys::IBV_LINK_LAYER_ETHERNET => LinkLayer::Ethernet,
            // Unspecified: a library from before there was anything else.
            _ => LinkLayer::InfiniBand,
        };
        let needs_gid = link == LinkLayer::Ethernet || u32::from(attr.flags) & sys::IBV_QPF_GRH_REQUIRED != 0;
        Self {
            number,
            state: attr.state,
            link,
            lid: attr.lid,
            mtu: u8::try_from(attr.active_mtu.clamp(sys::IBV_MTU_256, sys::IBV_MTU_4096)).unwrap_or(1),
            message: attr.max_msg_sz,
            gids: u32::try_from(attr.gid_tbl_len).unwrap_or(0),
            needs_gid,
        }
    }

    /// Whether it carries anything.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.state == sys::IBV_PORT_ACTIVE
    }
}

/// What a port is connected to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
}

struct Open {
    raw: *mut types::ibv_context,
    library: &'static Library,
    name: String,
}

// SAFETY: libibverbs locks what threads share, and a context may be used by any thread.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Open {
    /// Asking for an event must not wait for one.
    fn events_without_waiting(&self) -> Result<(), VerbsError> {
        // SAFETY: the context is open.
        let descriptor = unsafe { (*self.raw).async_fd };
        // SAFETY: a descriptor of the context.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        // SAFETY: a descriptor of the context.
        let result = unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK) };
        if flags < 0 || result < 0 {
            return Err(VerbsError::call("fcntl(async_fd)", &self.name, Errno::last()));
        }
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: every object made from the context holds it and is gone. A failure leaves nothing to be done.
        let _errno = unsafe { (self.library.ibv_close_device)(self.raw) };
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.name).finish()
    }
}

/// The library's list, freed when it goes. What was opened from it stays open.
struct DeviceList {
    library: &'static Library,
    list: *mut *mut types::ibv_device,
    count: usize,
}

impl DeviceList {
    fn read() -> Result<Self, VerbsError> {
        let library = sys::library().map_err(VerbsError::NoLibrary)?;
        let mut count = 0;
        // SAFETY: no preconditions.
        let list = unsafe { (library.ibv_get_device_list)(&raw mut count) };
        if list.is_null() {
            // ENOSYS: the kernel has no RDMA at all.
            return match Errno::last() {
                Errno(libc::ENOSYS) => Err(VerbsError::NoDevice),
                errno => Err(VerbsError::call("ibv_get_device_list", "this machine", errno)),
            };
        }
        Ok(Self { library, list, count: usize::try_from(count).unwrap_or(0) })
    }

    fn devices(&self) -> impl Iterator<Item = *mut types::ibv_device> + '_ {
        (0..self.count).map(|index| {
            let place = self.list.wrapping_add(index);
            // SAFETY: the list has so many entries.
            unsafe { *place }
        })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list comes from `ibv_get_device_list`, and nothing of it is used any more.
        unsafe { (self.library.ibv_free_device_list)(self.list) };
    }
}

/// The device is in a list that is still there.
fn entry(device: *mut types::ibv_device) -> DeviceEntry {
    // SAFETY: the device exists.
    let name = unsafe { &raw const (*device).name };
    // SAFETY: its name ends with 0 inside its field.
    let name = unsafe { CStr::from_ptr(name.cast()) };
    // SAFETY: the device exists.
    let node_type = unsafe { (*device).node_type };
    DeviceEntry { name: name.to_string_lossy().into_owned(), node_type }
}
