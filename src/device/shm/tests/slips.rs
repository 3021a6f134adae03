//! What goes through rings comes out as it went in, whichever of it stands on slips and however it is read.

use crate::device::shm::region::Region;
use crate::device::shm::ring::Rings;
use crate::device::shm::tests::raw::RING;
use crate::device::sockets::sys::Part;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ bits >> 31) % bound as u64).expect("it is small")
    }
}

fn both() -> [Rings; 2] {
    let (region, file) = Region::create(RING).expect("there is memory");
    [Rings::new(region, true), Rings::new(Region::open(&file, RING).expect("it is whole"), false)]
}

/// Bytes of one direction, by their place in it.
fn byte(place: usize) -> u8 {
    u8::try_from(place * 7 % 251).expect("it is small")
}

/// What one side has sent and the other taken.
#[derive(Default)]
struct Direction {
    sent: usize,
    taken: usize,
}

fn send(rings: &mut Rings, direction: &mut Direction, random: &mut Random) {
    let most = [12, 40, 41, 100, 5000][random.below(5)];
    let length = 1 + random.below(most);
    let bytes: Vec<u8> = (direction.sent..direction.sent + length).map(byte).collect();
    if random.below(8) == 0 {
        direction.sent += rings.write(&bytes).expect("it is a ring");
    } else {
        let (front, rest) = bytes.split_at(random.below(length));
        let parts = [front, rest].into_iter().map(Part::Bytes);
        direction.sent += if rings.write_whole(length, parts) { length } else { 0 };
    }
}

fn receive(rings: &mut Rings, direction: &mut Direction, random: &mut Random) {
    let expected = |direction: &Direction, length| -> Vec<u8> {
        (direction.taken..direction.taken + length).map(byte).collect()
    };
    let (there, front) = rings.peek::<28>().expect("it is a ring");
    let known = there.min(28);
    assert_eq!(front[..known], expected(direction, known));
    let mut into = vec![0; 1 + random.below(6000)];
    if random.below(3) == 0 {
        let count = rings.read(&mut into).expect("it is a ring");
        assert_eq!(into[..count], expected(direction, count));
        direction.taken += count;
    } else if there > 0 {
        let length = there.min(into.len());
        let skipped = random.below(length + 1);
        let into = &mut into[..length - skipped];
        rings.take_bytes(skipped, into);
        direction.taken += skipped;
        assert_eq!(*into, expected(direction, length - skipped));
        direction.taken += length - skipped;
    }
    assert!(direction.taken <= direction.sent);
}

#[test]
fn whatever_stands_on_slips_bytes_come_out_as_they_went_in() {
    let mut random = Random(5);
    for _ in 0..20 {
        let mut rings = both();
        let mut directions = [Direction::default(), Direction::default()];
        for _ in 0..20_000 {
            let side = random.below(2);
            if random.below(2) == 0 {
                send(&mut rings[side], &mut directions[side], &mut random);
            } else {
                receive(&mut rings[1 - side], &mut directions[side], &mut random);
            }
        }
        for side in 0..2 {
            while directions[side].taken < directions[side].sent {
                receive(&mut rings[1 - side], &mut directions[side], &mut random);
            }
        }
        assert!(directions[0].sent > 20 * RING);
    }
}

#[test]
fn a_short_message_for_a_reader_that_waits_for_it_leaves_the_ring_as_it_is() {
    let [mut here, mut there] = both();
    for turn in 0..100_u8 {
        let bytes = [turn; 36];
        assert!(here.write_whole(36, [&bytes[..10], &bytes[10..]].into_iter().map(Part::Bytes)));
        assert_eq!(there.peek::<28>().expect("it is a ring"), (36, [turn; 28]));
        let mut into = [0; 36];
        there.take_bytes(0, &mut into);
        assert_eq!(into, bytes);
        // The answer says that it was taken.
        assert!(there.write_whole(1, std::iter::once(Part::Bytes(&[turn]))));
        assert_eq!(here.read(&mut into).expect("it is a ring"), 1);
        assert!(here.slips() == u64::from(turn) + 1 && there.slips() == u64::from(turn) + 1);
    }
    // Without an answer nobody knows.
    assert!(here.write_whole(1, std::iter::once(Part::Bytes(b"x"))));
    assert!(here.write_whole(1, std::iter::once(Part::Bytes(b"y"))));
    assert_eq!(here.slips(), 101);
    let mut into = [0; 2];
    assert_eq!(there.read(&mut into).expect("it is a ring"), 2);
    assert_eq!(&into, b"xy");
}
