//! Rewriting the layout of tags. That no result changes is tested in `replay`.

use super::*;
use crate::ids::{Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern};
use crate::traces::layout::{Layout, LayoutError, apply};

fn rewritten(text: &str) -> Result<Trace, LayoutError> {
    apply(Layout::SourceInTag, parse(text).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_source_goes_into_bits_51_to_34_and_the_communicator_above() {
    // Communicator 5, synchronous send, tag 7.
    let trace = rewritten(
        "# mpi: x, ofi_tag_full\narrive 0 tag=1500000007 src=3 len=0\n\
         post 0 tag=1500000007 ignore=100000000 src=3 len=0\nmatch 0 0\n\
         post 1 tag=1400000007 ignore=100000000 src=any len=0\n",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let tag = Tag((5 << 52) | (3 << 34) | (1 << 32) | 7);
    let events: Vec<_> = trace.steps.iter().map(|step| step.event).collect();
    assert_eq!(
        events,
        [
            Event::Arrive {
                message: MessageNumber(0),
                envelope: Envelope { tag, source: PeerId(3) },
                length: 0
            },
            Event::Post {
                receive: ReceiveNumber(0),
                pattern: Pattern { tag, ignore: Ignore(1 << 32), source: Source::Any },
                length: 0
            },
            Event::Post {
                receive: ReceiveNumber(1),
                pattern: Pattern {
                    tag: Tag((5 << 52) | 7),
                    ignore: Ignore(0xf_fffd_0000_0000),
                    source: Source::Any
                },
                length: 0
            },
        ]
    );
}

#[test]
fn a_trace_with_the_source_in_the_tag_stays_as_it_is() {
    let text = "# mpi: x, ofi_tag_1\npost 0 tag=1 ignore=0 src=4 len=0\n";
    assert_eq!(rewritten(text).ok(), parse(text).ok());
}

#[test]
fn an_unknown_layout_is_refused() {
    assert_eq!(
        rewritten("# mpi: MPICH\n").map_err(|error| error.to_string()).err().as_deref(),
        Some("t: expected the header \"mpi\" to name ofi_tag_full or ofi_tag_1, found \"MPICH\"")
    );
}

#[test]
fn a_communicator_of_more_than_12_bits_is_refused() {
    assert_eq!(
        rewritten("# mpi: ofi_tag_full\narrive 0 tag=400000000000 src=0 len=0\n")
            .map_err(|error| error.to_string())
            .err()
            .as_deref(),
        Some("t:3: communicator 4096 does not fit into the 12 bits that source-in-tag has for it")
    );
}

#[test]
fn a_rank_of_more_than_18_bits_is_refused() {
    assert_eq!(
        rewritten("# mpi: ofi_tag_full\narrive 0 tag=0 src=262144 len=0\n")
            .map_err(|error| error.to_string())
            .err()
            .as_deref(),
        Some("t:3: rank 262144 does not fit into the 18 bits that source-in-tag has for it")
    );
}

#[test]
fn a_receive_that_ignores_the_communicator_is_refused() {
    assert_eq!(
        rewritten("# mpi: ofi_tag_full\npost 0 tag=0 ignore=400000000 src=0 len=0\n")
            .map_err(|error| error.to_string())
            .err()
            .as_deref(),
        Some("t:3: ignore=400000000 covers bits of the communicator; source-in-tag cannot express that")
    );
}
