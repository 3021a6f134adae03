//! Endpoints on two devices in random traffic. Also where packets are lost, doubled, and overtake each other, and between
//! two machines.

#[path = "lossy.rs"]
mod lossy;
#[path = "machines.rs"]
mod machines;

use std::time::Instant;

use tagmatch::endpoint::{Address, Completed, Config, Endpoint, Level, Send, SendRefused, Space, Statistics};
use tagmatch_sim::checker::{self, MessageName, Observation};

use super::traffic::{self, *};
use super::{Change, Memory, Random, RoceDevice, inside, open_changed, pattern, trusted};
use crate::device::loopback::LoopbackTransport;
use crate::device::soft::SoftConfig;
use crate::device::soft::over::OverTransport;
use crate::device::transport::{Payload, Transport};
use crate::ids::{DeviceId, Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern};

#[test]
fn endpoints_match_in_software_what_comes_over_soft_roce() {
    inside(concat!(module_path!(), "::endpoints_match_in_software_what_comes_over_soft_roce"), |devices| {
        let happened = run(devices, None);
        assert!(happened.sent_segmented > 0, "{happened:?}");
        assert_eq!(happened.matched_by_device, 0);
    });
}

#[test]
fn endpoints_match_by_the_soft_list_what_comes_over_soft_roce() {
    inside(
        concat!(module_path!(), "::endpoints_match_by_the_soft_list_what_comes_over_soft_roce"),
        |devices| {
            let happened = run(devices, Some(TAGS));
            assert!(happened.matched_by_device > 100, "{happened:?}");
        },
    );
}

/// Traffic between endpoints on these devices.
pub(super) fn run(devices: &[RoceDevice], tags: Option<u32>) -> Statistics {
    run_changed(devices, tags, &|config| config)
}

/// With devices that are changed so.
pub(super) fn run_changed(devices: &[RoceDevice], tags: Option<u32>, change: Change<'_>) -> Statistics {
    let last = devices.len() - 1;
    Traffic::run(std::array::from_fn(|number| endpoint(&devices[number % 2 * last], tags, change)))
}

/// An endpoint on this device, in software or with a list of so many tags.
pub(super) fn endpoint(device: &RoceDevice, tags: Option<u32>, change: Change<'_>) -> Endpoint {
    let below = open_changed(device, DeviceId(1), EAGER_LIMIT, change);
    let others: Box<dyn Transport + std::marker::Send> = match tags {
        None => Box::new(below),
        Some(tags) => {
            let config = SoftConfig { id: DeviceId(1), ..SoftConfig::matching(tags) };
            Box::new(OverTransport::new(below, config).unwrap())
        }
    };
    let own = LoopbackTransport::new(DeviceId(0), others.name(), EAGER_LIMIT, trusted()).unwrap();
    // What is sent to oneself teaches nothing here: the list is to see many messages.
    let config = Config { kept_from: 0, ..traffic::config() };
    Endpoint::new(config, vec![Box::new(own), others]).unwrap()
}
