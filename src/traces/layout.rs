//! The same run with another layout of the tag: the source carried in the tag.
//!
//! A NIC sees the tag only, so that a directed receive can be given to it only if the tag names the source
//! (the reason "directed"). Open MPI's `ofi_tag_full` keeps the source beside the tag; its `ofi_tag_1`
//! puts it into bits 51..34. This module rewrites the first into the second. Which receive fits which message stays
//! the same, so that the expected results do, too.
//!
//! One difference to a run recorded with `ofi_tag_1`: the source in the tag is the world rank here, the rank in the
//! communicator there. Both tell the senders of one communicator apart.

use super::{Event, Step, Trace};
use crate::ids::{Ignore, PeerId, Source, Tag};
use crate::matching::{Envelope, Pattern};

/// Which layout of the tag to replay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Layout {
    /// As it was recorded.
    #[default]
    Recorded,
    /// The source in the tag, receives from anybody.
    SourceInTag,
}

/// Why a trace cannot be rewritten.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The header does not say that the layout is one that can be rewritten.
    #[error("{file}: expected the header \"mpi\" to name ofi_tag_full or ofi_tag_1, found \"{mpi}\"")]
    Unknown {
        /// The trace.
        file: String,
        /// The header's value; empty if there is none.
        mpi: String,
    },
    /// A communicator's number does not fit into 12 bits.
    #[error(
        "{file}:{line}: communicator {communicator} does not fit into the 12 bits that source-in-tag has for it"
    )]
    Communicator {
        /// The trace.
        file: String,
        /// Where.
        line: u64,
        /// Its number.
        communicator: u64,
    },
    /// A rank does not fit into 18 bits.
    #[error("{file}:{line}: rank {rank} does not fit into the 18 bits that source-in-tag has for it")]
    Rank {
        /// The trace.
        file: String,
        /// Where.
        line: u64,
        /// The rank.
        rank: u32,
    },
    /// A receive ignores bits of the communicator.
    #[error(
        "{file}:{line}: ignore={ignore:x} covers bits of the communicator; source-in-tag cannot express that"
    )]
    Ignore {
        /// The trace.
        file: String,
        /// Where.
        line: u64,
        /// The mask.
        ignore: u64,
    },
}

/// The trace in this layout. One that is recorded with the source in the tag stays as it is.
///
/// # Errors
/// The trace cannot be expressed in this layout; the error says where and why.
pub fn apply(layout: Layout, trace: Trace) -> Result<Trace, LayoutError> {
    match layout {
        Layout::Recorded => Ok(trace),
        Layout::SourceInTag => source_in_tag(trace),
    }
}

fn source_in_tag(mut trace: Trace) -> Result<Trace, LayoutError> {
    let mpi = trace.header.value("mpi").unwrap_or_default();
    let mut words = mpi.split([',', ' ']);
    if words.any(|word| word == "ofi_tag_1") {
        return Ok(trace);
    }
    if !mpi.split([',', ' ']).any(|word| word == "ofi_tag_full") {
        return Err(LayoutError::Unknown { file: trace.name.clone(), mpi: mpi.to_owned() });
    }
    let Trace { name, steps, .. } = &mut trace;
    for step in steps {
        rewrite(name, step)?;
    }
    Ok(trace)
}

fn rewrite(file: &str, step: &mut Step) -> Result<(), LayoutError> {
    let place = Place { file, line: step.line };
    match &mut step.event {
        Event::Post { pattern, .. } | Event::Peek { pattern, .. } => *pattern = place.pattern(*pattern)?,
        Event::Arrive { envelope, .. } => *envelope = place.envelope(*envelope)?,
        Event::Claim { .. } | Event::Cancel { .. } => {}
    }
    Ok(())
}

/// Where a rewrite happens, for its errors.
struct Place<'a> {
    file: &'a str,
    line: u64,
}

impl Place<'_> {
    fn envelope(&self, envelope: Envelope) -> Result<Envelope, LayoutError> {
        let tag = Tag(self.tag(envelope.tag)?.0 | self.source(envelope.source)?);
        Ok(Envelope { tag, ..envelope })
    }

    fn pattern(&self, pattern: Pattern) -> Result<Pattern, LayoutError> {
        let ignore = pattern.ignore.0;
        if ignore >> LOW_BITS != 0 {
            return Err(LayoutError::Ignore { file: self.file.to_owned(), line: self.line, ignore });
        }
        let tag = self.tag(pattern.tag)?;
        let (source, ignored) = match pattern.source {
            Source::Peer(peer) => (self.source(peer)?, 0),
            // A trace has no groups; a receive from a group could only be kept as one from anybody.
            Source::Any | Source::Group(_) => (0, SOURCE_MASK),
        };
        Ok(Pattern { tag: Tag(tag.0 | source), ignore: Ignore(ignore | ignored), source: Source::Any })
    }

    fn tag(&self, tag: Tag) -> Result<Tag, LayoutError> {
        let communicator = tag.0 >> LOW_BITS;
        if communicator >> COMMUNICATOR_BITS != 0 {
            return Err(LayoutError::Communicator {
                file: self.file.to_owned(),
                line: self.line,
                communicator,
            });
        }
        Ok(Tag((communicator << (LOW_BITS + SOURCE_BITS)) | (tag.0 & ((1 << LOW_BITS) - 1))))
    }

    fn source(&self, peer: PeerId) -> Result<u64, LayoutError> {
        if peer.0 >> SOURCE_BITS != 0 {
            return Err(LayoutError::Rank { file: self.file.to_owned(), line: self.line, rank: peer.0 });
        }
        Ok(u64::from(peer.0) << LOW_BITS)
    }
}

/// MPI tag (32), synchronous send, its acknowledgement: the same in both layouts.
const LOW_BITS: u32 = 34;
/// Bits 51..34 of `ofi_tag_1`.
const SOURCE_BITS: u32 = 18;
/// Bits 63..52 of `ofi_tag_1`.
const COMMUNICATOR_BITS: u32 = 12;
const SOURCE_MASK: u64 = ((1 << SOURCE_BITS) - 1) << LOW_BITS;
