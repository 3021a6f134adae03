//! One endpoint of an application with what belongs to it, and calls of it as the headers' inline functions make them.

use std::ffi::{c_int, c_void};
use std::ptr;

use tagmatch::provider::abi::{
    self, fi_av_attr, fi_cntr_attr, fi_cq_attr, fi_cq_err_entry, fi_cq_tagged_entry, fi_info, fi_msg,
    fi_msg_tagged, fid_av, fid_cntr, fid_cq, fid_domain, fid_ep, fid_fabric,
};

use super::library::{Fabric, fabric};
use super::ports::lasting_port;
use super::{ROUNDS, minus};

/// How a side is set up.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) caps: u64,
    pub(crate) selective: bool,
    pub(crate) wait_object: u64,
    pub(crate) threading: u64,
    pub(crate) progress: u64,
    pub(crate) format: u64,
    pub(crate) counters: bool,
    pub(crate) port: u16,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            caps: abi::FI_TAGGED | abi::FI_MSG | abi::FI_DIRECTED_RECV | abi::FI_SOURCE | abi::FI_MULTI_RECV,
            selective: false,
            wait_object: abi::FI_WAIT_NONE,
            threading: abi::FI_THREAD_SAFE,
            progress: abi::FI_PROGRESS_MANUAL,
            format: abi::FI_CQ_FORMAT_TAGGED,
            counters: false,
            port: 0,
        }
    }
}

/// See the file.
pub(crate) struct Side {
    pub(crate) fabric: *mut fid_fabric,
    pub(crate) domain: *mut fid_domain,
    pub(crate) av: *mut fid_av,
    pub(crate) cq: *mut fid_cq,
    pub(crate) sent: *mut fid_cntr,
    pub(crate) received: *mut fid_cntr,
    pub(crate) ep: *mut fid_ep,
}

// SAFETY: objects of `FI_THREAD_SAFE` domains may be used from any thread; tests use no others from several.
unsafe impl Send for Side {}
// SAFETY: as above.
unsafe impl Sync for Side {}

/// A completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Received {
    Ok { context: u64, flags: u64, length: usize, data: u64, tag: u64, source: u64 },
    Error { context: u64, error: u64, length: usize, overflow: usize, tag: u64 },
}

impl Received {
    pub(crate) const fn context(&self) -> u64 {
        match self {
            Self::Ok { context, .. } | Self::Error { context, .. } => *context,
        }
    }
}

/// The same of every fid: `fi_close`.
///
/// # Safety
/// An open object.
pub(crate) unsafe fn close<T>(object: *mut T) -> c_int {
    let fid = object.cast::<abi::fid>();
    // SAFETY: the caller's: it begins with a fid, whose table is filled.
    let close = unsafe { (*(*fid).ops).close };
    // SAFETY: the caller's.
    unsafe { close(fid) }
}

/// `fi_ep_bind` and its relatives.
///
/// # Safety
/// Open objects.
pub(crate) unsafe fn bind<T, U>(object: *mut T, other: *mut U, flags: u64) -> c_int {
    let fid = object.cast::<abi::fid>();
    // SAFETY: the caller's.
    let bind = unsafe { (*(*fid).ops).bind };
    // SAFETY: the caller's.
    unsafe { bind(fid, other.cast(), flags) }
}

/// `fi_control`.
///
/// # Safety
/// An open object and the command's argument.
pub(crate) unsafe fn control<T>(object: *mut T, command: u64, argument: *mut c_void) -> c_int {
    let fid = object.cast::<abi::fid>();
    // SAFETY: the caller's.
    let control = unsafe { (*(*fid).ops).control };
    // SAFETY: the caller's.
    unsafe { control(fid, c_int::try_from(command).unwrap(), argument) }
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap()
}

/// The address of a context, or of nothing.
pub(crate) fn at(context: u64) -> *mut c_void {
    ptr::without_provenance_mut(usize::try_from(context).unwrap())
}

impl Side {
    pub(crate) fn new() -> Self {
        Self::with(Wanted::default())
    }

    /// One that may close and come back under its name: at a port that the system gives to nobody meanwhile, neither to who
    /// listens at any port nor to who connects.
    pub(crate) fn lasting() -> Self {
        Self::with(Wanted { port: lasting_port(), ..Wanted::default() })
    }

    pub(crate) fn with(wanted: Wanted) -> Self {
        let library = fabric();
        let info = library.info_at(wanted.port, library.api(), |hints| ask(hints, &wanted)).unwrap();
        Self::open(library, info, &wanted)
    }

    /// Everything from an info on.
    pub(crate) fn open(library: &Fabric, info: *mut fi_info, wanted: &Wanted) -> Self {
        let mut side = Self::bare(library, info);
        // SAFETY: open objects, and attributes of ours.
        unsafe {
            side.open_rest(info, wanted);
            (library.freeinfo)(info);
        }
        side
    }

    fn bare(library: &Fabric, info: *mut fi_info) -> Self {
        super::counted::enter();
        let (mut opened, mut domain) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: an info of this library.
        let result = unsafe { (library.fabric)((*info).fabric_attr, &raw mut opened, ptr::null_mut()) };
        assert_eq!(result, 0, "fi_fabric");
        // SAFETY: an open fabric.
        let result = super::with_path(|| unsafe {
            ((*(*opened).ops).domain)(opened, info, &raw mut domain, ptr::null_mut())
        });
        assert_eq!(result, 0, "fi_domain");
        Self {
            fabric: opened,
            domain,
            av: ptr::null_mut(),
            cq: ptr::null_mut(),
            sent: ptr::null_mut(),
            received: ptr::null_mut(),
            ep: ptr::null_mut(),
        }
    }

    /// # Safety
    /// The info of its domain.
    unsafe fn open_rest(&mut self, info: *mut fi_info, wanted: &Wanted) {
        // SAFETY: zeros are valid attributes.
        let mut av: fi_av_attr = unsafe { std::mem::zeroed() };
        av.r#type = small(abi::FI_AV_TABLE);
        // SAFETY: zeros are valid attributes.
        let mut cq: fi_cq_attr = unsafe { std::mem::zeroed() };
        (cq.format, cq.wait_obj) = (small(wanted.format), small(wanted.wait_object));
        // SAFETY: an open domain, and tables that are filled.
        unsafe {
            let ops = &*(*self.domain).ops;
            let none = ptr::null_mut();
            assert_eq!((ops.av_open)(self.domain, &raw mut av, &raw mut self.av, none), 0);
            assert_eq!((ops.cq_open)(self.domain, &raw mut cq, &raw mut self.cq, none), 0);
            assert_eq!((ops.endpoint)(self.domain, info, &raw mut self.ep, none), 0);
            assert_eq!(bind(self.ep, self.av, 0), 0);
            let selective = if wanted.selective { abi::FI_SELECTIVE_COMPLETION } else { 0 };
            assert_eq!(bind(self.ep, self.cq, abi::FI_SEND | abi::FI_RECV | selective), 0);
            if wanted.counters {
                let mut attr: fi_cntr_attr = std::mem::zeroed();
                attr.wait_obj = small(wanted.wait_object);
                assert_eq!((ops.cntr_open)(self.domain, &raw mut attr, &raw mut self.sent, none), 0);
                assert_eq!((ops.cntr_open)(self.domain, &raw mut attr, &raw mut self.received, none), 0);
                let is_remote = wanted.caps & (abi::FI_RMA | abi::FI_ATOMIC) != 0;
                let own = if is_remote { abi::FI_READ | abi::FI_WRITE } else { 0 };
                let peers = if is_remote { abi::FI_REMOTE_READ | abi::FI_REMOTE_WRITE } else { 0 };
                assert_eq!(bind(self.ep, self.sent, abi::FI_SEND | own), 0);
                assert_eq!(bind(self.ep, self.received, abi::FI_RECV | peers), 0);
            }
            // A process that another test starts holds what was closed here until it is another program.
            let is_held = |result: c_int| {
                wanted.port != 0 && isize::try_from(result).unwrap() == minus(abi::FI_EADDRINUSE)
            };
            let mut enabled = control(self.ep, abi::FI_ENABLE, none);
            for _ in 0..super::ROUNDS {
                if !is_held(enabled) {
                    break;
                }
                std::thread::yield_now();
                enabled = control(self.ep, abi::FI_ENABLE, none);
            }
            assert_eq!(enabled, 0, "fi_enable");
        }
    }

    /// `fi_getname`.
    pub(crate) fn name(&self) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        let mut length = bytes.len();
        // SAFETY: an open endpoint, and so much room.
        let result =
            unsafe { ((*(*self.ep).cm).getname)(self.ep.cast(), bytes.as_mut_ptr().cast(), &raw mut length) };
        assert_eq!(result, 0, "fi_getname");
        bytes.truncate(length);
        bytes
    }

    /// `fi_av_insert` of one name.
    pub(crate) fn insert(&self, name: &[u8]) -> u64 {
        let mut number = 0;
        // SAFETY: an open vector and one name.
        let inserted = unsafe {
            ((*(*self.av).ops).insert)(self.av, name.as_ptr().cast(), 1, &raw mut number, 0, ptr::null_mut())
        };
        assert_eq!(inserted, 1, "fi_av_insert");
        number
    }

    /// `fi_av_remove` of one number.
    pub(crate) fn remove(&self, mut number: u64) -> c_int {
        // SAFETY: an open vector and one number.
        unsafe { ((*(*self.av).ops).remove)(self.av, &raw mut number, 1, 0) }
    }

    /// `fi_tsend`. The payload stays until its completion: the caller's.
    pub(crate) fn send(&self, to: u64, tag: u64, payload: &[u8], context: u64) -> isize {
        // SAFETY: an open endpoint; the payload is the caller's to keep.
        unsafe {
            ((*(*self.ep).tagged).send)(
                self.ep,
                payload.as_ptr().cast(),
                payload.len(),
                ptr::null_mut(),
                to,
                tag,
                at(context),
            )
        }
    }

    /// `fi_tsendmsg`.
    pub(crate) fn send_message(
        &self,
        to: u64,
        tag: u64,
        parts: &[&[u8]],
        data: u64,
        context: u64,
        flags: u64,
    ) -> isize {
        let vector: Vec<libc::iovec> = parts
            .iter()
            .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() })
            .collect();
        let message = fi_msg_tagged {
            msg_iov: vector.as_ptr(),
            desc: ptr::null_mut(),
            iov_count: vector.len(),
            addr: to,
            tag,
            ignore: 0,
            context: at(context),
            data,
        };
        // SAFETY: an open endpoint and a message of ours; the payload is the caller's to keep.
        unsafe { ((*(*self.ep).tagged).sendmsg)(self.ep, &raw const message, flags) }
    }

    /// `fi_tinject`, or with data `fi_tinjectdata`.
    pub(crate) fn inject(&self, to: u64, tag: u64, payload: &[u8], data: Option<u64>) -> isize {
        let (pointer, length) = (payload.as_ptr().cast(), payload.len());
        // SAFETY: an open endpoint, and bytes that are copied.
        unsafe {
            let ops = &*(*self.ep).tagged;
            match data {
                None => (ops.inject)(self.ep, pointer, length, to, tag),
                Some(data) => (ops.injectdata)(self.ep, pointer, length, data, to, tag),
            }
        }
    }

    /// `fi_tsenddata`.
    pub(crate) fn send_data(&self, to: u64, tag: u64, payload: &[u8], data: u64, context: u64) -> isize {
        // SAFETY: an open endpoint; the payload is the caller's to keep.
        unsafe {
            ((*(*self.ep).tagged).senddata)(
                self.ep,
                payload.as_ptr().cast(),
                payload.len(),
                ptr::null_mut(),
                data,
                to,
                tag,
                at(context),
            )
        }
    }

    /// `fi_trecv`. The buffer stays until its completion: the caller's.
    pub(crate) fn receive(
        &self,
        source: u64,
        tag: u64,
        ignore: u64,
        buffer: &mut [u8],
        context: u64,
    ) -> isize {
        // SAFETY: an open endpoint; the buffer is the caller's to keep.
        unsafe {
            ((*(*self.ep).tagged).recv)(
                self.ep,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                ptr::null_mut(),
                source,
                tag,
                ignore,
                at(context),
            )
        }
    }

    /// `fi_trecvmsg` from anybody, with one stretch at most.
    pub(crate) fn receive_message(
        &self,
        tag: u64,
        ignore: u64,
        buffer: Option<&mut [u8]>,
        context: u64,
        flags: u64,
    ) -> isize {
        let stretch =
            buffer.map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
        let message = fi_msg_tagged {
            msg_iov: stretch.as_ref().map_or(ptr::null(), ptr::from_ref),
            desc: ptr::null_mut(),
            iov_count: usize::from(stretch.is_some()),
            addr: abi::FI_ADDR_UNSPEC,
            tag,
            ignore,
            context: at(context),
            data: 0,
        };
        // SAFETY: an open endpoint and a message of ours; the buffer is the caller's to keep.
        unsafe { ((*(*self.ep).tagged).recvmsg)(self.ep, &raw const message, flags) }
    }

    /// `fi_send` and `fi_recv`.
    pub(crate) fn send_untagged(&self, to: u64, payload: &[u8], context: u64) -> isize {
        // SAFETY: an open endpoint; the payload is the caller's to keep.
        unsafe {
            ((*(*self.ep).msg).send)(
                self.ep,
                payload.as_ptr().cast(),
                payload.len(),
                ptr::null_mut(),
                to,
                at(context),
            )
        }
    }

    /// `fi_recvmsg` from anybody.
    pub(crate) fn receive_untagged(&self, buffer: &mut [u8], context: u64, flags: u64) -> isize {
        let stretch = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let message = fi_msg {
            msg_iov: &raw const stretch,
            desc: ptr::null_mut(),
            iov_count: 1,
            addr: abi::FI_ADDR_UNSPEC,
            context: at(context),
            data: 0,
        };
        // SAFETY: an open endpoint and a message of ours; the buffer is the caller's to keep.
        unsafe { ((*(*self.ep).msg).recvmsg)(self.ep, &raw const message, flags) }
    }

    /// `fi_cancel`.
    pub(crate) fn cancel(&self, context: u64) -> isize {
        // SAFETY: an open endpoint.
        unsafe { ((*(*self.ep).ops).cancel)(self.ep.cast(), at(context)) }
    }

    /// One `fi_cq_readfrom`, and `fi_cq_readerr` if that says so.
    pub(crate) fn poll(&self) -> Option<Received> {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_tagged_entry = unsafe { std::mem::zeroed() };
        let mut source = 0;
        // SAFETY: an open queue, and room for one entry of its format at least.
        let read =
            unsafe { ((*(*self.cq).ops).readfrom)(self.cq, (&raw mut entry).cast(), 1, &raw mut source) };
        match read {
            1 => Some(Received::Ok {
                context: entry.op_context.addr() as u64,
                flags: entry.flags,
                length: entry.len,
                data: entry.data,
                tag: entry.tag,
                source,
            }),
            again if again == minus(abi::FI_EAGAIN) => None,
            error if error == minus(abi::FI_EAVAIL) => self.poll_error(),
            other => panic!("fi_cq_readfrom returned {other}"),
        }
    }

    /// `fi_cq_readerr`.
    pub(crate) fn poll_error(&self) -> Option<Received> {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, and an entry.
        let read = unsafe { ((*(*self.cq).ops).readerr)(self.cq, &raw mut entry, 0) };
        if read == minus(abi::FI_EAGAIN) {
            return None;
        }
        assert_eq!(read, 1, "fi_cq_readerr");
        Some(Received::Error {
            context: entry.op_context.addr() as u64,
            error: u64::try_from(entry.err).unwrap(),
            length: entry.len,
            overflow: entry.olen,
            tag: entry.tag,
        })
    }

    /// The next completion of this side, while the others are moved on.
    pub(crate) fn next(&self, others: &[&Self]) -> Received {
        for _ in 0..ROUNDS {
            if let Some(received) = self.poll() {
                return received;
            }
            for other in others {
                other.progress();
            }
        }
        panic!("nothing came");
    }

    /// Move on without taking anything: what comes stays in the queue.
    pub(crate) fn progress(&self) {
        // SAFETY: an open queue; no entry is asked for.
        unsafe { ((*(*self.cq).ops).read)(self.cq, ptr::null_mut(), 0) };
    }

    /// Send until it is taken, while both sides are moved on.
    pub(crate) fn send_surely(&self, others: &[&Self], call: impl Fn(&Self) -> isize) {
        for _ in 0..ROUNDS {
            match call(self) {
                0 => return,
                again if again == minus(abi::FI_EAGAIN) => {
                    self.progress();
                    others.iter().for_each(|other| other.progress());
                }
                other => panic!("a send returned {other}"),
            }
        }
        panic!("a send was never taken");
    }
}

/// Write into hints what is wanted.
pub(crate) fn ask(hints: &mut fi_info, wanted: &Wanted) {
    hints.caps = wanted.caps;
    hints.mode = abi::FI_CONTEXT;
    // SAFETY: hints of `fi_dupinfo` have all parts.
    let (ep, domain) = unsafe { (&mut *hints.ep_attr, &mut *hints.domain_attr) };
    ep.r#type = small(abi::FI_EP_RDM);
    domain.threading = small(wanted.threading);
    domain.data_progress = small(wanted.progress);
}

impl Drop for Side {
    fn drop(&mut self) {
        if std::thread::panicking() {
            super::counted::leave();
            return;
        }
        // SAFETY: open objects, each closed once and before what it belongs to.
        unsafe {
            assert_eq!(close(self.ep), 0, "fi_close of the endpoint");
            for counter in [self.sent, self.received] {
                if !counter.is_null() {
                    assert_eq!(close(counter), 0);
                }
            }
            assert_eq!(close(self.cq), 0);
            assert_eq!(close(self.av), 0);
            assert_eq!(close(self.domain), 0);
            assert_eq!(close(self.fabric), 0);
        }
        super::counted::leave();
    }
}
