//! An address vector: numbers for names. Both kinds deal the same numbers, which are places in a table.

use crate::provider::abi;
use crate::provider::address::Name;
use crate::provider::error::{Outcome, fail};

/// See the file.
#[derive(Debug, Default)]
pub(in crate::provider) struct Vector {
    names: Vec<Option<Name>>,
    /// Places whose name was removed; the last one is dealt next. A receive that named such a place is for who had it.
    free: Vec<usize>,
    /// Endpoints that must know the names.
    pub(in crate::provider) endpoints: Vec<usize>,
}

impl Vector {
    pub(in crate::provider) fn insert(&mut self, name: Name) -> u64 {
        let place = self.free.pop().unwrap_or(self.names.len());
        match self.names.get_mut(place) {
            Some(entry) => *entry = Some(name),
            None => self.names.push(Some(name)),
        }
        place as u64
    }

    /// # Errors
    /// `FI_EINVAL`: the number stands for nobody.
    pub(in crate::provider) fn remove(&mut self, number: u64) -> Outcome<()> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        match self.names.get_mut(place) {
            Some(entry @ Some(_)) => {
                *entry = None;
                self.free.push(place);
                Ok(())
            }
            Some(None) | None => fail(abi::FI_EINVAL),
        }
    }

    /// # Errors
    /// `FI_EINVAL`: the number stands for nobody.
    pub(in crate::provider) fn lookup(&self, number: u64) -> Outcome<Name> {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        match self.names.get(place) {
            Some(Some(name)) => Ok(*name),
            Some(None) | None => fail(abi::FI_EINVAL),
        }
    }

    /// Every number with its name.
    pub(in crate::provider) fn iter(&self) -> impl Iterator<Item = (u64, Name)> {
        self.names.iter().enumerate().filter_map(|(place, name)| Some((place as u64, (*name)?)))
    }
}
