//! Random messages through rings, cut anywhere.

use super::raw::Raw;
use crate::device::shm::ShmConfig;
use crate::device::shm::ring::Rings;
use crate::device::tests::streamed::{EAGER_LIMIT, Line, run};
use crate::device::tests::{Rig, pattern, shared_memory_with};
use crate::device::transport::Transport;

struct Ring {
    raw: Raw,
    rings: Rings,
}

fn line() -> Ring {
    let config = ShmConfig { eager_limit: EAGER_LIMIT, ..ShmConfig::default() };
    let (raw, rings) = Raw::greeted_to(shared_memory_with(config));
    Ring { raw, rings }
}

impl Line for Ring {
    fn transport(&mut self) -> &mut dyn Transport {
        &mut self.raw.transport
    }

    fn give(&mut self, bytes: &[u8]) -> usize {
        self.rings.write(bytes).expect("the other side keeps to what rings are")
    }

    fn end(&mut self) {
        self.rings.end();
    }

    fn written(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 16];
        let count = self.rings.read(&mut bytes).expect("the other side keeps to what rings are");
        bytes.truncate(count);
        bytes
    }
}

#[test]
fn messages_are_whole_however_the_ring_is_cut() {
    (0..30).for_each(|seed| run(&mut line(), seed, false));
}

#[test]
fn a_ring_that_ends_anywhere_ends_what_is_under_way_once() {
    (1000..1060).for_each(|seed| run(&mut line(), seed, true));
}

#[test]
fn a_message_of_no_bytes_that_a_full_ring_cuts_keeps_its_tag() {
    const HEADERS: usize = 24;
    for cut in 1..HEADERS {
        let mut rig = Rig::shm();
        let mut left = ShmConfig::default().ring_bytes - cut;
        let mut sent = 0_u64;
        while left > 0 {
            let frame = if left < 2 * 4096 { left } else { 4096 };
            rig.send_eager(sent, &pattern(0, frame - HEADERS));
            left -= frame;
            sent += 1;
        }
        // The ring has room for so many bytes of this one. No byte of its tag is 0.
        rig.send_eager(u64::MAX, &[]);
        rig.step_receiver();
        assert_eq!(rig.ear().arrivals().len() as u64, sent, "cut behind {cut} bytes");
        rig.send_eager(0, b"behind");
        let arrivals = rig.until_arrived(usize::try_from(sent).expect("they are few") + 2);
        let last = arrivals[arrivals.len() - 2];
        assert_eq!((last.header.tag.0, last.header.length), (u64::MAX, 0), "cut behind {cut} bytes");
    }
}
