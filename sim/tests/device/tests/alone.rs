//! What only a transport over verbs gets into: queue pairs that fail, receives that run out, sockets that say nonsense.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::ports::lasting_port;
use super::rig::{EAGER_LIMIT, RECEIVED_FROM, Recorder, context, eager, outgoing, pattern};
use super::{Memory, Policy, Rig, connected, open, open_as, open_exactly, open_lingering, open_with};
use crate::device::Device as _;
use crate::device::transport::{CloseReason, Notice, Payload, Sending, Transport};
use crate::device::verbs::address::ConnectInfo;
use crate::device::verbs::queue_pair::Patience;
use crate::device::verbs::{TagMatching, VerbsConfig, VerbsTransport};
use crate::ids::{LinkId, PeerId, Tag};
use crate::seam::{Command, DataError, Event};
use crate::wire::{Control, Goodbye, Rendezvous};
use tagmatch_sim::hca::HcaConfig;
use tagmatch_sim::hca_abi::{Drive, HcaControl};

fn hca() -> HcaControl {
    HcaControl::new(HcaConfig::default(), Drive::Thread).unwrap()
}

pub(super) fn pair_with(config: &VerbsConfig) -> Rig {
    let hca = hca();
    connected(vec![Box::new(open_with(&hca, config.clone())), Box::new(open_with(&hca, config.clone()))], hca)
}

pub(super) fn closed(ear: &Recorder) -> Option<CloseReason> {
    ear.notices().into_iter().find_map(|notice| match notice {
        Notice::Closed { reason, .. } => Some(reason),
        _ => None,
    })
}

/// Until something is so, within reason.
fn until(transport: &mut dyn Transport, ear: &mut Recorder, is_so: impl Fn(&Recorder) -> bool) {
    for _ in 0..2_000_000 {
        if is_so(ear) {
            return;
        }
        transport.progress(100, ear).unwrap();
        std::thread::yield_now();
    }
    panic!("it never comes about; heard was {:?}", ear.heard);
}

#[test]
fn a_key_that_is_not_valid_ends_the_link_and_the_read_fails() {
    let mut rig = pair_with(&VerbsConfig::default());
    let (from, into) = (Memory::new(pattern(1, 1000)), Memory::zeros(1000));
    let link = rig.sender_link();
    let remote = rig.sender().expose(link, from.buffer()).unwrap();
    let memory = crate::wire::RemoteMemory {
        address: remote.address,
        key: remote.key.wrapping_add(0x1000),
        length: remote.length,
    };
    rig.ear().policy = Policy::Accept([into.buffer()].into());
    let request = Rendezvous { context: context(6), tag: Tag(1), memory };
    let mut bytes = [0; 40];
    let length = request.encode(&mut bytes).unwrap();
    rig.send(&outgoing(&bytes[..length], Payload::Copied(&[])));
    assert_eq!(rig.until_data(1)[0].error, Some(DataError::PathLost));
    rig.until(|rig| closed(rig.ear()).is_some() && closed(rig.sender_ear()).is_some());
    let lost = Event::PathLost { peer: RECEIVED_FROM };
    let told = rig.ear().heard.iter().filter(|heard| **heard == super::Heard::Event(true, lost.clone()));
    assert_eq!((told.count(), into.bytes()), (1, vec![0; 1000]));
}

#[test]
fn memory_that_was_withdrawn_is_read_no_more() {
    let mut rig = pair_with(&VerbsConfig::default());
    assert!(!is_read_when_withdrawn(&mut rig));
}

#[test]
fn memory_that_lingers_is_read_once_more_until_its_time_is_over() {
    assert!(is_read_when_withdrawn(&mut lingering(Duration::MAX)));
    assert!(!is_read_when_withdrawn(&mut lingering(Duration::from_nanos(1))));
}

fn lingering(time: Duration) -> Rig {
    let hca = hca();
    let (eager_limit, tag_matching) = (u32::try_from(EAGER_LIMIT).unwrap(), TagMatching::Off);
    let config = VerbsConfig { eager_limit, tag_matching, peers: 4, ..VerbsConfig::default() };
    let open = || Box::new(open_lingering(&hca, config.clone(), Some(time)));
    connected(vec![open(), open()], hca)
}

fn is_read_when_withdrawn(rig: &mut Rig) -> bool {
    let from = Memory::new(pattern(1, 1000));
    let request = rig.send_rendezvous(1, from.buffer());
    let arrival = rig.until_arrived(1)[0];
    let remote = arrival.header.remote.unwrap();
    assert_eq!(remote.key, request.memory.key);
    rig.sender().withdraw(&remote);
    rig.step();
    let into = Memory::zeros(1000);
    let transfer = rig.accept(arrival.message, &into);
    let is_read = rig.until_transferred(transfer).error.is_none();
    assert_eq!(into.bytes(), if is_read { pattern(1, 1000) } else { vec![0; 1000] });
    is_read
}

/// What peers call memory says nothing of where it lies, so that none finds another's.
#[test]
fn memory_is_read_under_the_name_that_the_peer_was_told_and_under_no_other() {
    for at in [0, 1] {
        let mut rig = pair_with(&VerbsConfig::default());
        let (from, other, into) =
            (Memory::new(pattern(1, 1000)), Memory::new(pattern(2, 1000)), Memory::zeros(1000));
        let link = rig.sender_link();
        let told = rig.sender().expose(link, from.buffer()).unwrap();
        let others = rig.sender().expose(link, other.buffer()).unwrap();
        let (here, there) = (from.buffer().address, other.buffer().address);
        assert_ne!(told.address.wrapping_sub(others.address), here.wrapping_sub(there));
        let guess = [here, others.address.wrapping_add(here.wrapping_sub(there))][at];
        let memory = crate::wire::RemoteMemory { address: guess, key: told.key, length: 1000 };
        let request = Rendezvous { context: context(6), tag: Tag(1), memory };
        let mut bytes = [0; 40];
        let length = request.encode(&mut bytes).unwrap();
        rig.ear().policy = Policy::Accept([into.buffer()].into());
        rig.send(&outgoing(&bytes[..length], Payload::Copied(&[])));
        assert_eq!(rig.until_data(1)[0].error, Some(DataError::PathLost));
        assert_eq!(into.bytes(), [0; 1000]);
    }
}

#[test]
fn four_receives_are_enough_for_any_number_of_messages() {
    let few = VerbsConfig { unexpected_buffers: 3, spare_buffers: 1, ..VerbsConfig::default() };
    let mut rig = pair_with(&few);
    for seed in 0..2000 {
        rig.send_eager(seed as u64, &pattern(seed, seed % 300));
    }
    let arrivals = rig.until_arrived(2000);
    let in_order = arrivals.iter().zip(0..).all(|(arrival, seed)| arrival.header.tag.0 == seed);
    assert!(in_order);
    for (seed, arrival) in arrivals.iter().enumerate() {
        let into = Memory::zeros(seed % 300);
        assert!(rig.receiver().place_held(arrival.message, &into.buffer()));
        assert_eq!(into.bytes(), pattern(seed, seed % 300));
    }
}

#[test]
fn a_send_queue_that_is_full_says_so_and_takes_more_later() {
    let config =
        VerbsConfig { sends_per_peer: 8, unexpected_buffers: 8, spare_buffers: 4, ..VerbsConfig::default() };
    let mut rig = pair_with(&config);
    // What connecting has sent takes up its place until the card says that it is out: nothing tells of that, and it is
    // waited for longer each time.
    let mut total = 0;
    let mut is_taken = false;
    for patience in 0..16 {
        let sent = fill(&mut rig);
        total += sent;
        is_taken = sent >= 4;
        if is_taken {
            break;
        }
        rig.until_arrived(total);
        (0..1 << patience).for_each(|_| rig.step());
    }
    assert!(is_taken, "never four at once, {total} in all");
    for _ in 0..100 {
        rig.send_eager(2, b"more");
    }
    rig.until_arrived(total + 100);
}

/// Send until the queue is full: how many were taken.
pub(super) fn fill(rig: &mut Rig) -> usize {
    let (header, link) = (eager(1), rig.sender_link());
    let mut sent = 0;
    loop {
        let message = outgoing(&header, Payload::Copied(&[7; 3000]));
        match rig.sender().send(link, &message).unwrap() {
            Sending::Full => return sent,
            Sending::Done if sent < 1000 => sent += 1,
            other => panic!("{other:?} after {sent}"),
        }
    }
}

#[test]
fn the_end_of_a_process_is_told_to_those_that_were_connected_to_it() {
    let hca = hca();
    let (mut staying, mut ear) = (open(&hca), Recorder::default());
    let (mut going, mut other) = (open(&hca), Recorder::default());
    let link = going.open(staying.name()).unwrap();
    while !other.notices().contains(&Notice::Open { link }) {
        going.progress(10, &mut other).unwrap();
        staying.progress(10, &mut ear).unwrap();
    }
    drop(going);
    until(&mut staying, &mut ear, |ear| !ear.notices().is_empty());
    until(&mut staying, &mut ear, |ear| closed(ear).is_some());
    assert_eq!(closed(&ear), Some(CloseReason::Peer));
    assert_eq!((staying.link_count(), staying.device().peers()), (0, 0));
}

#[test]
fn where_nobody_listens_a_link_is_refused() {
    let hca = hca();
    let (mut transport, mut ear) = (open(&hca), Recorder::default());
    let mut nobody = transport.name().to_vec();
    nobody[2..4].copy_from_slice(&lasting_port().to_be_bytes());
    let link = transport.open(&nobody).unwrap();
    until(&mut transport, &mut ear, |ear| closed(ear).is_some());
    assert_eq!(ear.notices(), [Notice::Closed { link, reason: CloseReason::Refused }]);
}

#[test]
fn an_answer_that_is_no_address_ends_the_link() {
    let hca = hca();
    let (mut transport, mut ear) = (open(&hca), Recorder::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("an IPv4 address") };
    let mut name = transport.name().to_vec();
    name[2..4].copy_from_slice(&address.port().to_be_bytes());
    transport.open(&name).unwrap();
    let mut socket = listener.accept().unwrap().0;
    socket.write_all(&[b'x'; 48]).unwrap();
    until(&mut transport, &mut ear, |ear| closed(ear).is_some());
    assert!(matches!(closed(&ear), Some(CloseReason::Protocol(_))), "{:?}", ear.notices());
    assert_eq!(transport.device().peers(), 0);
    let mut said = Vec::new();
    socket.read_to_end(&mut said).unwrap();
    assert_eq!(said.len(), 48);
}

#[test]
fn strangers_on_the_socket_are_sent_away_and_nobody_is_told() {
    let hca = hca();
    let (mut transport, mut ear) = (open(&hca), Recorder::default());
    let port = u16::from_be_bytes([transport.name()[2], transport.name()[3]]);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n-----------------------------------"[..], &[0; 100]] {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        socket.write_all(bytes).unwrap();
        while transport.link_count() == 0 {
            transport.progress(10, &mut ear).unwrap();
        }
        while transport.link_count() > 0 {
            transport.progress(10, &mut ear).unwrap();
        }
    }
    assert_eq!((ear.heard.len(), transport.device().peers()), (0, 0));
}

/// Who calls says this and hears that in between: sockets to both, once each knows the other's address.
fn in_between(here: &mut dyn Transport, ear: &mut Recorder, there: &mut dyn Transport) -> [TcpStream; 2] {
    let mut other = Recorder::default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut name = here.name().to_vec();
    let port = u16::from_be_bytes([name[2], name[3]]);
    name[2..4].copy_from_slice(&listener.local_addr().unwrap().port().to_be_bytes());
    let link = there.open(&name).unwrap();
    let (mut caller, mut called) =
        (listener.accept().unwrap().0, TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
    let mut address = [0; 48];
    let is_here = |socket: &TcpStream| socket.peek(&mut [0; 48]).is_ok_and(|count| count == 48);
    caller.set_nonblocking(true).unwrap();
    called.set_nonblocking(true).unwrap();
    while !is_here(&caller) {
        there.progress(10, &mut other).unwrap();
    }
    caller.read_exact(&mut address).unwrap();
    called.write_all(&address).unwrap();
    while !is_here(&called) {
        here.progress(10, ear).unwrap();
    }
    called.read_exact(&mut address).unwrap();
    caller.write_all(&address).unwrap();
    until(there, &mut other, |ear| ear.notices().contains(&Notice::Open { link }));
    [caller, called]
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    [&b"M"[..], &u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

#[test]
fn messages_before_the_link_is_bound_end_it_unless_they_are_control() {
    let hca = hca();
    let mut control = [0; 64];
    let length = Control::Goodbye(Goodbye::Idle).encode(&mut control).unwrap();
    let control = framed(&control[..length]);
    let bad = [
        framed(&eager(1)),
        framed(&super::untagged(1)),
        framed(&[0xFF; 20]),
        b"M\xff\xff".to_vec(),
        b"x".to_vec(),
        b"L".to_vec(),
        b"G".to_vec(),
        b"JJ".to_vec(),
    ];
    for bytes in bad {
        let (mut here, mut ear, mut there) = (open(&hca), Recorder::default(), open(&hca));
        let [_caller, mut called] = in_between(&mut here, &mut ear, &mut there);
        called.write_all(&control).unwrap();
        until(&mut here, &mut ear, |ear| ear.controls().len() == 1);
        assert_eq!(closed(&ear), None);
        called.write_all(&bytes).unwrap();
        until(&mut here, &mut ear, |ear| closed(ear).is_some());
        assert!(matches!(closed(&ear), Some(CloseReason::Protocol(_))), "{bytes:?}: {ear:?}");
        assert_eq!((ear.arrivals(), here.link_count(), here.device().peers()), (vec![], 0, 0));
    }
}

/// It has its way with the words on the socket, and is not bound.
#[test]
fn queue_pairs_of_a_stranger_reach_nothing_and_a_friend_is_heard_meanwhile() {
    let hca = hca();
    let patience = Patience { timeout: 10, retries: 2, ..Patience::default() };
    let config = VerbsConfig { patience, ..VerbsConfig::default() };
    let (mut here, mut ear) = (open_with(&hca, VerbsConfig::default()), Recorder::default());
    let (mut there, mut other) = (open_with(&hca, config), Recorder::default());
    let [mut caller, _called] = in_between(&mut here, &mut ear, &mut there);
    let link = crate::ids::LinkId { index: 0, generation: 0 };
    there.bind(link, RECEIVED_FROM).unwrap();
    caller.write_all(b"JLG").unwrap();
    let message = eager(1);
    let message = outgoing(&message, Payload::Copied(b"x"));
    while there.send(link, &message).unwrap() == Sending::Full {
        there.progress(10, &mut other).unwrap();
    }
    until(&mut there, &mut other, |ear| closed(ear).is_some());
    let reason = closed(&other);
    assert!(matches!(reason, Some(CloseReason::Device { status: 12, .. })), "{reason:?}");
    here.progress(10, &mut ear).unwrap();
    assert_eq!((ear.arrivals(), closed(&ear)), (vec![], None));
    let mut friend = (open(&hca), Recorder::default());
    let link = friend.0.open(here.name()).unwrap();
    until_both(&mut here, &mut ear, &mut friend, |_, other| other.notices().contains(&Notice::Open { link }));
    friend.0.bind(link, RECEIVED_FROM).unwrap();
    ear.binds = Some(RECEIVED_FROM);
    let mut control = [0; 64];
    let length = Control::Goodbye(Goodbye::Idle).encode(&mut control).unwrap();
    friend.0.send(link, &outgoing(&control[..length], Payload::Copied(&[]))).unwrap();
    while friend.0.send(link, &message).unwrap() == Sending::Full {
        until_both(&mut here, &mut ear, &mut friend, |_, _| true);
    }
    until_both(&mut here, &mut ear, &mut friend, |ear, _| ear.arrivals().len() == 1);
}

/// A device tells of a queue pair by an event, and of what it did by completions: either may be looked at first. Sockets
/// and events are looked at in some of the turns: each of them is the first here.
#[test]
fn why_a_link_failed_is_told_even_where_the_event_is_seen_before_the_completion() {
    let patience = Patience { timeout: 10, retries: 2, ..Patience::default() };
    let config = VerbsConfig { patience, ..VerbsConfig::default() };
    for turns in 0..16 {
        let hca = HcaControl::new(HcaConfig::default(), Drive::Steps).unwrap();
        let (mut here, mut ear) = (open_with(&hca, VerbsConfig::default()), Recorder::default());
        let (mut there, mut other) = (open_with(&hca, config.clone()), Recorder::default());
        let [mut caller, _called] = in_between(&mut here, &mut ear, &mut there);
        let link = crate::ids::LinkId { index: 0, generation: 0 };
        there.bind(link, RECEIVED_FROM).unwrap();
        caller.write_all(b"JLG").unwrap();
        let message = eager(1);
        while there.send(link, &outgoing(&message, Payload::Copied(b"x"))).unwrap() == Sending::Full {
            there.progress(10, &mut other).unwrap();
        }
        for _ in 0..turns {
            there.progress(10, &mut other).unwrap();
        }
        // All of its tries are over, and nobody looked meanwhile.
        for _ in 0..10 {
            hca.run_until_idle();
        }
        until(&mut there, &mut other, |ear| closed(ear).is_some());
        let reason = closed(&other);
        assert!(matches!(reason, Some(CloseReason::Device { status: 12, .. })), "{turns}: {reason:?}");
    }
}

/// Numbers of queue pairs and packets that are somebody else's, its own or nobody's; sizes that cannot be.
#[test]
fn who_lies_about_its_queue_pairs_loses_its_own_link_at_most_and_a_friend_is_heard_meanwhile() {
    // Each begins with what it was told itself; numbers of the two pairs of the friend's link are those before.
    let lies: [fn(&mut ConnectInfo); 9] = [
        |_| {},
        |lie| (lie.receive.number, lie.send.number) = (0x00FF_FFFF, 0x00FF_FFFE),
        |lie| (lie.receive.number, lie.send.number) = (lie.receive.number - 2, lie.send.number - 2),
        |lie| (lie.receive.number, lie.send.number) = (lie.receive.number - 4, lie.send.number - 4),
        |lie| lie.receive = lie.send,
        |lie| (lie.reads, lie.mtu) = (0, 1),
        |lie| (lie.reads, lie.mtu, lie.eager_limit) = (255, 5, u32::MAX),
        |lie| (lie.eager_limit, lie.is_matching) = (0, !lie.is_matching),
        |lie| (lie.lid, lie.gid) = (0xFFFF, Some([0xFF; 16])),
    ];
    let patience = Patience { timeout: 10, retries: 2, ..Patience::default() };
    let config = VerbsConfig { patience, unexpected_buffers: 64, ..VerbsConfig::default() };
    for (number, lie) in lies.into_iter().enumerate() {
        let hca = hca();
        let (mut here, mut ear) = (open_with(&hca, config.clone()), Recorder::default());
        let mut friend = (open_with(&hca, config.clone()), Recorder::default());
        let friends_link = meet(&mut here, &mut ear, &mut friend);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut name = here.name().to_vec();
        name[2..4].copy_from_slice(&listener.local_addr().unwrap().port().to_be_bytes());
        let link = here.open(&name).unwrap();
        let mut liar = listener.accept().unwrap().0;
        liar.set_nonblocking(true).unwrap();
        let mut address = [0; 48];
        while liar.peek(&mut address).unwrap_or(0) < 48 {
            here.progress(10, &mut ear).unwrap();
        }
        liar.read_exact(&mut address).unwrap();
        let mut told = ConnectInfo::decode(&address).unwrap();
        lie(&mut told);
        liar.write_all(&told.to_bytes()).unwrap();
        until(&mut here, &mut ear, |ear| ear.notices().contains(&Notice::Open { link }));
        let is_bound = here.bind(link, PeerId(40)).is_ok();
        liar.write_all(b"JLG").unwrap();
        let message = eager(1);
        for _ in 0..2000 {
            here.progress(10, &mut ear).unwrap();
            let _taken = here.send(link, &outgoing(&message, Payload::Copied(&[9; 500])));
            friend.0.progress(10, &mut friend.1).unwrap();
        }
        assert!(is_bound, "lie {number}");
        // What the liar is told to be, it may be; what the friend says comes from the friend.
        let before = ear.arrivals().iter().filter(|arrival| arrival.source == RECEIVED_FROM).count();
        assert_eq!(before, 0, "lie {number}");
        for _ in 0..10 {
            while friend.0.send(friends_link, &outgoing(&message, Payload::Copied(b"x"))).unwrap()
                == Sending::Full
            {
                until_both(&mut here, &mut ear, &mut friend, |_, _| true);
            }
        }
        let of_friend =
            |ear: &Recorder| ear.arrivals().iter().filter(|arrival| arrival.source == RECEIVED_FROM).count();
        until_both(&mut here, &mut ear, &mut friend, |ear, _| of_friend(ear) == 10);
        assert_eq!(closed(&friend.1), None, "lie {number}");
        friend.0.close(friends_link, true);
    }
}

/// Connect a friend to this, and let messages go through queue pairs: its link.
fn meet(here: &mut VerbsTransport, ear: &mut Recorder, friend: &mut (VerbsTransport, Recorder)) -> LinkId {
    let link = friend.0.open(here.name()).unwrap();
    until_both(here, ear, friend, |_, other| other.notices().contains(&Notice::Open { link }));
    friend.0.bind(link, RECEIVED_FROM).unwrap();
    let incoming = ear.notices().into_iter().find_map(|notice| match notice {
        Notice::Incoming { link } => Some(link),
        _ => None,
    });
    here.bind(incoming.unwrap(), RECEIVED_FROM).unwrap();
    ear.policy = Policy::Discard;
    let message = eager(1);
    while friend.0.send(link, &outgoing(&message, Payload::Copied(b"x"))).unwrap() == Sending::Full {
        until_both(here, ear, friend, |_, _| true);
    }
    until_both(here, ear, friend, |ear, _| ear.arrivals().len() == 1);
    ear.heard.clear();
    link
}

/// One turn of each at least.
fn until_both(
    here: &mut dyn Transport,
    ear: &mut Recorder,
    (there, other): &mut (VerbsTransport, Recorder),
    is_so: impl Fn(&Recorder, &Recorder) -> bool,
) {
    for _ in 0..2_000_000 {
        here.progress(10, ear).unwrap();
        there.progress(10, other).unwrap();
        if is_so(ear, other) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it never comes about; heard was {:?} and {:?}", ear.heard, other.heard);
}

/// Whether a descriptor is readable, at the latest after so many milliseconds.
fn is_readable(descriptor: i32, milliseconds: i32) -> bool {
    let mut ask = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor is asked for, and there is room for its answer.
    unsafe { libc::poll(&raw mut ask, 1, milliseconds) == 1 }
}

#[test]
fn whoever_may_wait_is_woken_by_a_message_and_by_the_end_of_the_link() {
    let mut rig = pair_with(&VerbsConfig::default());
    let descriptor = rig.receiver().wait_descriptor().unwrap();
    for tag in 0..20 {
        rig.until(|rig| rig.receiver().may_wait());
        assert!(!is_readable(descriptor, 0));
        rig.send_eager(tag, b"x");
        assert!(is_readable(descriptor, 60_000));
        rig.until_arrived(usize::try_from(tag).unwrap() + 1);
    }
    rig.until(|rig| rig.receiver().may_wait());
    let link = rig.sender_link();
    rig.sender().close(link, true);
    // Its host may have to hear first that what was said on the socket is here.
    while closed(rig.sender_ear()).is_none() {
        rig.step_sender();
    }
    assert!(is_readable(descriptor, 60_000));
    rig.until(|rig| closed(rig.ear()).is_some());
}

#[test]
fn what_came_before_is_found_before_anybody_waits() {
    let mut rig = pair_with(&VerbsConfig::default());
    rig.until(|rig| rig.receiver().may_wait());
    rig.send_eager(1, b"x");
    // It may be on its way; when it is here, nobody may wait.
    let descriptor = rig.receiver().wait_descriptor().unwrap();
    assert!(is_readable(descriptor, 60_000));
    assert!(!rig.receiver().may_wait());
    rig.until_arrived(1);
}

/// Soft RoCE's.
#[test]
fn completion_queues_of_32_767_entries_are_never_overrun() {
    let limits = tagmatch_sim::hca::Limits { cq_entries: 32_767, ..tagmatch_sim::hca::Limits::default() };
    let hca = HcaControl::new(HcaConfig { limits, ..HcaConfig::default() }, Drive::Thread).unwrap();
    let many = VerbsConfig { peers: 8192, sends_per_peer: 64, ..VerbsConfig::default() };
    let mut rig = connected(vec![Box::new(open_as(&hca, many.clone())), Box::new(open_as(&hca, many))], hca);
    for tag in 0..5000 {
        rig.send_eager(tag, b"x");
    }
    assert_eq!(rig.until_arrived(5000).len(), 5000);
}

/// Ports of 4,096 and of 1,024 bytes: the smaller of both is what packets have.
#[test]
fn b42_ends_of_unequal_mtu_carry_messages_of_all_lengths_both_ways() {
    for mtus in [[5, 3], [3, 5], [3, 3]] {
        let hca = hca();
        let mut ends: Vec<Box<dyn Transport>> = Vec::new();
        for mtu in mtus {
            hca.with(|hca| hca.set_mtu(mtu));
            ends.push(Box::new(open(&hca)));
        }
        // What is beyond the smaller one, the card refuses now.
        hca.with(|hca| hca.set_mtu(3));
        let mut rig = connected(ends, hca);
        for (length, tag) in [0, 1023, 1024, 1025, 4096, 4097, 65_536, 65_537, 1 << 20].into_iter().zip(1..) {
            let (from, into) = (Memory::new(pattern(tag, length)), Memory::zeros(length));
            if length as u64 <= super::rig::EAGER_LIMIT {
                rig.ear().policy = Policy::Accept([into.buffer()].into());
                rig.send_eager(tag as u64, &pattern(tag, length));
                rig.until(|rig| matches!(&rig.ear().policy, Policy::Accept(buffers) if buffers.is_empty()));
                assert!(into.bytes() == pattern(tag, length), "eager, {length} bytes, {mtus:?}");
            }
            let into = Memory::zeros(length);
            let before = rig.ear().data().len();
            rig.ear().policy = Policy::Accept([into.buffer()].into());
            rig.send_rendezvous(tag as u64, from.buffer());
            rig.until_data(before + 1);
            assert!(into.bytes() == pattern(tag, length), "rendezvous, {length} bytes, {mtus:?}");
        }
    }
}

/// One message at a time, and the queue is found empty before and after it.
#[test]
fn b43_queues_of_both_kinds_tell_each_completion_once_and_invent_none() {
    for tag_matching in [TagMatching::Off, TagMatching::Required] {
        let hca = hca();
        let config = VerbsConfig { tag_matching, ..VerbsConfig::default() };
        let mut there = open_exactly(&hca, config);
        let receives = Command::Receive { buffers: 64 };
        if there.capabilities().is_matching() {
            assert_eq!(there.submit(&[receives]), Ok(1));
        }
        let mut rig = connected(vec![Box::new(open(&hca)), Box::new(there)], hca);
        // With the request, and more than goes with it.
        for (length, told) in [0, 1, 60, 172, 173, 220, 221, 1000].into_iter().zip(1..) {
            for _ in 0..20 {
                rig.step();
            }
            assert_eq!(rig.ear().arrivals().len(), told - 1);
            rig.send_eager(1, &pattern(told, length));
            let arrival = rig.until_arrived(told)[told - 1];
            let into = Memory::zeros(length);
            assert!(rig.receiver().place_held(arrival.message, &into.buffer()));
            assert_eq!(into.bytes(), pattern(told, length));
        }
    }
}
