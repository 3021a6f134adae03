//! A fabric, an event queue, a domain and endpoints of one application that is connected to itself.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use super::common::side::{at, bind, close, control};
use super::common::{fabric, minus};
use tagmatch::provider::abi::{
    self, fi_cq_attr, fi_cq_err_entry, fi_cq_tagged_entry, fi_eq_attr, fi_eq_cm_entry, fi_eq_err_entry,
    fi_info, fid, fid_cq, fid_domain, fid_ep, fid_eq, fid_fabric, fid_pep,
};

/// See the file.
pub(crate) struct Host {
    pub(crate) info: *mut fi_info,
    fabric: *mut fid_fabric,
    pub(crate) eq: *mut fid_eq,
    pub(crate) domain: *mut fid_domain,
    contexts: Cell<u64>,
}

/// An endpoint with a queue of its own.
pub(crate) struct End<'a> {
    host: &'a Host,
    pub(crate) ep: *mut fid_ep,
    cq: *mut fid_cq,
    /// An event queue of its own, where it has one.
    own: *mut fid_eq,
    context: u64,
}

/// A passive endpoint that listens.
pub(crate) struct Listener {
    pep: *mut fid_pep,
}

/// What an event queue says.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Event {
    Request { of: *mut fid, info: *mut fi_info, data: Vec<u8> },
    Connected { of: *mut fid, data: Vec<u8> },
    Shutdown { of: *mut fid },
    Failed { of: *mut fid, error: c_int, data: Vec<u8> },
}

impl Event {
    pub(crate) fn is_of<T>(&self, object: *mut T) -> bool {
        let (Self::Request { of, .. }
        | Self::Connected { of, .. }
        | Self::Shutdown { of }
        | Self::Failed { of, .. }) = self;
        *of == object.cast()
    }
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap()
}

fn wide(result: c_int) -> isize {
    isize::try_from(result).unwrap()
}

/// At the loopback interface, at any port.
fn info() -> *mut fi_info {
    let library = fabric();
    let connected = |hints: &mut fi_info| {
        hints.caps = abi::FI_MSG | abi::FI_TAGGED;
        // SAFETY: hints have all parts.
        unsafe { (*hints.ep_attr).r#type = small(abi::FI_EP_MSG) };
    };
    library.info_at(0, library.api(), connected).unwrap()
}

impl Host {
    pub(crate) fn new() -> Self {
        let info = info();
        let (mut opened, mut domain) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: an info of this library, and places for objects.
        unsafe {
            assert_eq!((fabric().fabric)((*info).fabric_attr, &raw mut opened, ptr::null_mut()), 0);
            let result = ((*(*opened).ops).domain)(opened, info, &raw mut domain, ptr::null_mut());
            assert_eq!(result, 0, "fi_domain");
        }
        let mut host =
            Self { info, fabric: opened, eq: ptr::null_mut(), domain, contexts: Cell::new(0x1000) };
        host.eq = host.event_queue();
        host
    }

    fn event_queue(&self) -> *mut fid_eq {
        // SAFETY: zeros are valid attributes.
        let mut attr: fi_eq_attr = unsafe { std::mem::zeroed() };
        attr.wait_obj = small(abi::FI_WAIT_FD);
        let mut eq = ptr::null_mut();
        // SAFETY: an open fabric, attributes of ours and a place.
        let result = unsafe {
            ((*(*self.fabric).ops).eq_open)(self.fabric, &raw mut attr, &raw mut eq, ptr::null_mut())
        };
        assert_eq!(result, 0, "fi_eq_open");
        eq
    }

    /// One that will call.
    pub(crate) fn endpoint(&self) -> End<'_> {
        let end = self.unbound(self.info);
        // SAFETY: open objects.
        assert_eq!(unsafe { bind(end.ep, self.eq, 0) }, 0);
        end
    }

    /// The same, with an event queue of its own.
    pub(crate) fn endpoint_apart(&self) -> End<'_> {
        let mut end = self.unbound(self.info);
        end.own = self.event_queue();
        // SAFETY: open objects.
        assert_eq!(unsafe { bind(end.ep, end.own, 0) }, 0);
        end
    }

    /// One without an event queue.
    pub(crate) fn unbound_endpoint(&self) -> End<'_> {
        self.unbound(self.info)
    }

    /// One for a request, whose info is given back.
    pub(crate) fn endpoint_for(&self, request: *mut fi_info) -> End<'_> {
        let end = self.unbound(request);
        // SAFETY: open objects, and an info that is not used any more.
        unsafe {
            assert_eq!(bind(end.ep, self.eq, 0), 0);
            (fabric().freeinfo)(request);
        }
        end
    }

    fn unbound(&self, info: *mut fi_info) -> End<'_> {
        // SAFETY: zeros are valid attributes.
        let mut attr: fi_cq_attr = unsafe { std::mem::zeroed() };
        attr.format = small(abi::FI_CQ_FORMAT_TAGGED);
        let context = self.contexts.get();
        self.contexts.set(context + 1);
        let (mut cq, mut ep) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: an open domain, attributes of ours, places for objects.
        unsafe {
            let ops = &*(*self.domain).ops;
            assert_eq!((ops.cq_open)(self.domain, &raw mut attr, &raw mut cq, ptr::null_mut()), 0);
            assert_eq!((ops.endpoint)(self.domain, info, &raw mut ep, at(context)), 0, "fi_endpoint");
            assert_eq!(bind(ep, cq, abi::FI_SEND | abi::FI_RECV), 0);
        }
        End { host: self, ep, cq, own: ptr::null_mut(), context }
    }

    /// `fi_eq_read` of the queue: what it returns, and the kind.
    pub(crate) fn read_into(&self, room: &mut [u8]) -> (isize, u32) {
        read_into(self.eq, room)
    }

    /// The next event, which must come.
    pub(crate) fn event(&self) -> Event {
        event(self.eq).expect("an event")
    }

    /// None comes for a while.
    pub(crate) fn is_silent(&self) -> bool {
        let end = Instant::now() + Duration::from_millis(100);
        while Instant::now() < end {
            let (result, _) = self.read_into(&mut [0; 200]);
            if result != minus(abi::FI_EAGAIN) {
                return false;
            }
        }
        true
    }

    /// An error waits to be read.
    pub(crate) fn until_failed(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.read_into(&mut [0; 200]).0 != minus(abi::FI_EAVAIL) {
            assert!(Instant::now() < end, "nothing has failed");
        }
    }

    /// Something waits to be read, which is only looked at.
    pub(crate) fn until_something(&self) {
        let (mut kind, mut room) = (0, [0_u8; 200]);
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            // SAFETY: an open queue, and so much room.
            let result = unsafe {
                let (to, room) = (room.as_mut_ptr().cast(), room.len());
                ((*(*self.eq).ops).read)(self.eq, &raw mut kind, to, room, abi::FI_PEEK)
            };
            if result != minus(abi::FI_EAGAIN) {
                return;
            }
            assert!(Instant::now() < end, "nothing comes");
        }
    }

    pub(crate) fn error_entry(&self) -> fi_eq_err_entry {
        // SAFETY: zeros are a valid entry.
        unsafe { std::mem::zeroed() }
    }

    pub(crate) fn read_error(&self, entry: &mut fi_eq_err_entry) {
        // SAFETY: an open queue and a place.
        let result = unsafe { ((*(*self.eq).ops).readerr)(self.eq, entry, 0) };
        assert_eq!(result, isize::try_from(size_of::<fi_eq_err_entry>()).unwrap());
    }

    /// The next event is a request.
    pub(crate) fn request(&self, of: &Listener) -> (*mut fi_info, Vec<u8>) {
        let event = self.event();
        let Event::Request { of: whose, info, data } = event else { panic!("{event:?}") };
        assert_eq!(whose, of.pep.cast());
        (info, data)
    }

    /// The next two events say so, in any order.
    pub(crate) fn two_are_connected(&self, one: &End<'_>, other: &End<'_>) {
        let mut told = [self.event(), self.event()];
        told.sort_by_key(|event| event.is_of(other.ep));
        let connected = |end: &End<'_>| Event::Connected { of: end.ep.cast(), data: Vec::new() };
        assert_eq!(told, [connected(one), connected(other)]);
    }

    pub(crate) fn data_size_of_passive(&self, listener: &Listener) -> usize {
        // SAFETY: an open passive endpoint.
        data_size(listener.pep.cast(), unsafe { (*(*listener.pep).ops).getopt })
    }
}

/// A client and a server that are connected, and whose events were read.
pub(crate) fn connected_pair<'a>(host: &'a Host, listener: &Listener) -> (End<'a>, End<'a>) {
    let client = host.endpoint();
    assert_eq!(client.connect(&listener.name(), b""), 0);
    let (request, _) = host.request(listener);
    let server = host.endpoint_for(request);
    assert_eq!(server.accept(b""), 0);
    host.two_are_connected(&client, &server);
    (client, server)
}

fn read_into(eq: *mut fid_eq, room: &mut [u8]) -> (isize, u32) {
    let mut kind = 0;
    // SAFETY: an open queue, and so much room.
    let result = unsafe { ((*(*eq).ops).read)(eq, &raw mut kind, room.as_mut_ptr().cast(), room.len(), 0) };
    (result, kind)
}

/// The next event of a queue; waits for it.
fn event(eq: *mut fid_eq) -> Option<Event> {
    let (mut kind, mut room) = (0, [0_u8; 200]);
    // SAFETY: an open queue with a descriptor, and so much room.
    let result = unsafe {
        let (to, room) = (room.as_mut_ptr().cast(), room.len());
        ((*(*eq).ops).sread)(eq, &raw mut kind, to, room, 60_000, 0)
    };
    if result == minus(abi::FI_EAGAIN) {
        return None;
    }
    if result == minus(abi::FI_EAVAIL) {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_eq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue and a place; data that stays until the next read.
        let data = unsafe {
            assert!(((*(*eq).ops).readerr)(eq, &raw mut entry, 0) > 0);
            if entry.err_data_size == 0 {
                Vec::new()
            } else {
                std::slice::from_raw_parts(entry.err_data.cast::<u8>(), entry.err_data_size).to_vec()
            }
        };
        return Some(Event::Failed { of: entry.fid, error: entry.err, data });
    }
    let length = usize::try_from(result).unwrap_or_else(|_| panic!("fi_eq_sread: {result}"));
    let front = size_of::<fi_eq_cm_entry>();
    assert!(length >= front, "{length}");
    // SAFETY: so much was written.
    let entry = unsafe { room.as_ptr().cast::<fi_eq_cm_entry>().read_unaligned() };
    let data = room[front..length].to_vec();
    Some(match u64::from(kind) {
        abi::FI_CONNREQ => Event::Request { of: entry.fid, info: entry.info, data },
        abi::FI_CONNECTED => Event::Connected { of: entry.fid, data },
        abi::FI_SHUTDOWN => Event::Shutdown { of: entry.fid },
        kind => panic!("an event of kind {kind}"),
    })
}

type GetOption = unsafe extern "C" fn(*mut fid, c_int, c_int, *mut c_void, *mut usize) -> c_int;

fn data_size(of: *mut fid, get: GetOption) -> usize {
    let (mut value, mut length) = (0_usize, size_of::<usize>());
    let (level, option) = (abi::FI_OPT_ENDPOINT, abi::FI_OPT_CM_DATA_SIZE);
    // SAFETY: an open object, and a place of this length.
    let result = unsafe {
        let (level, option) = (c_int::try_from(level).unwrap(), c_int::try_from(option).unwrap());
        get(of, level, option, (&raw mut value).cast(), &raw mut length)
    };
    assert_eq!((result, length), (0, size_of::<usize>()));
    value
}

impl End<'_> {
    pub(crate) fn context(&self) -> *mut c_void {
        at(self.context)
    }

    pub(crate) fn enable(&self) {
        // SAFETY: an open endpoint.
        assert_eq!(unsafe { control(self.ep, abi::FI_ENABLE, ptr::null_mut()) }, 0);
    }

    /// An event of its own queue.
    pub(crate) fn own_event(&self) -> Event {
        event(self.own).expect("an event")
    }

    pub(crate) fn data_size(&self) -> usize {
        // SAFETY: an open endpoint.
        data_size(self.ep.cast(), unsafe { (*(*self.ep).ops).getopt })
    }

    pub(crate) fn connect(&self, to: &[u8], data: &[u8]) -> isize {
        // SAFETY: an open endpoint, an address and so many bytes.
        wide(unsafe {
            ((*(*self.ep).cm).connect)(self.ep, to.as_ptr().cast(), data.as_ptr().cast(), data.len())
        })
    }

    pub(crate) fn accept(&self, data: &[u8]) -> isize {
        // SAFETY: an open endpoint, and so many bytes.
        wide(unsafe { ((*(*self.ep).cm).accept)(self.ep, data.as_ptr().cast(), data.len()) })
    }

    pub(crate) fn shutdown(&self, flags: u64) -> isize {
        // SAFETY: an open endpoint.
        wide(unsafe { ((*(*self.ep).cm).shutdown)(self.ep, flags) })
    }

    pub(crate) fn name_into(&self, room: &mut [u8], mut length: usize) -> (isize, usize) {
        // SAFETY: an open endpoint, and so much room.
        let result =
            unsafe { ((*(*self.ep).cm).getname)(self.ep.cast(), room.as_mut_ptr().cast(), &raw mut length) };
        (wide(result), length)
    }

    pub(crate) fn peer_into(&self, room: &mut [u8], mut length: usize) -> (isize, usize) {
        // SAFETY: an open endpoint, and so much room.
        let result =
            unsafe { ((*(*self.ep).cm).getpeer)(self.ep, room.as_mut_ptr().cast(), &raw mut length) };
        (wide(result), length)
    }

    pub(crate) fn name(&self) -> Vec<u8> {
        let mut room = [0; 64];
        let (result, length) = self.name_into(&mut room, 64);
        assert_eq!(result, 0, "fi_getname");
        room[..length].to_vec()
    }

    pub(crate) fn peer(&self) -> Vec<u8> {
        let mut room = [0; 64];
        let (result, length) = self.peer_into(&mut room, 64);
        assert_eq!(result, 0, "fi_getpeer");
        room[..length].to_vec()
    }

    /// With a tag, or without. The address says nothing.
    pub(crate) fn send(&self, tag: Option<u64>, payload: &[u8], context: u64) -> isize {
        let (from, length, nobody) = (payload.as_ptr().cast(), payload.len(), 0x7777);
        // SAFETY: an open endpoint; the payload is the caller's to keep.
        unsafe {
            match tag {
                Some(tag) => ((*(*self.ep).tagged).send)(
                    self.ep,
                    from,
                    length,
                    ptr::null_mut(),
                    nobody,
                    tag,
                    at(context),
                ),
                None => ((*(*self.ep).msg).send)(self.ep, from, length, ptr::null_mut(), nobody, at(context)),
            }
        }
    }

    pub(crate) fn receive(&self, tag: Option<u64>, room: &mut [u8], context: u64) -> isize {
        let (to, length, nobody) = (room.as_mut_ptr().cast(), room.len(), 0x7777);
        // SAFETY: an open endpoint; the room is the caller's to keep.
        unsafe {
            match tag {
                Some(tag) => ((*(*self.ep).tagged).recv)(
                    self.ep,
                    to,
                    length,
                    ptr::null_mut(),
                    nobody,
                    tag,
                    0,
                    at(context),
                ),
                None => ((*(*self.ep).msg).recv)(self.ep, to, length, ptr::null_mut(), nobody, at(context)),
            }
        }
    }

    /// What `fi_cq_read` returns of one entry, and its context.
    fn read(&self) -> (isize, u64) {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_tagged_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue, and a place for one entry.
        let result = unsafe { ((*(*self.cq).ops).read)(self.cq, (&raw mut entry).cast(), 1) };
        (result, entry.op_context.addr() as u64)
    }

    /// The context of the next completion, while another moves on too.
    pub(crate) fn completion(&self, other: &End<'_>) -> u64 {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            match self.read() {
                (1, context) => return context,
                (result, _) if result == minus(abi::FI_EAGAIN) => {}
                (result, _) => panic!("fi_cq_read: {result}, {:?}", self.error()),
            }
            // SAFETY: an open queue; no entry is asked for.
            unsafe { ((*(*other.cq).ops).read)(other.cq, ptr::null_mut(), 0) };
            assert!(Instant::now() < end, "no completion comes");
        }
    }

    /// What is there to be read without moving anything on: contexts, and errors where they are.
    pub(crate) fn told(&self) -> Vec<(u64, c_int)> {
        let mut told = Vec::new();
        loop {
            match self.read() {
                (1, context) => told.push((context, 0)),
                (result, _) if result == minus(abi::FI_EAVAIL) => told.extend(self.error()),
                _ => return told,
            }
        }
    }

    fn error(&self) -> Option<(u64, c_int)> {
        // SAFETY: zeros are a valid entry.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue and a place.
        let result = unsafe { ((*(*self.cq).ops).readerr)(self.cq, &raw mut entry, 0) };
        (result == 1).then(|| (entry.op_context.addr() as u64, entry.err))
    }
}

impl Listener {
    pub(crate) fn new(host: &Host) -> Self {
        let listener = Self::unbound(host);
        listener.bind(host);
        assert_eq!(listener.listen(), 0);
        listener
    }

    pub(crate) fn bind(&self, host: &Host) {
        // SAFETY: open objects.
        assert_eq!(unsafe { bind(self.pep, host.eq, 0) }, 0);
    }

    /// One without an event queue, which does not listen.
    pub(crate) fn unbound(host: &Host) -> Self {
        let mut pep = ptr::null_mut();
        // SAFETY: an open fabric, an info of the library and a place.
        let result = unsafe {
            ((*(*host.fabric).ops).passive_ep)(host.fabric, host.info, &raw mut pep, ptr::null_mut())
        };
        assert_eq!(result, 0, "fi_passive_ep");
        Self { pep }
    }

    pub(crate) fn listen(&self) -> isize {
        // SAFETY: an open passive endpoint.
        wide(unsafe { ((*(*self.pep).cm).listen)(self.pep) })
    }

    /// What is said to who takes it for an endpoint.
    pub(crate) fn accept(&self) -> isize {
        // SAFETY: the call looks at nothing.
        wide(unsafe { ((*(*self.pep).cm).accept)(self.pep.cast(), ptr::null(), 0) })
    }

    pub(crate) fn set_backlog(&self, mut backlog: c_int) -> isize {
        // SAFETY: an open passive endpoint, and an integer.
        wide(unsafe { control(self.pep, abi::FI_BACKLOG, (&raw mut backlog).cast()) })
    }

    pub(crate) fn set_name(&self, name: &[u8]) -> isize {
        // SAFETY: an open passive endpoint, and so many bytes.
        wide(unsafe {
            ((*(*self.pep).cm).setname)(self.pep.cast(), name.as_ptr().cast_mut().cast(), name.len())
        })
    }

    pub(crate) fn name_into(&self, room: &mut [u8], mut length: usize) -> (isize, usize) {
        // SAFETY: an open passive endpoint, and so much room.
        let result = unsafe {
            ((*(*self.pep).cm).getname)(self.pep.cast(), room.as_mut_ptr().cast(), &raw mut length)
        };
        (wide(result), length)
    }

    pub(crate) fn name(&self) -> Vec<u8> {
        let mut room = [0; 64];
        let (result, length) = self.name_into(&mut room, 64);
        assert_eq!(result, 0, "fi_getname");
        room[..length].to_vec()
    }

    /// `fi_reject` of a request, whose info is given back.
    pub(crate) fn reject(&self, request: *mut fi_info, data: &[u8]) -> isize {
        // SAFETY: the info of a request.
        let result = self.reject_handle(unsafe { (*request).handle }, data);
        // SAFETY: it is not used any more.
        unsafe { (fabric().freeinfo)(request) };
        result
    }

    pub(crate) fn reject_handle(&self, handle: *mut fid, data: &[u8]) -> isize {
        // SAFETY: an open passive endpoint, a handle and so many bytes.
        wide(unsafe { ((*(*self.pep).cm).reject)(self.pep, handle, data.as_ptr().cast(), data.len()) })
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // SAFETY: open objects, each closed once, below before above.
        unsafe {
            assert_eq!((close(self.ep), close(self.cq)), (0, 0));
            if !self.own.is_null() {
                assert_eq!(close(self.own), 0);
            }
        }
        let _ = self.host;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: an open object, closed once.
        assert_eq!(unsafe { close(self.pep) }, 0);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: open objects, each closed once, below before above.
        unsafe {
            assert_eq!((close(self.domain), close(self.eq), close(self.fabric)), (0, 0, 0));
            (fabric().freeinfo)(self.info);
        }
    }
}
