//! More of what users, peers and fate may do in small scopes: multi-receives, senders that come back by another path,
//! claims received and dropped, few command slots, two senders directed by their tags on two devices, devices that fail
//! with everything under way.
//!
//! Not here: who goes through them.

use tagmatch::ids::PeerId;

use super::{A, ANY, B, beside, m, one, two};
use crate::world::scope::{Op, Path, Scope, any, from};

/// What CI goes through beside the others.
pub(super) fn all() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tags in [1, 2] {
        scopes.extend(with_multi_receives(tags));
        scopes.extend(coming_back(tags));
        scopes.extend(with_claims(tags));
        scopes.extend(with_failures(tags));
    }
    scopes.extend(with_few_slots());
    scopes.extend(directed());
    scopes
}

fn with_multi_receives(tags: u32) -> Vec<Scope> {
    vec![
        one("a multi-receive between", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .multi(2)
            .post(any(A, 0))
            .message(m(0, A, 0))
            .message(m(1, B, 0))
            .message(m(0, A, 0))
            .message(m(1, A, 0)),
        beside("a multi-receive, cancelled", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .multi(2)
            .cancel(1)
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .message(m(1, B, 1).packets(2)),
        two("a multi-receive behind one", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .multi(2)
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .message(m(1, B, 1).rendezvous(8)),
        one("a multi-receive, and a sender is lost", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .multi(2)
            .meanwhile(Op::Lose(PeerId(0)))
            .message(m(0, B, 0).packets(2))
            .message(m(1, A, 0))
            .message(m(0, A, 0).rendezvous(8)),
    ]
}

fn coming_back(tags: u32) -> Vec<Scope> {
    vec![
        beside("a sender comes back by the device", tags)
            .paths_known()
            .post(from(1, A, 0))
            .post(any(A, 0))
            .comes_back(1, 0)
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .message(m(1, A, 0)),
        beside("a sender comes back beside the device", tags)
            .paths_known()
            .post(any(A, 0))
            .post(from(1, A, 0))
            .comes_back(1, 1)
            .message(m(1, A, 0).packets(2))
            .message(m(1, A, 1))
            .message(m(1, B, 1)),
        two("a sender comes back by the other", tags)
            .paths_known()
            .post(any(A, 0))
            .post(from(0, A, 0))
            .comes_back(0, 1)
            .message(m(0, A, 0))
            .message(m(0, A, 1))
            .message(m(1, A, 1)),
        two("a sender comes back by the other, in batches", tags)
            .paths_known()
            .post(any(A, 0))
            .post(any(A, 0))
            .comes_back(0, 1)
            .message(m(0, A, 0))
            .message(m(0, A, 1))
            .in_batches(),
    ]
}

fn with_claims(tags: u32) -> Vec<Scope> {
    vec![
        beside("a claim received", tags)
            .post(any(A, 0))
            .post(any(A, 0))
            .claimed(0, any(0, ANY))
            .message(m(0, A, 0))
            .message(m(1, A, 1))
            .message(m(1, B, 1).rendezvous(32)),
        two("a claim dropped", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .discarded(0, any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 1)),
        one("claims, one received and one dropped", tags)
            .post(any(A, 0))
            .claimed(0, any(A, 0))
            .discarded(1, any(0, ANY))
            .message(m(0, A, 0).packets(2))
            .message(m(1, A, 0))
            .message(m(0, B, 0).rendezvous(32)),
        one("a claim, and its sender is lost", tags)
            .post(any(A, 0))
            .claimed(0, any(0, ANY))
            .meanwhile(Op::Peek(any(A, 0)))
            .meanwhile(Op::Lose(PeerId(0)))
            .message(m(0, A, 0).rendezvous(32))
            .message(m(1, A, 0)),
    ]
}

fn with_failures(tags: u32) -> Vec<Scope> {
    vec![
        one("the only device fails", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .cancel(0)
            .meanwhile(Op::Fail(0))
            .message(m(0, A, 0).packets(2))
            .message(m(1, A, 0).rendezvous(32)),
        beside("the device fails while messages wait", tags)
            .post(any(A, 0))
            .post(any(0, ANY))
            .meanwhile(Op::Fail(0))
            .message(m(0, A, 0).rendezvous(32))
            .message(m(1, A, 1))
            .message(m(1, B, 1)),
        two("one fails while the other's messages wait", tags)
            .post(any(A, 0))
            .post(any(A, 0))
            .cancel(0)
            .meanwhile(Op::Fail(1))
            .message(m(0, A, 0).packets(2))
            .message(m(1, A, 1)),
    ]
}

/// So few command slots that receives wait for them.
fn with_few_slots() -> Vec<Scope> {
    let few = || Path::matching(2).with_operations(4);
    let scope = |name: &str| Scope::new(&format!("four command slots, {name}")).path(few());
    vec![
        scope("three of one tag")
            .in_acceptance_order()
            .post(any(A, 0))
            .post(any(A, 0))
            .post(any(A, 0))
            .cancel(0)
            .message(m(0, A, 0))
            .message(m(1, A, 0)),
        scope("given back and taken again")
            .in_acceptance_order()
            .post(any(A, 0))
            .post(any(0, ANY))
            .meanwhile(Op::Switch(0, false))
            .meanwhile(Op::Switch(0, true))
            .message(m(0, A, 0))
            .message(m(1, B, 0)),
        scope("beside a path")
            .path(Path::plain())
            .post(any(A, 0))
            .post(any(0, ANY))
            .post(any(A, 0))
            .message(m(0, A, 0))
            .message(m(1, A, 1)),
        scope("in batches")
            .in_acceptance_order()
            .post(any(A, 0))
            .post(any(0, ANY))
            .post(any(A, 0))
            .message(m(0, B, 0))
            .message(m(1, A, 0))
            .in_batches(),
    ]
}

/// Senders that their tags name, by devices of their own.
fn directed() -> Vec<Scope> {
    let scope = |name: &str| two(name, 2).layout(0xf00);
    vec![
        scope("directed by the tag")
            .post(from(1, 0x100 | A, 0))
            .post(any(0, ANY))
            .post(from(0, A, 0))
            .message(m(0, A, 0))
            .message(m(1, 0x100 | A, 1))
            .message(m(0, A, 0)),
        scope("directed by the tag, paths known")
            .paths_known()
            .post(from(0, A, 0))
            .post(from(1, 0x100 | A, 0))
            .post(any(0x100 | A, 0xf00))
            .cancel(1)
            .message(m(0, A, 0))
            .message(m(1, 0x100 | A, 1))
            .message(m(1, 0x100 | B, 1)),
    ]
}
