//! An array that grows by chunks: nothing ever moves, so that no growth stalls an operation.
//!
//! Not here: which of its items are in use.

/// A growing array of `T`, `N` items (a power of two) at a time, each chunk on a cache line of its own.
#[derive(Clone)]
pub(super) struct Chunks<T, const N: usize> {
    chunks: Vec<Box<Chunk<T, N>>>,
}

impl<T: Copy, const N: usize> Chunks<T, N> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// How many items there are.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.chunks.len() * N
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
        Some(&self.chunks.get(index / N)?.0[index % N])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        Some(&mut self.chunks.get_mut(index / N)?.0[index % N])
    }

    /// An item that is known to be there.
    #[inline]
    pub(super) fn at(&self, index: usize) -> &T {
        &self.chunks[index / N].0[index % N]
    }

    /// An item that is known to be there.
    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / N].0[index % N]
    }

    /// The chunk that holds that item.
    #[inline]
    pub(super) fn chunk_mut(&mut self, number: usize) -> &mut [T; N] {
        &mut self.chunks[number].0
    }

    pub(super) const fn bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk<T, N>>() + self.chunks.capacity() * size_of::<usize>()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, fill: T) {
        self.chunks.push(Box::new(Chunk([fill; N])));
    }
}

#[derive(Clone)]
#[repr(align(64))]
struct Chunk<T, const N: usize>([T; N]);
