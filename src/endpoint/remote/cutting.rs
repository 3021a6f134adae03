//! How an access is cut: where memory here and stretches there both go on, and no longer than one message.

use crate::seam::{Buffer, Segment};
use crate::wire::RemoteStretch;

/// How far it is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cursor {
    /// The stretch that is next, and where in it.
    stretch: usize,
    offset: u64,
    /// The segment that is next, and where in it.
    segment: usize,
    within: u64,
    /// Where in all the bytes of the access.
    place: u64,
}

/// A piece of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Which segment, and where in it.
    segment: usize,
    within: u64,
    /// Bytes: none only of a stretch of none.
    pub(super) length: u64,
    /// Of which stretch it is.
    pub(super) stretch: RemoteStretch,
    /// Where in the stretch it begins.
    pub(super) offset: u64,
    /// Where in all the bytes of the access it begins.
    pub(super) place: u64,
    /// The stretch ends with it.
    pub(super) ends_stretch: bool,
    /// The access does.
    pub(super) is_last: bool,
}

impl Cursor {
    /// The next piece of at most so many bytes, and where it leaves off. `None`: there is none.
    pub(super) fn next(
        mut self,
        segments: &[Segment],
        stretches: &[RemoteStretch],
        limit: u64,
    ) -> Option<(Piece, Self)> {
        let stretch = *stretches.get(self.stretch)?;
        let left = stretch.length - self.offset;
        while left > 0 && segments.get(self.segment).is_some_and(|segment| segment.length == self.within) {
            (self.segment, self.within) = (self.segment + 1, 0);
        }
        let there = segments.get(self.segment).map_or(0, |segment| segment.length - self.within);
        let length = left.min(there).min(limit.max(1));
        // Both have as many bytes: whoever begins an access sees to that.
        debug_assert!(length > 0 || left == 0, "{segments:?} are shorter than {stretches:?}");
        let ends_stretch = length == left;
        let piece = Piece {
            segment: self.segment,
            within: self.within,
            length,
            stretch,
            offset: self.offset,
            place: self.place,
            ends_stretch,
            is_last: ends_stretch && self.stretch + 1 == stretches.len(),
        };
        let (next, offset) =
            if ends_stretch { (self.stretch + 1, 0) } else { (self.stretch, self.offset + length) };
        let behind =
            Self { stretch: next, offset, within: self.within + length, place: self.place + length, ..self };
        Some((piece, behind))
    }
}

impl Piece {
    /// Where it lies in memory of this side's, from so many of its bytes on.
    pub(super) fn buffer(&self, segments: &[Segment], from: u64, length: u64) -> Buffer {
        let address = segments.get(self.segment).map_or(0, |segment| segment.address);
        Buffer::new(address.wrapping_add(self.within).wrapping_add(from), length)
    }

    /// What of the stretch it is.
    pub(super) const fn run(&self) -> RemoteStretch {
        let address = self.stretch.address.wrapping_add(self.offset);
        RemoteStretch { key: self.stretch.key, address, length: self.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(segments: &[u64], stretches: &[u64], limit: u64) -> Vec<Piece> {
        let segment =
            |(at, length): (usize, &u64)| Segment { address: at as u64 * 1000, length: *length, key: 0 };
        let stretch = |(at, length): (usize, &u64)| RemoteStretch {
            key: at as u64,
            address: at as u64 * 5000,
            length: *length,
        };
        let segments: Vec<Segment> = segments.iter().enumerate().map(segment).collect();
        let stretches: Vec<RemoteStretch> = stretches.iter().enumerate().map(stretch).collect();
        let mut pieces = Vec::new();
        let mut cursor = Cursor::default();
        while let Some((piece, next)) = cursor.next(&segments, &stretches, limit) {
            pieces.push(piece);
            cursor = next;
        }
        pieces
    }

    #[test]
    fn pieces_cover_every_byte_once_and_cross_no_border() {
        let splits: [&[u64]; 6] = [&[30], &[10, 20], &[1, 0, 28, 1], &[0, 30], &[30, 0], &[7, 7, 7, 7, 2]];
        for segments in splits {
            for stretches in splits {
                for limit in [1, 4, 10, 1000, u64::MAX] {
                    let pieces = cut(segments, stretches, limit);
                    let mut place = 0;
                    let mut per_stretch = vec![0; stretches.len()];
                    for piece in &pieces {
                        assert!(piece.length <= limit && (piece.length > 0 || piece.stretch.length == 0));
                        assert_eq!(piece.place, place);
                        place += piece.length;
                        let of = &mut per_stretch[usize::try_from(piece.stretch.key).unwrap()];
                        assert_eq!(piece.offset, *of);
                        *of += piece.length;
                        assert_eq!(piece.ends_stretch, *of == piece.stretch.length);
                        let segment = segments.get(piece.segment).copied().unwrap_or(0);
                        assert!(piece.within + piece.length <= segment.max(piece.within));
                    }
                    assert_eq!((place, &per_stretch[..]), (30, stretches));
                    let ends = pieces.iter().filter(|piece| piece.ends_stretch).count();
                    assert_eq!(ends, stretches.len());
                    let last: Vec<bool> = pieces.iter().map(|piece| piece.is_last).collect();
                    assert_eq!(last.iter().position(|last| *last), Some(pieces.len() - 1));
                }
            }
        }
    }

    #[test]
    fn an_access_of_no_bytes_is_one_piece() {
        for segments in [&[][..], &[0], &[0, 0]] {
            let pieces = cut(segments, &[0], 100);
            assert_eq!(pieces.len(), 1);
            assert!(pieces[0].is_last && pieces[0].length == 0);
        }
    }

    #[test]
    fn a_piece_knows_its_memory_and_its_run() {
        let pieces = cut(&[10, 20], &[15, 15], 100);
        let segments = [0, 1].map(|at| Segment { address: at * 1000, length: 10, key: 0 });
        assert_eq!(pieces[1].buffer(&segments, 2, 3), Buffer::new(1002, 3));
        assert_eq!(pieces[1].run(), RemoteStretch { key: 0, address: 10, length: 5 });
        assert_eq!(pieces[2].run(), RemoteStretch { key: 1, address: 5000, length: 15 });
    }
}
