//! Memory regions: their keys, what peers may do with their memory, and what they are bound to.

use std::collections::HashMap;

use slab::Slab;

use super::State;
use crate::endpoint::{Access, Region, Withdrawn};
use crate::provider::abi;
use crate::provider::error::{Outcome, code, fail};
use crate::seam::Buffer;

/// The regions of a domain.
#[derive(Debug, Default)]
pub(in crate::provider) struct Regions {
    all: Slab<Row>,
    by_key: HashMap<u64, usize>,
    /// Keys that were dealt.
    dealt: u64,
}

#[derive(Debug)]
struct Row {
    region: Region,
    bound: Vec<Bound>,
}

/// What a region is bound to, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider) enum Bound {
    /// With what it counts: `FI_REMOTE_READ`, `FI_REMOTE_WRITE`.
    Counter(usize, u64),
    Endpoint(usize),
}

impl Regions {
    /// A region with the key that was asked for, or one that is dealt: its place and its key.
    ///
    /// # Errors
    /// `FI_ENOKEY`: another has that key (`fi_mr(3)`).
    fn insert(
        &mut self,
        wanted: Option<u64>,
        address: u64,
        buffer: Buffer,
        access: Access,
    ) -> Outcome<(usize, Region)> {
        let key = wanted.unwrap_or_else(|| {
            self.dealt += 1;
            self.dealt
        });
        if self.by_key.contains_key(&key) {
            return fail(abi::FI_ENOKEY);
        }
        let region = Region { key, address, buffer, access };
        let index = self.all.insert(Row { region, bound: Vec::new() });
        self.by_key.insert(key, index);
        Ok((index, region))
    }

    /// It holds this from now on, once however often it is bound.
    ///
    /// # Errors
    /// The region was closed.
    fn bind(&mut self, index: usize, to: Bound) -> Outcome<()> {
        let region = self.all.get_mut(index).ok_or(code(abi::FI_EINVAL))?;
        if !region.bound.contains(&to) {
            region.bound.push(to);
        }
        Ok(())
    }

    fn remove(&mut self, index: usize) -> Option<u64> {
        let key = self.all.try_remove(index)?.region.key;
        self.by_key.remove(&key);
        Some(key)
    }

    /// Whether a region is bound to it.
    pub(in crate::provider) fn hold(&self, is_it: impl Fn(&Bound) -> bool) -> bool {
        self.all.iter().any(|(_, region)| region.bound.iter().any(&is_it))
    }

    /// Every counter that a region is bound to.
    fn all_counters(&self) -> Vec<usize> {
        let bound = self.all.iter().flat_map(|(_, row)| &row.bound);
        bound
            .filter_map(|bound| match bound {
                Bound::Counter(index, _) => Some(*index),
                Bound::Endpoint(_) => None,
            })
            .collect()
    }

    /// The counters of the region with this key that count such accesses.
    pub(in crate::provider) fn counters(&self, key: u64, flag: u64) -> impl Iterator<Item = usize> {
        let row = self.by_key.get(&key).and_then(|index| self.all.get(*index));
        row.into_iter().flat_map(|row| &row.bound).filter_map(move |bound| match bound {
            Bound::Counter(index, flags) if flags & flag != 0 => Some(*index),
            Bound::Counter(..) | Bound::Endpoint(_) => None,
        })
    }

    /// All of them, for an endpoint that is new.
    pub(in crate::provider) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.all.iter().map(|(_, row)| &row.region)
    }
}

impl State {
    /// Let peers of all endpoints access memory: the place of the region and its key.
    ///
    /// # Errors
    /// As [`Regions::insert`].
    pub(in crate::provider) fn register(
        &mut self,
        wanted: Option<u64>,
        address: u64,
        buffer: Buffer,
        access: Access,
    ) -> Outcome<(usize, u64)> {
        let (index, region) = self.regions.insert(wanted, address, buffer, access)?;
        for endpoint in self.endpoints.iter_mut().filter_map(|(_, state)| state.endpoint.as_mut()) {
            // The keys of a domain are those of its endpoints.
            let _ = endpoint.register(&region);
        }
        Ok((index, region.key))
    }

    /// A region is bound to a counter, which all endpoints count at from now on, or to an endpoint.
    ///
    /// # Errors
    /// The region or the counter was closed, or there is no room to wait for an endpoint.
    pub(in crate::provider) fn bind_region(&mut self, index: usize, to: Bound) -> Outcome<()> {
        self.regions.bind(index, to)?;
        if let Bound::Counter(counter, _) = to {
            let endpoints: Vec<usize> = self.endpoints.iter().map(|(at, _)| at).collect();
            for endpoint in endpoints {
                self.attach(counter, endpoint)?;
            }
        }
        Ok(())
    }

    /// An endpoint that is new counts at the counters of all regions.
    ///
    /// # Errors
    /// As [`Self::bind_region`].
    pub(in crate::provider) fn attach_regions(&mut self, endpoint: usize) -> Outcome<()> {
        self.regions.all_counters().into_iter().try_for_each(|counter| self.attach(counter, endpoint))
    }

    /// Whoever looks at the counter, or waits for it, moves the endpoint on.
    fn attach(&mut self, counter: usize, endpoint: usize) -> Outcome<()> {
        let state = self.endpoints.get(endpoint).and_then(|state| state.endpoint.as_ref());
        let counter = self.counters.get_mut(counter).ok_or(code(abi::FI_EINVAL))?;
        let Some(state) = state.filter(|_| !counter.endpoints.contains(&endpoint)) else { return Ok(()) };
        if let Some(set) = &counter.waiting.set {
            for descriptor in state.wait_descriptors() {
                set.add(descriptor).map_err(|_| code(abi::FI_ENOMEM))?;
            }
        }
        counter.endpoints.push(endpoint);
        Ok(())
    }

    /// Nobody may access it any more: at which endpoints transports still are at it.
    pub(in crate::provider) fn withdraw(&mut self, index: usize) -> Vec<(usize, Withdrawn)> {
        let Some(key) = self.regions.remove(index) else { return Vec::new() };
        let endpoints = self.endpoints.iter_mut();
        endpoints
            .filter_map(|(at, state)| Some((at, state.endpoint.as_mut()?.withdraw_region(key)?)))
            .collect()
    }

    /// Move on endpoints that are still at such a region, and say whether one is. Without patience the connections that
    /// are at it end.
    pub(in crate::provider) fn is_in_use(
        &mut self,
        withdrawn: &[(usize, Withdrawn)],
        is_patient: bool,
    ) -> bool {
        let now = crate::provider::clock::now();
        for (index, _) in withdrawn {
            self.progress(*index, now);
            self.tell_waiting(*index);
        }
        let mut is_in_use = false;
        for &(index, region) in withdrawn {
            // An endpoint that is closed is at nothing.
            let Some(endpoint) = self.endpoints.get_mut(index).and_then(|state| state.endpoint.as_mut())
            else {
                continue;
            };
            if endpoint.is_in_use(region) {
                is_in_use = true;
                if !is_patient {
                    endpoint.break_off_users(region);
                }
            }
        }
        is_in_use
    }
}
