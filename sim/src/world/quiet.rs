//! What must hold when nothing can happen by itself any more: nothing lost, nothing kept, everything matched that
//! can be.

use tagmatch::ids::TagHandle;

use super::book::Decision;
use super::{Machine, World, Wrong, device_id};

impl<D: Machine> World<D> {
    /// To be asked when [`World::is_quiet`]; the user may still have something to do.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_quiet(&self) -> Result<(), Wrong> {
        self.check_nothing_under_way()?;
        for at in 0..self.devices.len() {
            if !self.book.is_failed(at) {
                self.check_device(at)?;
            }
        }
        self.check_matched()?;
        for monitor in [&self.points, &self.intervals].into_iter().flatten() {
            monitor.finish()?;
        }
        Ok(())
    }

    fn check_nothing_under_way(&self) -> Result<(), Wrong> {
        let waiting: Vec<u32> = self.engine.undecided().collect();
        if !waiting.is_empty() {
            return stuck(format!("messages {waiting:?} wait to be decided"));
        }
        if self.engine.transfers() > 0 {
            return stuck(format!("{} transfers are under way", self.engine.transfers()));
        }
        if self.engine.is_busy() {
            return stuck("the engine has commands or completions left".to_owned());
        }
        if let Some(receive) = self.book.progress.iter().position(|progress| progress.cancelling) {
            return stuck(format!("the cancel of r{receive} was never answered"));
        }
        if let Some(receive) = self.book.progress.iter().position(|progress| progress.full && !progress.ended)
        {
            return stuck(format!("r{receive} is full and was never released"));
        }
        if let Some(peer) = self.peer_that_waits_for_a_path() {
            return stuck(format!("peer {} may not come back", peer.0));
        }
        for (number, decision) in (0_u32..).zip(&self.book.decisions) {
            let is_stuck = match *decision {
                Decision::Open => !self.is_lost(number) && !self.is_unsent(number),
                Decision::Receive(receive) => {
                    let is_there = self.book.delivered[number as usize];
                    !is_there && !self.book.progress[receive as usize].ended && !self.is_lost(number)
                }
                Decision::Unexpected | Decision::Claimed | Decision::Vanished => false,
            };
            if is_stuck {
                return stuck(format!("m{number} is {decision:?}"));
            }
        }
        Ok(())
    }

    fn check_device(&self, at: usize) -> Result<(), Wrong> {
        let device = &self.devices[at];
        device.check_quiet().map_err(|what| Wrong::Stuck(format!("device {at}: {what}")))?;
        let Some(listed) = device.listed() else { return Ok(()) };
        let named = |handle: &TagHandle| self.book.receive_of(at, *handle);
        let mut mirror: Vec<_> = self.engine.listed(device_id(at)).iter().map(named).collect();
        let mut listed: Vec<_> =
            listed.into_iter().map(|handle| handle.and_then(|handle| named(&handle))).collect();
        listed.sort_unstable();
        mirror.sort_unstable();
        if mirror != listed {
            return stuck(format!("device {at} lists {listed:?} and the mirror {mirror:?}"));
        }
        let (used, counted) = (device.slots_used(), self.engine.command_slots_used(device_id(at)));
        if used.is_some_and(|used| used != counted) {
            return stuck(format!("{used:?} command slots of device {at} are in use, and {counted} counted"));
        }
        let (entries, _) = self.engine.entries(device_id(at));
        if entries as usize != listed.len() {
            return stuck(format!(
                "{entries} entries of device {at} are in use, and {} listed",
                listed.len()
            ));
        }
        Ok(())
    }

    /// A receive that is posted, and a message that is unexpected and fits: somebody missed it.
    fn check_matched(&self) -> Result<(), Wrong> {
        let posted = |number: usize| {
            let progress = self.book.progress[number];
            progress.id.is_some() && !progress.ended && !progress.full
        };
        let unexpected: Vec<u32> = self.engine.unexpected().collect();
        for receive in (0..self.book.progress.len()).filter(|&receive| posted(receive)) {
            let pattern = self.scope.receives[receive].pattern;
            let missed = unexpected
                .iter()
                .find(|&&message| pattern.fits(&self.scope.messages[message as usize].envelope(), None));
            if let Some(message) = missed {
                return stuck(format!("r{receive} is posted, and m{message} unexpected"));
            }
        }
        let held = self.book.decisions.iter().filter(|it| **it == Decision::Unexpected).count();
        if held != unexpected.len() && !self.book.is_anything_lost() {
            return stuck(format!("{held} messages were unexpected, and {} are held", unexpected.len()));
        }
        Ok(())
    }
}

fn stuck<T>(what: String) -> Result<T, Wrong> {
    Err(Wrong::Stuck(what))
}
