//! An array that grows by chunks: nothing ever moves, so that no growth stalls an operation.
//!
//! Not here: which of its items are in use.

/// A growing array of `T`, `N` items (a power of two) at a time, each chunk on a cache line of its own.
#[derive(Clone)]
pub(super) struct Chunks<T, const N: usize> {
    /// The only chunk, so that its items are found without a look into a table.
    one: Option<Box<Chunk<T, N>>>,
    /// Or else all.
    many: Vec<Box<Chunk<T, N>>>,
}

impl<T: Copy, const N: usize> Chunks<T, N> {
    pub(super) const fn new() -> Self {
        Self { one: None, many: Vec::new() }
    }

    /// How many items there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        if self.one.is_some() { N } else { self.many.len() * N }
    }

    /// Make room for that item. New items are copies of `fill`.
    #[inline]
    pub(super) fn reach(&mut self, index: usize, fill: T) {
        while index >= self.len() {
            self.grow(fill);
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match &self.one {
            Some(chunk) => chunk.0.get(index),
            None => Some(&self.many.get(index / N)?.0[index % N]),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match &mut self.one {
            Some(chunk) => chunk.0.get_mut(index),
            None => Some(&mut self.many.get_mut(index / N)?.0[index % N]),
        }
    }

    /// An item that is known to be there.
    #[inline]
    pub(super) fn at(&self, index: usize) -> &T {
        self.get(index).unwrap_or_else(|| unreachable!("the item is there"))
    }

    /// An item that is known to be there.
    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).unwrap_or_else(|| unreachable!("the item is there"))
    }

    /// The first items, if there are any.
    pub(super) fn first_chunk_mut(&mut self) -> Option<&mut [T; N]> {
        self.one.as_mut().or(self.many.first_mut()).map(|chunk| &mut chunk.0)
    }

    pub(super) const fn bytes(&self) -> usize {
        let chunks = if self.one.is_some() { 1 } else { self.many.len() };
        chunks * size_of::<Chunk<T, N>>() + self.many.capacity() * size_of::<usize>()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, fill: T) {
        let fresh = Box::new(Chunk([fill; N]));
        if self.len() == 0 {
            self.one = Some(fresh);
        } else {
            self.many.extend(self.one.take());
            self.many.push(fresh);
        }
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Chunk<T, const N: usize>([T; N]);
