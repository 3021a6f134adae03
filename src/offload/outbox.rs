//! A queue that is mostly empty: a vector with a head, which starts over when the last is read. Fewer instructions
//! than a ring, which never does.
//!
//! The whole vector is initialised, so that an item is written where it is to stay, and whoever has asked for room
//! needs no call to write it: a short path without calls saves no registers.
//!
//! Not here: bounds. Whoever fills it knows how much may be in it.

/// First in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Outbox<T> {
    /// Those from `read` to `end` are in the queue; the others are old.
    items: Vec<T>,
    read: usize,
    end: usize,
}

impl<T: Copy> Outbox<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new(), read: 0, end: 0 }
    }

    /// Whether [`Self::put`] may be called.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.end < self.items.len()
    }

    /// Whether nothing is in the queue. What is empty starts over.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        debug_assert!(self.end > 0 || self.read == 0);
        self.end == 0
    }

    /// How often [`Self::put`] may be called.
    pub(crate) fn room(&self) -> usize {
        self.items.len() - self.end
    }

    /// Append to a queue that has room.
    #[inline(always)]
    pub(crate) fn put(&mut self, item: T) {
        debug_assert!(self.has_room());
        if let Some(place) = self.items.get_mut(self.end) {
            *place = item;
            self.end += 1;
        }
    }

    /// Append.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.reserve(item);
        self.put(item);
    }

    /// Make room for one more. `filler` is any item.
    #[inline]
    pub(crate) fn reserve(&mut self, filler: T) {
        if !self.has_room() {
            self.make_room(filler);
        }
    }

    /// Somebody reads in pieces and never all: use the room of what was read before growing.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, filler: T) {
        if self.read > 0 && self.read * 2 >= self.end {
            self.items.copy_within(self.read..self.end, 0);
            (self.read, self.end) = (0, self.end - self.read);
        } else {
            self.items.resize((self.items.len() * 2).max(ROOM_MIN), filler);
        }
    }

    /// The oldest.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&T> {
        if self.read < self.end { self.items.get(self.read) } else { None }
    }

    /// Forget so many of the oldest, or all if there are fewer.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: usize) {
        if count < self.len() {
            self.read += count;
        } else {
            self.clear();
        }
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        (self.read, self.end) = (0, 0);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.end - self.read
    }

    /// All of them, oldest first.
    #[inline]
    pub(crate) fn items(&self) -> &[T] {
        self.items.get(self.read..self.end).unwrap_or_default()
    }

    /// The same, to be changed.
    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        self.items.get_mut(self.read..self.end).unwrap_or_default()
    }

    /// Take one out of the middle.
    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let item = *self.items().get(place)?;
        self.items.copy_within(self.read + place + 1..self.end, self.read + place);
        self.end -= 1;
        self.skip(0);
        Some(item)
    }
}

/// Room of a queue in use.
const ROOM_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_first_comes_out_first_in_pieces_of_any_size() {
        let mut outbox = Outbox::new();
        let (mut next_in, mut next_out) = (0_u32, 0_u32);
        for round in 0..20_000_u32 {
            for _ in 0..if outbox.len() < 100 { round % 5 } else { 1 } {
                outbox.push(next_in);
                next_in += 1;
            }
            let count = outbox.len().min(if round % 7 == 0 { 1 } else { 3 });
            for item in &outbox.items()[..count] {
                assert_eq!(*item, next_out);
                next_out += 1;
            }
            outbox.skip(count);
        }
        assert_eq!(outbox.len(), (next_in - next_out) as usize);
        assert!(outbox.items.len() <= 512, "what was read is given up: {}", outbox.items.len());
    }

    #[test]
    fn one_is_taken_out_of_the_middle_and_the_rest_stays_in_order() {
        let mut outbox = Outbox::new();
        (0..5).for_each(|item| outbox.push(item));
        assert_eq!(outbox.first(), Some(&0));
        outbox.skip(1);
        assert_eq!(outbox.remove(1), Some(2));
        assert_eq!(outbox.remove(9), None);
        assert_eq!(outbox.items(), [1, 3, 4]);
        outbox.skip(2);
        assert_eq!(outbox.remove(0), Some(4));
        assert_eq!((outbox.len(), outbox.first()), (0, None));
    }
}
