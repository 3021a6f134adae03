//! The tables of TM-CONTRACT 5, 6, 8, 9 and 11.5. Numbers are measured on libmlx5 where the contract says P.

use crate::device::soft::Switches;
use crate::device::soft::completion::{Completion, Cqe, CqeOperation, Flags, Opcode, TmInfo, status};
use crate::device::soft::driver::{Driver, command_slots, receive_slots};
use crate::device::soft::list::MatchingList;
use crate::device::soft::request::{
    AddRequest, Attributes, DriverError, Errno, Limits, ListOperation, PostError, Refusal, Request,
    RequestOperation, Violation,
};
use crate::ids::PeerId;
use crate::seam::Buffer;

/// A driver with its device behind it, both advanced by hand.
struct Pair {
    driver: Driver,
    list: MatchingList,
}

impl Pair {
    fn new(tags: u32, operations: u32) -> Self {
        let driver =
            Driver::create(&attributes(tags, operations), &Limits::default(), 0).expect("is allowed");
        Self { driver, list: MatchingList::new(64, 0, Switches::default()) }
    }

    fn post(&mut self, mut request: Request) -> Result<u32, PostError> {
        self.driver.post_srq_ops(std::slice::from_mut(&mut request))?;
        Ok(request.handle)
    }

    /// The device executes everything; the completions it writes.
    fn execute(&mut self) -> Vec<Cqe> {
        let mut completions = Vec::new();
        while let Some(command) = self.driver.take_command() {
            let operation = match command.operation {
                ListOperation::Append(append) => {
                    self.list.append(append, command.count).expect("driver and device agree");
                    CqeOperation::Append { phase: self.list.hardware_phase() }
                }
                ListOperation::Remove { index } => {
                    let success = self.list.remove(index, command.count);
                    CqeOperation::Remove { phase: self.list.hardware_phase(), success }
                }
                ListOperation::Noop => {
                    self.list.noop(command.count);
                    CqeOperation::Noop { phase: self.list.hardware_phase() }
                }
            };
            completions.extend(command.signalled.then_some(cqe(operation, 0)));
        }
        completions
    }

    fn poll(&mut self, cqe: &Cqe) -> Completion {
        self.driver.poll(cqe).expect("the completion makes sense")
    }

    /// Execute and poll everything.
    fn settle(&mut self) -> Vec<Completion> {
        let written = self.execute();
        written.iter().map(|cqe| self.poll(cqe)).collect()
    }

    /// A message of that tag arrives: matched in one step, or unexpected.
    fn arrive(&mut self, tag: u64) -> Cqe {
        match self.list.take_match(tag) {
            Some(entry) => cqe(CqeOperation::ConsumedMessage(TmInfo { tag, app_ctx: 5 }), entry.index),
            None => {
                self.list.count_unexpected();
                cqe(CqeOperation::Unexpected, 0)
            }
        }
    }
}

fn attributes(tags: u32, operations: u32) -> Attributes {
    Attributes { tags, operations, receives: 64, receive_segments: 1 }
}

const fn cqe(operation: CqeOperation, entry: u16) -> Cqe {
    let (byte_count, source) = (0, PeerId(0));
    Cqe { operation, entry, byte_count, source, immediate: None, receive: 77 }
}

fn add(tag: u64) -> Request {
    let buffer = Buffer::new(0x1000, 64);
    let add = AddRequest { receive_wr_id: 1000 + tag, buffer, segments: 1, tag, mask: u64::MAX };
    Request {
        wr_id: tag,
        operation: RequestOperation::Add(add),
        signalled: true,
        unexpected_count: None,
        handle: 0,
    }
}

fn del(handle: u32) -> Request {
    Request { wr_id: 500, operation: RequestOperation::Del, handle, ..add(0) }
}

fn sync(count: u32) -> Request {
    Request { wr_id: 600, operation: RequestOperation::Sync, unexpected_count: Some(count), ..add(0) }
}

const fn unsignalled(request: Request) -> Request {
    Request { signalled: false, ..request }
}

const NO_MEMORY: Refusal = Refusal::Errno(Errno::NoMemory);
const INVALID: Refusal = Refusal::Errno(Errno::Invalid);

// 5: creation

#[test]
fn receive_queue_sizes_come_back_as_measured() {
    for (asked, answered) in [(1, 1), (4, 7), (16, 31), (64, 127), (100, 127)] {
        assert_eq!(receive_slots(asked), answered);
        let attributes = Attributes { receives: asked, ..attributes(4, 4) };
        let mut driver = Driver::create(&attributes, &Limits::default(), 0).expect("is allowed");
        let accepted = (0..200).filter(|wr_id| driver.receives.post(*wr_id)).count();
        assert_eq!(accepted, answered as usize);
    }
}

#[test]
fn creation_refuses_what_the_contract_lists() {
    let limits = Limits { tags: 127, ..Limits::default() };
    let good = attributes(127, 32_768);
    assert!(Driver::create(&good, &limits, 0).is_ok());
    for bad in [
        Attributes { tags: 0, ..good },
        Attributes { tags: 128, ..good },
        Attributes { operations: 1 << 20, ..good },
        Attributes { receives: 32_768, ..good },
        Attributes { receive_segments: 1000, ..good },
    ] {
        assert_eq!(Driver::create(&bad, &limits, 0), Err(Errno::Invalid), "{bad:?}");
    }
    let beyond = Limits { tags: u32::MAX, ..limits };
    assert_eq!(Driver::create(&attributes(1 << 15, 4), &beyond, 0), Err(Errno::Invalid));
}

#[test]
fn without_operations_creation_succeeds_and_every_operation_is_refused() {
    let mut pair = Pair::new(4, 0);
    for request in [add(1), sync(0)] {
        assert_eq!(pair.post(request), Err(PostError { refusal: NO_MEMORY, bad: 0 }));
    }
}

// 6: return values

#[test]
fn of_a_list_the_elements_before_the_bad_one_are_posted_and_complete() {
    let mut pair = Pair::new(4, 16);
    let unknown = Request { operation: RequestOperation::Unknown(9), ..add(0) };
    let mut requests = [add(1), sync(0), unknown, add(2)];
    let error = pair.driver.post_srq_ops(&mut requests).expect_err("opcode 9 is unknown");
    assert_eq!(error, PostError { refusal: INVALID, bad: 2 });
    let opcodes: Vec<_> = pair.settle().iter().map(|completion| completion.opcode).collect();
    assert_eq!(opcodes, [Opcode::Add, Opcode::Sync]);
}

#[test]
fn with_no_free_tag_and_with_a_full_queue_the_error_is_the_same() {
    let mut pair = Pair::new(2, 16);
    for tag in 0..2 {
        pair.post(add(tag)).expect("there is room");
    }
    assert_eq!(pair.post(add(3)), Err(PostError { refusal: NO_MEMORY, bad: 0 }));
    let mut pair = Pair::new(8, 2);
    for tag in 0..2 {
        pair.post(add(tag)).expect("there is room");
    }
    assert_eq!(pair.post(add(3)), Err(PostError { refusal: NO_MEMORY, bad: 0 }));
}

#[test]
fn only_the_first_segment_of_an_add_is_used() {
    for (segments, length) in [(1, 64), (3, 64), (0, 0)] {
        let mut pair = Pair::new(4, 4);
        let buffer = Buffer { segments, ..Buffer::new(0x1000, 64) };
        let many = AddRequest { receive_wr_id: 1, buffer, segments, tag: 1, mask: u64::MAX };
        pair.post(Request { operation: RequestOperation::Add(many), ..add(1) }).expect("silently");
        pair.execute();
        assert_eq!(pair.list.entries()[0].buffer.length, length);
    }
}

#[test]
fn without_the_flag_a_count_does_not_reach_the_device() {
    let mut pair = Pair::new(4, 4);
    pair.arrive(9);
    pair.post(Request { unexpected_count: None, ..sync(1) }).expect("there is room");
    pair.settle();
    assert_eq!(pair.list.software_phase(), 0);
    pair.post(sync(0x1_0001)).expect("there is room");
    pair.settle();
    assert_eq!(pair.list.software_phase(), 1, "16 bits of it");
}

#[test]
fn del_of_what_is_not_in_use_is_a_violation_and_changes_nothing() {
    let mut pair = Pair::new(4, 16);
    let in_use = pair.post(add(1)).expect("there is room");
    let before = pair.driver.clone();
    for handle in [in_use + 1, 4, 5, 65_536, u32::MAX] {
        let refusal = Refusal::Violation(Violation::HandleNotInUse { handle });
        assert_eq!(pair.post(del(handle)), Err(PostError { refusal, bad: 0 }));
    }
    assert_eq!(pair.driver, before);
}

#[test]
fn more_dels_of_one_handle_than_its_count_can_hold_are_a_violation() {
    let mut pair = Pair::new(4, 256);
    let handle = pair.post(add(1)).expect("there is room");
    for _ in 0..125 {
        pair.post(del(handle)).expect("counts up to 127");
    }
    let refusal = Refusal::Violation(Violation::TooManyDeletes { handle });
    assert_eq!(pair.post(del(handle)), Err(PostError { refusal, bad: 0 }));
}

// 6.1: slots

#[test]
fn command_slots_are_as_measured() {
    let measured = [(1, 1), (2, 2), (4, 4), (8, 8), (10, 16), (16, 16), (17, 32), (100, 128), (256, 256)];
    for (operations, slots) in measured {
        assert_eq!(command_slots(operations), slots);
        let mut pair = Pair::new(4, operations);
        let accepted = (0..1000).filter(|_| pair.post(sync(0)).is_ok()).count();
        assert_eq!(accepted, slots as usize);
    }
}

#[test]
fn unsignalled_operations_fill_the_queue_for_good() {
    let mut pair = Pair::new(4, 4);
    for _ in 0..4 {
        pair.post(unsignalled(sync(0))).expect("there is room");
        assert_eq!(pair.settle(), []);
    }
    assert_eq!(pair.post(sync(0)), Err(PostError { refusal: NO_MEMORY, bad: 0 }));
}

#[test]
fn polling_a_signalled_operation_frees_it_and_those_before_it() {
    let mut pair = Pair::new(4, 4);
    for request in [unsignalled(sync(0)), unsignalled(sync(0)), sync(0), unsignalled(sync(0))] {
        pair.post(request).expect("there is room");
    }
    let written = pair.execute();
    assert!(pair.post(sync(0)).is_err(), "executed is not polled");
    pair.poll(&written[0]);
    assert_eq!(pair.driver.slots_used(), 1);
    let accepted = (0..10).filter(|_| pair.post(sync(0)).is_ok()).count();
    assert_eq!(accepted, 3);
}

#[test]
fn match_completions_free_no_slot() {
    let mut pair = Pair::new(4, 1);
    pair.post(unsignalled(add(1))).expect("there is room");
    pair.settle();
    let completion = pair.arrive(1);
    pair.poll(&completion);
    assert_eq!(pair.driver.slots_used(), 1);
    assert!(pair.post(sync(0)).is_err());
}

// 8: handles

#[test]
fn handles_run_to_max_num_tags_inclusive_and_are_reused_in_the_order_of_release() {
    let mut pair = Pair::new(4, 64);
    let first: Vec<_> = (0..4).map(|tag| pair.post(add(tag)).expect("there is room")).collect();
    assert_eq!(first, [0, 1, 2, 3]);
    assert!(pair.post(add(9)).is_err());
    pair.settle();
    for tag in [2, 0] {
        let completion = pair.arrive(tag);
        pair.poll(&completion);
    }
    let next: Vec<_> = (10..12).map(|tag| pair.post(add(tag)).expect("there is room")).collect();
    assert_eq!(next, [4, 2]);
    pair.settle();
    for tag in [10, 11] {
        let completion = pair.arrive(tag);
        assert_eq!(pair.poll(&completion).wr_id, 1000 + tag, "device and driver mean the same entry");
    }
    assert_eq!(pair.post(add(12)), Ok(0));
}

#[test]
fn only_polling_frees_a_tag() {
    let mut pair = Pair::new(1, 16);
    let handle = pair.post(add(1)).expect("there is room");
    pair.settle();
    pair.post(del(handle)).expect("there is room");
    let written = pair.execute();
    assert!(pair.post(add(2)).is_err());
    pair.poll(&written[0]);
    assert_eq!(pair.post(add(2)), Ok(1));
}

// 8.1: what an entry waits for

#[test]
fn completions_owed_follow_the_table() {
    let info = TmInfo::default();
    let owed = |pair: &Pair| pair.driver.completions_owed(0);

    let mut pair = Pair::new(4, 16);
    pair.post(unsignalled(add(1))).expect("there is room");
    assert_eq!(owed(&pair), 1, "ADD unsignalled");

    let finals = [
        CqeOperation::Expected,
        CqeOperation::ConsumedMessage(info),
        CqeOperation::ConsumedMessageSoftwareRendezvous(info),
        CqeOperation::Canceled(info),
    ];
    for last in finals {
        let mut pair = Pair::new(4, 16);
        pair.post(add(1)).expect("there is room");
        assert_eq!(owed(&pair), 2, "ADD signalled");
        pair.settle();
        assert_eq!(owed(&pair), 1, "ADD polled");
        for first in [CqeOperation::Consumed(info), CqeOperation::ConsumedSoftwareRendezvous(info)] {
            pair.poll(&cqe(first, 0));
            assert_eq!(owed(&pair), 1, "{first:?} is not the last");
        }
        pair.poll(&cqe(last, 0));
        assert_eq!(owed(&pair), 0, "{last:?} is the last");
        assert_eq!(pair.driver.take_released().map(|released| released.receive_wr_id), Some(1001));
        assert_eq!(pair.driver.tags_free(), 4);
    }
}

#[test]
fn dels_count_by_the_table() {
    let owed = |pair: &Pair| pair.driver.completions_owed(0);
    let mut pair = Pair::new(4, 16);
    pair.post(add(1)).expect("there is room");
    pair.settle();
    pair.post(del(0)).expect("there is room");
    assert_eq!(owed(&pair), 2, "signalled, posted");
    pair.settle();
    assert_eq!(owed(&pair), 0, "success");

    let mut pair = Pair::new(4, 16);
    pair.post(add(1)).expect("there is room");
    pair.settle();
    let matched = pair.arrive(1);
    pair.post(del(0)).expect("not polled yet");
    pair.post(del(0)).expect("not polled yet");
    let failed = pair.execute();
    pair.poll(&matched);
    assert_eq!(owed(&pair), 2, "the match");
    pair.poll(&failed[0]);
    assert_eq!(owed(&pair), 1, "failure");
    pair.poll(&failed[1]);
    assert_eq!(owed(&pair), 0, "failure");

    let mut pair = Pair::new(4, 16);
    pair.post(add(1)).expect("there is room");
    pair.post(unsignalled(del(0))).expect("there is room");
    assert_eq!(owed(&pair), 1, "unsignalled: at once");
    pair.settle();
    assert_eq!(owed(&pair), 0);
    assert_eq!(pair.driver.tags_free(), 4);
}

// 8.2: DEL

#[test]
fn remove_fails_when_tag_was_consumed_meanwhile() {
    let mut pair = Pair::new(4, 16);
    pair.post(add(1)).expect("there is room");
    pair.settle();
    let matched = pair.arrive(1);
    pair.post(del(0)).expect("there is room");
    let failed = pair.execute();
    assert_eq!(pair.poll(&matched).wr_id, 1001);
    let completion = pair.poll(&failed[0]);
    let seen = (completion.status, completion.opcode, completion.wr_id);
    assert_eq!(seen, (status::TM_ERROR, Opcode::Del, 500));
}

#[test]
fn an_unsignalled_del_too_late_makes_the_match_a_general_error_with_a_stale_wr_id() {
    let mut pair = Pair::new(4, 16);
    pair.post(add(1)).expect("there is room");
    pair.settle();
    let matched = pair.arrive(1);
    pair.post(unsignalled(del(0))).expect("there is room");
    pair.post(sync(0)).expect("there is room");
    assert_eq!(pair.settle()[0].wr_id, 600);
    let completion = pair.poll(&matched);
    assert_eq!((completion.status, completion.wr_id), (status::GENERAL_ERROR, 600));
    assert_eq!(completion.flags, Flags { matched: true, data_valid: true, sync_requested: false });
}

#[test]
fn an_unsignalled_del_too_late_of_a_reused_entry_charges_another_receive() {
    let mut pair = Pair::new(1, 16);
    pair.post(add(1)).expect("there is room");
    pair.settle();
    let matched = pair.arrive(1);
    pair.post(unsignalled(del(0))).expect("there is room");
    assert_eq!(pair.post(add(2)), Ok(1));
    assert_eq!(pair.settle()[0].wr_id, 2);
    pair.post(del(1)).expect("there is room");
    pair.settle();
    assert_eq!(pair.post(add(3)), Ok(0));
    let completion = pair.poll(&matched);
    assert_eq!((completion.status, completion.wr_id), (status::SUCCESS, 1003));
}

// 9: completions

#[test]
fn completions_show_what_the_table_says() {
    let info = TmInfo { tag: 1, app_ctx: 5 };
    let (ok, incomplete) = (status::SUCCESS, status::TM_RENDEZVOUS_INCOMPLETE);
    let table = [
        (CqeOperation::ConsumedMessage(info), ok, true, true, info),
        (CqeOperation::Consumed(info), ok, true, false, info),
        (CqeOperation::Expected, ok, false, true, TmInfo::default()),
        (CqeOperation::ConsumedSoftwareRendezvous(info), incomplete, true, false, info),
        (CqeOperation::ConsumedMessageSoftwareRendezvous(info), incomplete, true, true, info),
        (CqeOperation::Canceled(info), incomplete, true, true, info),
    ];
    for (operation, status, matched, data_valid, tm_info) in table {
        let mut pair = Pair::new(4, 16);
        pair.post(add(1)).expect("there is room");
        pair.settle();
        let completion = pair.poll(&Cqe { byte_count: 48, ..cqe(operation, 0) });
        let seen = (completion.status, completion.opcode, completion.wr_id, completion.byte_len);
        let opcode = match operation {
            // libmlx5 has no word of its own for it.
            CqeOperation::Canceled(_) => Opcode::Receive,
            _ => Opcode::TagReceive,
        };
        assert_eq!(seen, (status, opcode, 1001, 48), "{operation:?}");
        assert_eq!(completion.flags, Flags { matched, data_valid, sync_requested: false });
        assert_eq!(completion.tm_info, tm_info, "{operation:?}");
    }
}

#[test]
fn list_operations_and_unexpected_messages_show_what_the_table_says() {
    let mut pair = Pair::new(4, 16);
    pair.arrive(9);
    pair.post(Request { unexpected_count: Some(1), ..add(1) }).expect("there is room");
    pair.post(del(0)).expect("there is room");
    pair.post(sync(1)).expect("there is room");
    let settled = pair.settle();
    let seen: Vec<_> = settled.iter().map(|it| (it.opcode, it.wr_id, it.byte_len, it.tm_info)).collect();
    let phase = TmInfo { tag: 0, app_ctx: 1 << 16 };
    assert_eq!(
        seen,
        [(Opcode::Add, 1, 0, phase), (Opcode::Del, 500, 0, phase), (Opcode::Sync, 600, 0, phase)]
    );
    for (operation, opcode) in
        [(CqeOperation::Unexpected, Opcode::TagReceive), (CqeOperation::NoTag, Opcode::NoTag)]
    {
        let completion = pair.poll(&Cqe { byte_count: 24, ..cqe(operation, 0) });
        assert_eq!((completion.opcode, completion.status), (opcode, status::SUCCESS));
        assert_eq!((completion.wr_id, completion.byte_len), (77, 24));
        assert_eq!((completion.flags, completion.tm_info), (Flags::default(), TmInfo::default()));
    }
}

#[test]
fn completions_that_cannot_be_are_errors() {
    let mut pair = Pair::new(4, 16);
    let append = cqe(CqeOperation::Append { phase: 0 }, 0);
    assert_eq!(pair.driver.poll(&append), Err(DriverError::NoOperation));
    let far = cqe(CqeOperation::Expected, 5);
    assert_eq!(pair.driver.poll(&far), Err(DriverError::NoEntry { index: 5 }));
    // A signalled and an unsignalled DEL of one entry: its count would fall below zero.
    pair.post(unsignalled(add(1))).expect("there is room");
    pair.post(del(0)).expect("there is room");
    pair.post(unsignalled(del(0))).expect("the driver does not mind");
    let written = pair.execute();
    assert_eq!(pair.driver.poll(&written[0]), Err(DriverError::CountBelowZero { index: 0 }));
}

// 11.5: SYNC_REQ

#[test]
fn sync_requested_follows_the_adds_count_alone() {
    let requested = |pair: &mut Pair| pair.settle().last().expect("is signalled").flags.sync_requested;
    let mut pair = Pair::new(8, 64);
    let unexpected = pair.arrive(9);
    pair.poll(&unexpected);
    pair.post(Request { unexpected_count: Some(1), ..add(1) }).expect("there is room");
    assert!(!requested(&mut pair), "in sync");

    let unexpected = pair.arrive(9);
    pair.poll(&unexpected);
    pair.post(Request { unexpected_count: Some(1), ..add(2) }).expect("there is room");
    assert!(requested(&mut pair), "behind by one");

    pair.post(sync(2)).expect("there is room");
    assert!(!requested(&mut pair), "never on a SYNC");
    pair.post(add(3)).expect("there is room");
    assert!(requested(&mut pair), "in sync, but only a SYNC said so");
    pair.post(Request { unexpected_count: Some(2), ..add(4) }).expect("there is room");
    assert!(!requested(&mut pair));
    let unexpected = pair.arrive(9);
    pair.poll(&unexpected);
    pair.post(Request { unexpected_count: Some(3), ..add(5) }).expect("there is room");
    assert!(!requested(&mut pair));
    pair.post(del(3)).expect("there is room");
    assert!(requested(&mut pair), "in sync, but the entry is older than the last message");
}

#[test]
fn unexpected_messages_ask_for_a_report_beyond_0x3fff() {
    let mut pair = Pair::new(8, 64);
    let unexpected = cqe(CqeOperation::Unexpected, 0);
    let first = (1..).find(|_| pair.poll(&unexpected).flags.sync_requested);
    assert_eq!(first, Some(0x4000));
}

/// 90,000 unexpected messages, each reported: the numbers of the first ADD and of the first unexpected
/// message that ask for a report.
fn first_requests(width: fn(u32) -> u32) -> (Option<u32>, Option<u32>) {
    let mut pair = Pair::new(4, 16);
    let mut first = (None, None);
    for number in 1..=90_000 {
        let unexpected = pair.arrive(9);
        if pair.poll(&unexpected).flags.sync_requested {
            first.1.get_or_insert(number);
        }
        let handle = pair.post(Request { unexpected_count: Some(width(number)), ..add(1) });
        let handle = handle.expect("there is room");
        let added = pair.settle()[0];
        assert!(pair.list.is_in_sync());
        if added.flags.sync_requested {
            first.0.get_or_insert(number);
        } else {
            assert_eq!(first.0, None, "from the first on, on every ADD");
        }
        pair.post(del(handle)).expect("there is room");
        pair.settle();
    }
    first
}

#[test]
fn counts_of_full_width_ask_on_every_add_from_message_65536_on() {
    assert_eq!(first_requests(|count| count), (Some(65_536), None));
}

#[test]
fn counts_of_16_bits_ask_on_unexpected_messages_from_65537_on() {
    assert_eq!(first_requests(|count| count & 0xffff), (None, Some(65_537)));
}
