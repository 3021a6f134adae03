//! Reading, over streams that are the test's: which bytes come together is the test's choice, and every run the same.

mod calls;
mod scripted;

use crate::device::tests::streamed::{Line as _, run};
use crate::device::tests::{RECEIVED_FROM, Recorder, framed_with};
use scripted::Scene;

#[test]
fn messages_are_whole_however_a_stream_is_cut() {
    for seed in 0..40 {
        run(&mut Scene::<false>::new(), seed, false);
        run(&mut Scene::<true>::new(), seed, false);
    }
}

#[test]
fn a_stream_that_ends_anywhere_ends_what_is_under_way_once() {
    for seed in 1000..1100 {
        run(&mut Scene::<false>::new(), seed, true);
        run(&mut Scene::<true>::new(), seed, true);
    }
}

/// Short messages are looked at where they lie, and may be looked at before they are all there.
fn a_short_message_arrives_when_all_of_it_is_there<const IS_RING: bool>(
    immediate: Option<u32>,
    payload: &[u8],
) {
    let flags = if immediate.is_some() { 4 } else { 0 };
    let header = [3, 0, 0, 0, 1, 1, 1, flags, 1, 2, 3, 4, 5, 6, 7, 8];
    let frame = framed_with(immediate, &[&header, payload].concat());
    for first in 0..frame.len() {
        let mut scene = Scene::<IS_RING>::new();
        let mut ear = Recorder::default();
        scene.give(&frame[..first]);
        for _ in 0..3 {
            scene.transport().progress(10, &mut ear).expect("it works");
        }
        let (here, whole) = (ear.arrivals(), first + payload.len() >= frame.len());
        assert!(here.is_empty() || whole && !here[0].in_hand, "{first} bytes of {frame:?}: {here:?}");
        scene.give(&frame[first..]);
        for _ in 0..3 {
            scene.transport().progress(10, &mut ear).expect("it works");
        }
        let arrivals = ear.arrivals();
        let [arrival] = arrivals.as_slice() else { panic!("{first} bytes of {frame:?}: {arrivals:?}") };
        assert_eq!(
            (arrival.header.tag.0, arrival.header.app_ctx),
            (0x0102_0304_0506_0708, u32::from_be_bytes([1, 1, 1, flags]))
        );
        assert_eq!((arrival.header.length, arrival.source), (payload.len() as u64, RECEIVED_FROM));
        assert_eq!(arrival.header.immediate, immediate);
    }
}

#[test]
fn a_short_message_that_is_cut_anywhere_arrives_when_it_is_there() {
    for immediate in [None, Some(0x0908_0706)] {
        for payload in [&[][..], &[1], &[1; 40]] {
            a_short_message_arrives_when_all_of_it_is_there::<false>(immediate, payload);
            a_short_message_arrives_when_all_of_it_is_there::<true>(immediate, payload);
        }
    }
}
