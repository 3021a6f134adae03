//! A provider of the installed libfabric as a port: an endpoint of `FI_EP_RDM` that sends messages with a tag.
//!
//! It asks for what an MPI asks for: order of sends, receives of one source where the provider can (`FI_DIRECTED_RECV`),
//! one thread. Short messages are injected. Memory is not registered: providers that want that are no peers here.
#![allow(unsafe_code, reason = "calls of a C library, and memory that it knows")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a table is reached through two pointers")]

use super::control::stopped;
use super::plan::Setup;
use super::port::{Done, Port, Sending, Sent, Wanted};
use super::work::contexts;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::ptr;
use tagmatch::provider::abi::{
    self, fi_av_attr, fi_cq_attr, fi_cq_err_entry, fi_cq_tagged_entry, fi_info, fid, fid_av, fid_cq,
    fid_domain, fid_ep, fid_fabric,
};
use tagmatch::provider::client::{Infos, Library};
use tagmatch::seam::Buffer;

/// See the module.
#[derive(Debug)]
pub(super) struct Fabric {
    library: Library,
    objects: Objects,
    peer: u64,
    /// What the other half's endpoint has in /dev/shm, if it does.
    leftover: Option<PathBuf>,
    /// Whether receives can name a source.
    is_directed: bool,
    inject_max: usize,
    what: String,
    /// `struct fi_context2`, one for each operation that may be under way. It is never freed.
    contexts: &'static mut [[u64; 8]],
    /// Read and not handed out yet, the last first.
    read: Vec<Done>,
}

/// What was opened; null: it was not.
#[derive(Debug)]
struct Objects {
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: *mut fid_ep,
}

impl Fabric {
    /// This provider, at an address of this host.
    pub(super) fn open(provider: &str, address: IpAddr, setup: &Setup) -> Result<Self, String> {
        let library = Library::open()?;
        let wanted = contexts(setup);
        let (infos, is_directed) = infos(&library, provider, address, wanted)?;
        let info = infos.first();
        let objects = Objects::open(&library, info, wanted)?;
        // SAFETY: an info of the library, which has all parts.
        let inject_max = unsafe { (*(*info).tx_attr).inject_size };
        let name = infos.providers().into_iter().next().unwrap_or_default();
        let (major, minor) = (library.version >> 16, library.version & 0xffff);
        let source = if is_directed { "" } else { ", no receives of one source" };
        let what = format!("libfabric {major}.{minor}, provider {name}{source}");
        let contexts: &'static mut [[u64; 8]] = vec![[0; 8]; wanted].leak();
        let (peer, read) = (abi::FI_ADDR_UNSPEC, Vec::with_capacity(ENTRIES));
        let leftover = None;
        Ok(Self { library, objects, peer, leftover, is_directed, inject_max, what, contexts, read })
    }

    /// The same, with what messages go over in its words.
    pub(super) fn over(mut self, over: &str) -> Self {
        self.what += ", ";
        self.what += over;
        self
    }

    #[inline]
    fn context(&mut self, number: usize) -> *mut c_void {
        ptr::from_mut(&mut self.contexts[number]).cast()
    }

    /// Whose context it is.
    #[inline]
    fn number(&self, context: *const c_void) -> Result<usize, String> {
        let distance = context.addr().wrapping_sub(self.contexts.as_ptr().addr());
        let number = distance / size_of::<[u64; 8]>();
        if number < self.contexts.len() && distance.is_multiple_of(size_of::<[u64; 8]>()) {
            Ok(number)
        } else {
            Err(format!("a completion has the context {context:p}, which was never given"))
        }
    }

    /// Taken, or not now.
    #[inline]
    fn taken(&self, call: &str, result: isize) -> Result<bool, String> {
        match result {
            0 => Ok(true),
            again if again == minus(abi::FI_EAGAIN) => Ok(false),
            error => Err(format!("{call}: {}", self.library.words(error))),
        }
    }

    #[cold]
    fn failure(&self) -> String {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        let cq = self.objects.cq;
        // SAFETY: an open queue and its table.
        let readerr = unsafe { (*(*cq).ops).readerr };
        // SAFETY: an open queue, and an entry.
        let read = unsafe { readerr(cq, &raw mut entry, 0) };
        if read == 1 {
            let error = self.library.words(isize::try_from(entry.err).unwrap_or(isize::MIN));
            format!("an operation failed: {error}")
        } else {
            format!("fi_cq_readerr: {}", self.library.words(read))
        }
    }

    /// Read what there is.
    #[inline]
    fn read(&mut self) -> Result<(), String> {
        // SAFETY: zeros are valid entries.
        let mut entries: [fi_cq_tagged_entry; ENTRIES] = unsafe { std::mem::zeroed() };
        let cq = self.objects.cq;
        // SAFETY: an open queue and its table.
        let read = unsafe { (*(*cq).ops).read };
        // SAFETY: an open queue, and room for so many entries of its format.
        let count = unsafe { read(cq, entries.as_mut_ptr().cast(), ENTRIES) };
        if count == minus(abi::FI_EAGAIN) {
            return Ok(());
        }
        let Ok(count) = usize::try_from(count) else {
            return Err(if count == minus(abi::FI_EAVAIL) {
                self.failure()
            } else {
                format!("fi_cq_read: {}", self.library.words(count))
            });
        };
        for entry in entries.iter().take(count).rev() {
            let context = self.number(entry.op_context)?;
            self.read.push(if entry.flags & abi::FI_RECV != 0 {
                Done::Received { context, tag: entry.tag, length: entry.len }
            } else {
                Done::Sent { context }
            });
        }
        Ok(())
    }
}

impl Port for Fabric {
    fn name(&self) -> Vec<u8> {
        let mut bytes = vec![0; NAME_MAX];
        let mut length = bytes.len();
        let ep = self.objects.ep;
        // SAFETY: an open endpoint and its table.
        let getname = unsafe { (*(*ep).cm).getname };
        // SAFETY: an open endpoint, and so much room.
        let result = unsafe { getname(ep.cast(), bytes.as_mut_ptr().cast(), &raw mut length) };
        bytes.truncate(if result == 0 { length } else { 0 });
        bytes
    }

    fn what(&self) -> String {
        self.what.clone()
    }

    fn meet(&mut self, name: &[u8]) -> Result<(), String> {
        self.leftover = leftover(name);
        // As long as the longest, since a length is not told.
        let mut name = name.to_vec();
        name.resize(NAME_MAX.max(name.len() + 1), 0);
        let av = self.objects.av;
        // SAFETY: an open vector and its table.
        let insert = unsafe { (*(*av).ops).insert };
        // SAFETY: an open vector and one name.
        let inserted = unsafe { insert(av, name.as_ptr().cast(), 1, &raw mut self.peer, 0, ptr::null_mut()) };
        if inserted == 1 { Ok(()) } else { Err(format!("fi_av_insert returned {inserted}")) }
    }

    #[inline]
    fn post(&mut self, wanted: Wanted, buffer: &Buffer, context: usize) -> Result<bool, String> {
        let source = if wanted.any_source || !self.is_directed { abi::FI_ADDR_UNSPEC } else { self.peer };
        let (address, length) = place(buffer, buffer.length)?;
        let (ep, context) = (self.objects.ep, self.context(context));
        // SAFETY: an open endpoint and its table.
        let receive = unsafe { (*(*ep).tagged).recv };
        let none = ptr::null_mut();
        // SAFETY: an open endpoint; memory and context stay to the end of the process.
        let result =
            unsafe { receive(ep, address, length, none, source, wanted.tag, wanted.ignore, context) };
        self.taken("fi_trecv", result)
    }

    #[inline]
    fn send(&mut self, tag: u64, memory: &Sent, length: usize, context: usize) -> Result<Sending, String> {
        let ep = self.objects.ep;
        // SAFETY: an open endpoint and its table.
        let tagged = unsafe { &*(*ep).tagged };
        if let Some(short) = memory.short.get(..length).filter(|_| length <= self.inject_max) {
            // SAFETY: an open endpoint, and bytes that are copied.
            let result = unsafe { (tagged.inject)(ep, short.as_ptr().cast(), length, self.peer, tag) };
            let is_taken = self.taken("fi_tinject", result)?;
            return Ok(if is_taken { Sending::Over } else { Sending::Again });
        }
        let (address, length) = place(&memory.memory, length as u64)?;
        let context = self.context(context);
        let none = ptr::null_mut();
        // SAFETY: an open endpoint; memory and context stay to the end of the process.
        let result =
            unsafe { (tagged.send)(ep, address.cast_const(), length, none, self.peer, tag, context) };
        let is_taken = self.taken("fi_tsend", result)?;
        Ok(if is_taken { Sending::Underway } else { Sending::Again })
    }

    #[inline]
    fn poll(&mut self) -> Result<Option<Done>, String> {
        if self.read.is_empty() {
            self.read()?;
        }
        Ok(self.read.pop())
    }
}

/// The infos of this provider, and whether its receives can name a source.
fn infos(library: &Library, provider: &str, address: IpAddr, wanted: usize) -> Result<(Infos, bool), String> {
    let node = CString::new(address.to_string()).map_err(|error| error.to_string())?;
    let name = CString::new(provider).map_err(|_| format!("{provider:?} is no name"))?;
    let mut last = -libc::ENODATA;
    // With room for all that is posted first; who cannot say so is asked for none.
    for (caps, room) in [(DIRECTED, wanted), (DIRECTED, 0), (0, wanted), (0, 0)] {
        // What has no addresses of a network names itself.
        for at in [None, Some((node.as_c_str(), 0))].into_iter().skip(usize::from(!is_local(provider))) {
            match library.infos(library.api(), at, |hints| ask(hints, &name, caps, room)) {
                Ok(infos) => return Ok((infos, caps != 0)),
                Err(error) => last = error,
            }
        }
    }
    let why = library.words(isize::try_from(last).unwrap_or(isize::MIN));
    Err(format!(
        "libfabric has no provider of this name with messages that have a tag ({why}); it has {}; UCX is called ucx",
        there_are(library)
    ))
}

/// Providers with addresses of their own, which a name of the network would only confuse.
fn is_local(provider: &str) -> bool {
    ["shm", "sm2"].contains(&provider)
}

/// Names of the providers that could be measured.
fn there_are(library: &Library) -> String {
    let any = library.infos(library.api(), None, |hints| ask(hints, c"", 0, 0));
    let names = any.map(|infos| infos.providers()).unwrap_or_default();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Write into hints what is wanted.
fn ask(hints: &mut fi_info, provider: &CStr, caps: u64, room: usize) {
    hints.caps = abi::FI_TAGGED | caps;
    hints.mode = abi::FI_CONTEXT | abi::FI_CONTEXT2;
    // SAFETY: hints of `fi_dupinfo` have all parts, and nobody else knows them.
    let (ep, domain) = unsafe { (&mut *hints.ep_attr, &mut *hints.domain_attr) };
    // SAFETY: as above.
    let (tx, rx) = unsafe { (&mut *hints.tx_attr, &mut *hints.rx_attr) };
    ep.r#type = small(abi::FI_EP_RDM);
    domain.threading = small(abi::FI_THREAD_DOMAIN);
    domain.mr_mode = 0;
    (tx.msg_order, rx.msg_order) = (abi::FI_ORDER_SAS, abi::FI_ORDER_SAS);
    rx.size = room;
    if !provider.is_empty() {
        // SAFETY: a string, copied into memory of the C library, which frees it with the hints.
        let name = unsafe { libc::strdup(provider.as_ptr()) };
        // SAFETY: as above.
        unsafe { (*hints.fabric_attr).prov_name = name };
    }
}

impl Objects {
    fn open(library: &Library, info: *mut fi_info, completions: usize) -> Result<Self, String> {
        let mut objects = Self {
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            av: ptr::null_mut(),
            cq: ptr::null_mut(),
            ep: ptr::null_mut(),
        };
        let none = ptr::null_mut();
        let check = |call: &str, result: c_int| match result {
            0 => Ok(()),
            error => Err(format!("{call}: {}", library.words(isize::try_from(error).unwrap_or(isize::MIN)))),
        };
        // SAFETY: an info of this library.
        let result = unsafe { (library.fabric)((*info).fabric_attr, &raw mut objects.fabric, none) };
        check("fi_fabric", result)?;
        // SAFETY: an open fabric and its table.
        let domain = unsafe { (*(*objects.fabric).ops).domain };
        // SAFETY: an open fabric, and an info of it.
        check("fi_domain", unsafe { domain(objects.fabric, info, &raw mut objects.domain, none) })?;
        // SAFETY: zeros are valid attributes.
        let mut av: fi_av_attr = unsafe { std::mem::zeroed() };
        // SAFETY: zeros are valid attributes.
        let mut cq: fi_cq_attr = unsafe { std::mem::zeroed() };
        (cq.format, cq.size) = (small(abi::FI_CQ_FORMAT_TAGGED), completions);
        av.count = 1;
        // SAFETY: an open domain and its table.
        let ops = unsafe { &*(*objects.domain).ops };
        // SAFETY: an open domain and attributes.
        check("fi_av_open", unsafe {
            (ops.av_open)(objects.domain, &raw mut av, &raw mut objects.av, none)
        })?;
        // SAFETY: as above.
        check("fi_cq_open", unsafe {
            (ops.cq_open)(objects.domain, &raw mut cq, &raw mut objects.cq, none)
        })?;
        // SAFETY: as above, and an info of this domain.
        check("fi_endpoint", unsafe { (ops.endpoint)(objects.domain, info, &raw mut objects.ep, none) })?;
        // SAFETY: an open endpoint and its table.
        let ep = unsafe { &*(*objects.ep).fid.ops };
        let own: *mut fid = objects.ep.cast();
        // SAFETY: open objects of one domain.
        check("fi_ep_bind of the vector", unsafe { (ep.bind)(own, objects.av.cast(), 0) })?;
        // SAFETY: as above.
        check("fi_ep_bind of the queue", unsafe {
            (ep.bind)(own, objects.cq.cast(), abi::FI_SEND | abi::FI_RECV)
        })?;
        let enable = c_int::try_from(abi::FI_ENABLE).unwrap_or_default();
        // SAFETY: an endpoint with all that it needs.
        check("fi_enable", unsafe { (ep.control)(own, enable, none) })?;
        Ok(objects)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let Self { fabric, domain, av, cq, ep } = *self;
        let objects: [*mut fid; 5] = [ep.cast(), cq.cast(), av.cast(), domain.cast(), fabric.cast()];
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            // SAFETY: an open object and its table.
            let close = unsafe { (*(*object).ops).close };
            // SAFETY: open, closed once, and before what it belongs to. What cannot be closed stays.
            let _ = unsafe { close(object) };
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // A process that is killed leaves what its provider had there, and nobody but this one knows.
        if let Some(file) = self.leftover.as_ref().filter(|_| stopped()) {
            // It is gone if the other half closed it itself.
            let _ = fs::remove_file(file);
        }
    }
}

/// The file behind a name of the provider shm: `fi_shm://` and three numbers with colons. Nothing else is believed.
fn leftover(name: &[u8]) -> Option<PathBuf> {
    let name = CStr::from_bytes_until_nul(name).ok()?.to_str().ok()?.strip_prefix("fi_shm://")?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_file = name.split(':').count() == 3 && name.split(':').all(is_number);
    is_file.then(|| Path::new("/dev/shm").join(name))
}

/// Address and length of the beginning of a buffer.
fn place(buffer: &Buffer, length: u64) -> Result<(*mut c_void, usize), String> {
    let number = |value: u64| usize::try_from(value).map_err(|error| error.to_string());
    Ok((ptr::with_exposed_provenance_mut(number(buffer.address)?), number(length)?))
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or_default()
}

/// The negative of an error code, as calls return it.
fn minus(code: u64) -> isize {
    isize::try_from(code).map_or(isize::MIN, |code| -code)
}

const DIRECTED: u64 = abi::FI_DIRECTED_RECV;
/// Completions that are read at a time.
const ENTRIES: usize = 16;
/// The longest name of an endpoint.
const NAME_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_provider_shm_are_taken_for_leftovers() {
        assert_eq!(leftover(b"fi_shm://12:0:3\0\0"), Some(PathBuf::from("/dev/shm/12:0:3")));
        let others: [&[u8]; 6] = [
            b"fi_shm://12:0:3",
            b"fi_shm://../12:0:3\0",
            b"fi_shm://12:0:\0",
            b"fi_shm://a\0",
            b"12:0:3\0",
            b"",
        ];
        for name in others {
            assert_eq!(leftover(name), None, "{name:?}");
        }
    }
}
