//! A queue that is mostly empty: a vector with a head, emptied when the last is read. Fewer instructions than a ring,
//! which never starts over.
//!
//! Not here: bounds. Whoever fills it knows how much may be in it.

/// First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Outbox<T> {
    items: Vec<T>,
    read: usize,
}

impl<T: Copy> Outbox<T> {
    pub(super) const fn new() -> Self {
        Self { items: Vec::new(), read: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        if self.items.len() == self.items.capacity() {
            self.make_room();
        }
        self.items.push(item);
    }

    /// Somebody reads in pieces and never all: use the room of what was read before growing.
    #[cold]
    fn make_room(&mut self) {
        if self.read * 2 >= self.items.len() {
            self.items.drain(..self.read);
            self.read = 0;
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = *self.items.get(self.read)?;
        self.read += 1;
        if self.read == self.items.len() {
            self.items.clear();
            self.read = 0;
        }
        Some(item)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len() - self.read
    }

    /// Fill a slice, and say how much of it.
    pub(super) fn pop_into(&mut self, into: &mut [T]) -> usize {
        let count = into.len().min(self.len());
        into[..count].copy_from_slice(&self.items[self.read..self.read + count]);
        self.read += count;
        if self.read == self.items.len() {
            self.items.clear();
            self.read = 0;
        }
        count
    }
}

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
            let mut piece = [0; 3];
            let count = if round % 7 == 0 {
                usize::from(outbox.pop().inspect(|&item| piece[0] = item).is_some())
            } else {
                outbox.pop_into(&mut piece)
            };
            for item in &piece[..count] {
                assert_eq!(*item, next_out);
                next_out += 1;
            }
        }
        assert_eq!(outbox.len(), (next_in - next_out) as usize);
        assert!(outbox.items.capacity() <= 512, "what was read is given up: {}", outbox.items.capacity());
    }
}
