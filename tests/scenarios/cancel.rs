//! Cancelling what may be matched already: B17.

use tagmatch::device::soft::Step;
use tagmatch::engine::{CancelOutcome, End};
use tagmatch::ids::PeerId;

use crate::orders::every_order;
use crate::world::{EAGER_LIMIT, NIC, PLAIN, Shape, World, count_up, each_way_stepped, exact, nic, plain};

const PEER: u32 = 1;

#[test]
fn b17_a_receive_whose_data_is_under_way_completes_although_it_is_cancelled_twice() {
    for (shape, length) in [(Shape::Rendezvous, 4096), (Shape::Packets(3), EAGER_LIMIT)] {
        for (mut world, device) in each_way_stepped() {
            world.post("c", exact(5), 4096);
            world.run();
            world.send_as(shape, device, PEER, 5, &count_up(length));
            world.step(device, Step::Accept(PeerId(PEER)));
            world.poll(device);
            // A NIC that another path needs has the receive still: its DEL first.
            while world.engine.waiting() > 0 {
                world.step(NIC, Step::Command);
                world.poll(NIC);
            }
            assert_eq!(world.cancel("c"), CancelOutcome::TooLate, "it is matched");
            assert_eq!(world.cancel("c"), CancelOutcome::TooLate);
            world.poll(device);
            assert!(world.is_open("c"), "its data is still to come");
            world.finish();
            assert_eq!(world.received("c"), count_up(length));
            assert_eq!(world.cancel("c"), CancelOutcome::TooLate);
            world.finish();
        }
    }
}

#[test]
fn b17_a_cancel_between_the_match_in_a_nic_and_its_completion_is_answered_by_the_message() {
    for shape in Shape::ALL {
        let mut world = World::stepped(&[nic(4), plain()]);
        world.post("c", exact(5), 256);
        world.run();
        world.send_as(shape, NIC, PEER, 5, b"data");
        world.step(NIC, Step::Accept(PeerId(PEER)));
        assert_eq!(world.cancel("c"), CancelOutcome::Pending);
        assert_eq!(world.cancel("c"), CancelOutcome::Pending, "once is enough");
        world.finish();
        assert_eq!(world.text("c"), "data");
        assert_eq!(world.engine.statistics().dels, 1);
    }
}

#[test]
fn b17_in_every_order_a_receive_is_cancelled_or_completed_and_the_message_is_not_lost() {
    for shape in Shape::ALL {
        for device in [NIC, PLAIN] {
            let (mut cancelled, mut completed) = (0, 0);
            every_order(|orders| {
                let mut world = World::stepped(&[nic(2), plain()]);
                world.post("c", exact(5), 256);
                world.send_as(shape, device, PEER, 5, b"data");
                let cancel = |world: &mut World| _ = world.cancel("c");
                world.explore(orders, &[cancel, cancel]);
                world.finish();
                if world.is_cancelled("c") {
                    cancelled += 1;
                    assert!(world.bytes(world.buffer("c")).iter().all(|&byte| byte == 0xee));
                    world.post("next", exact(5), 256);
                    world.finish();
                    assert_eq!(world.text("next"), "data");
                } else {
                    completed += 1;
                    assert!(matches!(world.end("c"), End::Received(_)));
                    assert_eq!(world.text("c"), "data");
                }
            });
            assert!(cancelled > 0 && completed > 0, "{shape:?} through {device}: {cancelled}, {completed}");
        }
    }
}
