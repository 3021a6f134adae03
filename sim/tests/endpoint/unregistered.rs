//! Receives that the card cannot have, since it registers no such memory.

use std::time::Instant;

use super::card::matching_on;
use tagmatch::device::transport::Payload;
use tagmatch::endpoint::{Address, Completed, Config, Endpoint, Level, Post, Send, SendRefused, Space};
use tagmatch::engine::Kind;
use tagmatch::ids::{Ignore, Tag};
use tagmatch::offload::Reason;
use tagmatch::seam::Buffer;
use tagmatch_sim::hca::{HcaConfig, Limits};
use tagmatch_sim::hca_abi::{Drive, HcaControl};

fn post(endpoint: &mut Endpoint, tag: u64, length: usize, context: u64) {
    let memory: &'static mut [u8] = vec![0; length].leak();
    let buffer = Buffer::new(memory.as_mut_ptr().expose_provenance() as u64, length as u64);
    let (space, ignore, kind) = (Space::Tagged, Ignore::NONE, Kind::Once);
    let post = Post { space, source: None, tag: Tag(tag), ignore, buffer, kind, context, flags: 0 };
    endpoint.post(&post).unwrap();
}

fn until(endpoints: &mut [Endpoint; 2], began: Instant, mut is_so: impl FnMut(&mut [Endpoint; 2]) -> bool) {
    for _ in 0..2_000_000 {
        if is_so(endpoints) {
            return;
        }
        for endpoint in endpoints.iter_mut() {
            endpoint.progress(began.elapsed()).unwrap();
        }
        std::thread::yield_now();
    }
    panic!("it never comes about");
}

/// As with the limit of locked memory: stretches up to 12 MiB are registered, longer ones are not.
#[test]
fn receives_that_cannot_be_registered_are_matched_by_software_in_order_and_the_others_by_the_card() {
    let limits = Limits { locked: 12 << 20, ..Limits::default() };
    let card = HcaControl::new(HcaConfig { limits, ..HcaConfig::default() }, Drive::Thread).unwrap();
    let mut both = [matching_on(&card, Config::default()), matching_on(&card, Config::default())];
    let began = Instant::now();
    let name = both[0].name().to_vec();
    both[1].set_address(Address(0), &name).unwrap();
    // Of one tag, the long ones in between and one cancelled; and of others, which overlap nothing.
    let long = |number: u64| number % 4 == 2;
    for number in 0..20 {
        post(&mut both[0], 7, if long(number) { 16 << 20 } else { 9000 }, number);
    }
    for number in 100..110 {
        post(&mut both[0], number, 9000, number);
    }
    until(&mut both, began, |both| both[0].offload_statistics().adds > 0);
    assert!(both[0].cancel(6));
    let mut order = Vec::new();
    let messages = (0..20).filter(|number| *number != 6).map(|number| (7, number));
    for (tag, number) in messages.chain((100..110).map(|number| (number, number))) {
        let text = [u8::try_from(number).unwrap(); 5];
        let send = Send {
            space: Space::Tagged,
            to: Address(0),
            tag: Tag(tag),
            payload: Payload::Copied(&text),
            cq_data: None,
            level: Level::Inject,
            more: false,
            context: 0,
            flags: 0,
        };
        until(&mut both, began, |both| match both[1].send(&send) {
            Ok(()) => true,
            Err(SendRefused::Again) => false,
            Err(other) => panic!("{other}"),
        });
    }
    let mut cancelled = Vec::new();
    until(&mut both, began, |both| {
        while let Some(said) = both[0].poll_completion() {
            match said.what {
                Completed::Received { address, placed: 5, .. } => {
                    let from = std::ptr::with_exposed_provenance::<u8>(usize::try_from(address).unwrap());
                    // SAFETY: it lies in memory that was leaked for it, with which the endpoint is done.
                    order.push((said.context, u64::from(unsafe { from.read() })));
                }
                Completed::Cancelled => cancelled.push(said.context),
                other => panic!("{other:?}"),
            }
        }
        order.len() == 29
    });
    assert_eq!(cancelled, [6]);
    assert!(order.iter().all(|(context, number)| context == number), "{order:?}");
    let statistics = *both[0].statistics();
    // Behind the first long one, all of that tag.
    assert!(statistics.matched_by_device >= 10, "{statistics:?}");
    assert!(statistics.matched_posted >= 5, "{statistics:?}");
    // Each is in software for its own reason, and none counts as in the list: five long ones, one of which was cancelled,
    // and what overlaps the first of them.
    let offloaded = *both[0].offload_statistics();
    let by = |reason| offloaded.first_ended(reason);
    let (long, behind) = (by(Reason::NotRegistered), by(Reason::OlderOverlap));
    assert!(long >= 1 && long + behind == 17, "{offloaded:?}");
    assert_eq!((offloaded.set_aside, offloaded.adds), (18, 12), "{offloaded:?}");
    assert_eq!(offloaded.posted_first(), 29, "{offloaded:?}");
}
