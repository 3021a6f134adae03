//! The entries of one key, in order: a ring of links with a mark at the first.
//!
//! `next` of the last is the first, `prev` of the first is the last with [`HEAD`] set; so an entry anywhere
//! leaves in constant time, and the table hears of it only if it was the first.
//!
//! Not here: where links are kept.

/// One entry's links within its key.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Link {
    prev: u32,
    next: u32,
}

impl Link {
    /// The neighbour towards newer entries, or the first after the last.
    #[inline]
    pub(super) const fn next(self) -> u32 {
        self.next
    }

    /// The neighbour towards older entries, or the last before the first.
    #[inline]
    pub(super) const fn prev(self) -> u32 {
        self.prev & !HEAD
    }

    /// Whether the entry is the first of its key.
    #[cfg(test)]
    pub(super) const fn is_head(self) -> bool {
        self.prev & HEAD != 0
    }

    /// A ring of one.
    #[inline]
    pub(super) const fn alone(slot: u32) -> Self {
        Self { prev: slot | HEAD, next: slot }
    }
}

/// Where the links of one class are kept.
pub(super) trait Links {
    fn link(&mut self, slot: u32) -> &mut Link;
}

/// What the table must hear of a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unlinked {
    /// The entry was its key's only one.
    Last,
    /// It was the first: this one is now.
    Head(u32),
    /// It was not the first.
    Inner,
}

/// Append an entry to the ring whose first entry is `head`.
#[inline(never)]
pub(super) fn append(links: &mut impl Links, head: u32, slot: u32) {
    let first = links.link(head);
    let tail = first.prev & !HEAD;
    first.prev = slot | HEAD;
    links.link(tail).next = slot;
    *links.link(slot) = Link { prev: tail, next: head };
}

/// Append the ring whose first entry is `other` to that whose first is `head`.
pub(super) fn join(links: &mut impl Links, head: u32, other: u32) {
    let (tail, other_tail) = (links.link(head).prev(), links.link(other).prev());
    links.link(tail).next = other;
    links.link(other).prev = tail;
    links.link(other_tail).next = head;
    links.link(head).prev = other_tail | HEAD;
}

/// Take an entry, whose link was `link`, out of its ring. Its own link is not looked at any more. Budget: 3
/// instructions for one that is alone.
#[inline(always)]
pub(super) fn unlink(links: &mut impl Links, slot: u32, link: Link) -> Unlinked {
    if link.next == slot { Unlinked::Last } else { unlink_from_others(links, link) }
}

#[inline(never)]
fn unlink_from_others(links: &mut impl Links, link: Link) -> Unlinked {
    let Link { prev, next } = link;
    links.link(prev & !HEAD).next = next;
    let after = links.link(next);
    after.prev = prev | (after.prev & HEAD);
    if prev & HEAD == 0 { Unlinked::Inner } else { Unlinked::Head(next) }
}

/// Marks `prev` of the first entry.
const HEAD: u32 = 1 << 31;
