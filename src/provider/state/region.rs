//! Memory regions: their keys, and what they are bound to. Nobody reaches memory by them.

use std::collections::HashSet;

use slab::Slab;

use crate::provider::abi;
use crate::provider::error::{Outcome, code, fail};

/// The regions of a domain.
#[derive(Debug, Default)]
pub(in crate::provider) struct Regions {
    all: Slab<Region>,
    keys: HashSet<u64>,
    /// Keys that were dealt.
    dealt: u64,
}

#[derive(Debug)]
struct Region {
    key: u64,
    bound: Vec<Bound>,
}

/// What a region is bound to, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider) enum Bound {
    Counter(usize),
    Endpoint(usize),
}

impl Regions {
    /// A region with the key that was asked for, or one that is dealt: its place and its key.
    ///
    /// # Errors
    /// `FI_ENOKEY`: another has that key (`fi_mr(3)`).
    pub(in crate::provider) fn insert(&mut self, wanted: Option<u64>) -> Outcome<(usize, u64)> {
        let key = wanted.unwrap_or_else(|| {
            self.dealt += 1;
            self.dealt
        });
        if !self.keys.insert(key) {
            return fail(abi::FI_ENOKEY);
        }
        Ok((self.all.insert(Region { key, bound: Vec::new() }), key))
    }

    /// It holds this from now on, once however often it is bound.
    ///
    /// # Errors
    /// The region was closed.
    pub(in crate::provider) fn bind(&mut self, index: usize, to: Bound) -> Outcome<()> {
        let region = self.all.get_mut(index).ok_or(code(abi::FI_EINVAL))?;
        if !region.bound.contains(&to) {
            region.bound.push(to);
        }
        Ok(())
    }

    pub(in crate::provider) fn remove(&mut self, index: usize) {
        if let Some(region) = self.all.try_remove(index) {
            self.keys.remove(&region.key);
        }
    }

    /// Whether a region is bound to it.
    pub(in crate::provider) fn hold(&self, what: Bound) -> bool {
        self.all.iter().any(|(_, region)| region.bound.contains(&what))
    }
}
