//! The small scopes that are explored whole, and those that show what each clause of the rules is for.
//!
//! Counters start just below the wrap in all of them. Tags: 0xa, 0xb; `ANY` ignores all bits.

mod wider;

use tagmatch::device::soft::Switches;
use tagmatch::device::soft::switches::{
    Activation, AppendActivates, CountAt, CountOrder, ExpectedOrder, FinOrder, HandBack, NoOffload, OutOfSync,
};

use tagmatch::ids::PeerId;

use crate::world::scope::{Message, Op, Path, Scope, any, from};

const A: u64 = 0xa;
const B: u64 = 0xb;
const ANY: u64 = u64::MAX;

const fn m(source: u32, tag: u64, path: u8) -> Message {
    Message::eager(source, tag, path)
}

fn one(name: &str, tags: u32) -> Scope {
    Scope::new(&format!("one device of {tags}, {name}")).path(Path::matching(tags)).in_acceptance_order()
}

fn two(name: &str, tags: u32) -> Scope {
    let (first, second) = (Path::matching(tags), Path::matching(tags));
    Scope::new(&format!("two devices of {tags}, {name}")).path(first).path(second)
}

fn beside(name: &str, tags: u32) -> Scope {
    let device = Path::matching(tags);
    Scope::new(&format!("device of {tags} beside a path, {name}")).path(device).path(Path::plain())
}

/// What CI goes through.
#[must_use]
pub fn all() -> Vec<Scope> {
    let mut scopes = one_device();
    scopes.extend(with_second_path());
    scopes.extend(two_devices());
    scopes.extend(three_and_three());
    scopes.extend(in_batches());
    scopes.extend(with_losses());
    scopes.extend(in_silence());
    scopes.extend(by_hand());
    scopes.extend(wider::all());
    scopes
}

/// Scopes again in which receives are put into the list while they are posted, and everything else in batches: with ADDs
/// that are told of, and without.
fn by_hand() -> Vec<Scope> {
    let is_longer = |scope: &Scope| scope.paths[0].tags == 2;
    let scopes = one_device().into_iter().chain(with_second_path()).filter(is_longer).map(Scope::by_hand);
    let told: Vec<Scope> = scopes.map(Scope::in_batches).collect();
    told.clone().into_iter().chain(told.into_iter().map(Scope::in_silence)).collect()
}

/// Scopes again in which the device tells of no ADD.
fn in_silence() -> Vec<Scope> {
    let is_longer = |scope: &Scope| scope.paths[0].tags == 2;
    let scopes = [one_device(), with_second_path(), two_devices(), with_losses()].into_iter().flatten();
    scopes.filter(is_longer).map(Scope::in_silence).chain([two_for_two().in_silence().in_batches()]).collect()
}

fn one_device() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            one("three of one tag", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .post(any(A, 0))
                .message(m(0, A, 0))
                .message(m(1, A, 0))
                .message(m(0, A, 0)),
        );
        scopes.push(
            one("exact, masked, exact", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(B, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 0))
                .message(m(0, B, 0)),
        );
        scopes.push(
            one("two cancels", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(A, 0))
                .cancel(0)
                .cancel(1)
                .message(m(0, A, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 0)),
        );
        scopes.push(
            one("messages of two packets", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .message(m(0, A, 0).packets(2))
                .message(m(1, A, 0).packets(2))
                .message(m(1, A, 0)),
        );
        scopes.push(
            one("rendezvous, one too long", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .cancel(0)
                .message(m(0, A, 0).rendezvous(32))
                .message(m(1, A, 0).rendezvous(900)),
        );
        scopes.push(
            one("given back and taken again", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(A, 0))
                .meanwhile(Op::Switch(0, false))
                .message(m(0, A, 0))
                .message(m(1, B, 0)),
        );
        scopes.push(
            one("peek and claim", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .meanwhile(Op::Peek(any(A, 0)))
                .meanwhile(Op::Claim(0, any(0, ANY)))
                .message(m(0, B, 0))
                .message(m(1, A, 0))
                .message(m(0, A, 0)),
        );
        let mut short = one("receives too short for the device", tags)
            .post(any(A, 0))
            .short()
            .post(any(0, ANY))
            .short()
            .post(any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 0));
        short.paths[0].bounces = 1;
        scopes.push(short);
        scopes.push(
            one("directed by the tag", tags)
                .layout(0xf00)
                .post(from(1, 0x100 | A, 0))
                .post(any(0, ANY))
                .post(from(0, A, 0))
                .message(m(0, A, 0))
                .message(m(1, 0x100 | A, 0))
                .message(m(0, A, 0)),
        );
    }
    scopes
}

fn with_second_path() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            beside("one message each, a cancel", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .cancel(0)
                .message(m(0, A, 0))
                .message(m(1, A, 1)),
        );
        scopes.push(
            beside("exact, masked, exact", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(B, 0))
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1)),
        );
        scopes.push(
            beside("two against one", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .cancel(0)
                .message(m(0, A, 0))
                .message(m(0, A, 0))
                .message(m(1, A, 1)),
        );
        scopes.push(
            beside("packets and rendezvous", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .message(m(0, A, 0).packets(2))
                .message(m(1, A, 1).rendezvous(32))
                .message(m(2, B, 1).packets(2)),
        );
        scopes.push(
            beside("directed without a layout", tags)
                .paths_known()
                .post(from(1, A, 0))
                .post(any(A, 0))
                .post(from(0, A, 0))
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(0, A, 0)),
        );
        scopes.push(
            beside("given back meanwhile", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .meanwhile(Op::Switch(0, false))
                .message(m(0, A, 0))
                .message(m(1, A, 1)),
        );
    }
    scopes
}

fn two_devices() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            two("one message each, a cancel", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .cancel(0)
                .message(m(0, A, 0))
                .message(m(1, A, 1)),
        );
        scopes.push(
            two("crosswise", tags)
                .post(any(A, 0))
                .post(any(B, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1)),
        );
        scopes.push(
            two("exact, masked", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1)),
        );
    }
    scopes.push(waiting_is_not_counted());
    scopes
}

/// Scopes in which commands are submitted in batches of any size.
fn in_batches() -> Vec<Scope> {
    vec![
        two_for_two().in_batches(),
        one("exact, masked, a cancel, in batches", 2)
            .post(any(A, 0))
            .post(any(0, ANY))
            .cancel(0)
            .message(m(0, B, 0))
            .message(m(1, A, 0))
            .in_batches(),
        beside("one message each, a cancel, in batches", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .in_batches(),
        two("exact, masked, in batches", 1)
            .post(any(A, 0))
            .post(any(0, ANY))
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .in_batches(),
    ]
}

/// Scopes in which a path or a device is lost.
fn with_losses() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            one("a sender is lost", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .meanwhile(Op::Lose(PeerId(0)))
                .message(m(0, A, 0).packets(2))
                .message(m(1, A, 0))
                .message(m(0, B, 0).rendezvous(32)),
        );
        scopes.push(
            beside("the sender beside is lost", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .meanwhile(Op::Lose(PeerId(1)))
                .message(m(0, A, 0))
                .message(m(1, A, 1).packets(2))
                .message(m(1, A, 1).rendezvous(32)),
        );
        scopes.push(
            beside("the device fails", tags)
                .post(any(A, 0))
                .post(any(A, 0))
                .cancel(0)
                .meanwhile(Op::Fail(0))
                .message(m(0, A, 0).packets(2))
                .message(m(1, A, 1)),
        );
        scopes.push(
            two("one of them fails", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .meanwhile(Op::Fail(0))
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1)),
        );
    }
    scopes
}

fn two_for_two() -> Scope {
    one("two messages for two receives", 2)
        .post(any(A, 0))
        .post(any(A, 0))
        .message(m(0, A, 0))
        .message(m(0, A, 0))
}

/// A message waits for another device's receive, one of its sender behind it, and a receive for that one comes.
#[must_use]
pub fn waiting_is_not_counted() -> Scope {
    two("a message behind one that waits", 1)
        .post(any(A, 0))
        .post(any(B, 0))
        .message(m(0, A, 1))
        .message(m(0, B, 1))
        .message(m(0, B, 1))
}

/// A scope in which the absence of a clause shows.
#[must_use]
#[cfg(feature = "ablation")]
pub fn for_clause(clause: tagmatch::offload::Clause) -> Option<Scope> {
    use tagmatch::offload::Clause;
    let scope = match clause {
        Clause::BlocksUntilDelPolled => two("one is cancelled", 1)
            .post(any(A, 0))
            .post(any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 1)),
        Clause::CountDecided | Clause::WaitingNotCounted => waiting_is_not_counted(),
        Clause::CountBehindDels => two_for_two().in_batches(),
        Clause::SignalledDel => {
            beside("one receive", 1).post(any(A, 0)).message(m(0, A, 0)).message(m(1, A, 1))
        }
        Clause::NeverPassesOver => beside("one receive", 1).post(any(A, 0)).message(m(1, A, 1)),
        Clause::ClaimantBeforeCancel => beside("cancelled while asked back", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 1)),
        Clause::LaterOfSourceWait => beside("the later fits nothing", 1)
            .post(any(A, 0))
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .message(m(1, B, 1)),
        Clause::PollOn => {
            two("crosswise", 1).post(any(A, 0)).post(any(B, 0)).message(m(0, B, 0)).message(m(1, A, 1))
        }
        Clause::RecallNewestFirst => one("given back", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .meanwhile(Op::Switch(0, false))
            .message(m(0, A, 0)),
        Clause::NoAddWhileRecalling => one("given back and taken again", 2)
            .post(any(A, 0))
            .then(Op::Switch(0, false))
            .then(Op::Switch(0, true))
            .post(any(A, 0))
            .message(m(0, A, 0)),
        Clause::TakesDespiteDel => one("cancelled while a message comes", 1)
            .post(any(A, 0))
            .post(any(0, ANY))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, B, 0)),
        Clause::RecalledBlocks | Clause::FailedDelMeansMatched | Clause::BufferBudget => return None,
    };
    // docs/ordering.md shows what is found.
    Some(Scope { silent_adds_max: 0, ..scope })
}

/// Other readings of the contract, by name; which of them must break order.
#[must_use]
pub fn readings() -> Vec<(&'static str, Switches, bool)> {
    let usual = Switches::default();
    vec![
        ("A1", Switches { activation: Activation::OnlyAtAppend, ..usual }, true),
        ("A2", Switches { out_of_sync: OutOfSync::NothingMatches, ..usual }, false),
        ("A3 after", Switches { count_order: CountOrder::AfterChange, ..usual }, false),
        ("A3 not atomic", Switches { count_order: CountOrder::BeforeChangeNotAtomic, ..usual }, false),
        ("A4", Switches { append_activates: AppendActivates::Itself, ..usual }, true),
        ("A9", Switches { no_offload: NoOffload::Unexpected, ..usual }, true),
        ("A10 0x9, 0x2", Switches { hand_back: HandBack::ThenExpected, ..usual }, false),
        ("A10 0x9, 0xc", Switches { hand_back: HandBack::ThenCanceled, ..usual }, false),
        ("A12 in order", Switches { expected_order: ExpectedOrder::AsMatched, ..usual }, false),
        ("A12 FIN", Switches { fin_order: FinOrder::AfterExpected, ..usual }, false),
        ("A19", Switches { count_at: CountAt::LastPacket, ..usual }, true),
    ]
}

fn without_rendezvous(mut scope: Scope) -> Scope {
    for path in &mut scope.paths {
        path.rendezvous = false;
    }
    scope
}

/// Scopes large enough to show a reading that breaks order.
#[must_use]
pub fn for_readings() -> Vec<Scope> {
    // A SYNC repairs some of it, and more SYNCs go out where ADDs are silent.
    let told = readable().into_iter().map(|scope| Scope { silent_adds_max: 0, ..scope });
    told.chain(readable().into_iter().map(Scope::in_silence)).collect()
}

fn readable() -> Vec<Scope> {
    vec![
        one("three of one tag", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .post(any(A, 0))
            .message(m(0, A, 0))
            .message(m(0, A, 0))
            .message(m(0, A, 0)),
        one("another unexpected first", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .message(m(0, B, 0))
            .message(m(0, A, 0)),
        one("messages of two packets", 2)
            .post(any(A, 0))
            .post(any(A, 0))
            .message(m(0, A, 0).packets(2))
            .message(m(1, A, 0).packets(2))
            .message(m(0, A, 0)),
        one("rendezvous, one too long", 1)
            .post(any(A, 0))
            .post(any(0, ANY))
            .message(m(0, A, 0).rendezvous(32))
            .message(m(1, A, 0).rendezvous(900)),
        without_rendezvous(
            one("rendezvous, not offloaded", 1)
                .post(any(A, 0))
                .message(m(0, A, 0).rendezvous(32))
                .message(m(0, A, 0)),
        ),
    ]
}

/// Scopes that take longer than CI affords.
#[must_use]
pub fn large() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            two("three and four, two cancels, in batches", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(B, 0))
                .cancel(0)
                .cancel(1)
                .message(m(0, A, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1))
                .in_batches(),
        );
        scopes.push(
            beside("three and four, two cancels, in batches", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(A, 0))
                .cancel(0)
                .cancel(1)
                .message(m(0, A, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 1))
                .message(m(2, B, 1))
                .in_batches(),
        );
        scopes.push(
            one("three and four, three cancels, in batches", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(A, 0))
                .cancel(0)
                .cancel(1)
                .cancel(2)
                .message(m(0, A, 0))
                .message(m(0, B, 0))
                .message(m(1, A, 0).packets(2))
                .message(m(1, B, 0))
                .in_batches(),
        );
    }
    scopes
}

fn three_and_three() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.push(
            two("three and three, a cancel", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(B, 0))
                .cancel(0)
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(1, B, 1)),
        );
        scopes.push(
            beside("three and three, two cancels", tags)
                .post(any(A, 0))
                .post(any(0, ANY))
                .post(any(A, 0))
                .cancel(0)
                .cancel(1)
                .message(m(0, A, 0))
                .message(m(1, A, 1))
                .message(m(2, B, 1)),
        );
    }
    scopes
}
