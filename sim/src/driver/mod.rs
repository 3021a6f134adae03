//! Worlds with the real driver: the production engine over verbs devices, these over the unmodified libibverbs and
//! libmlx5, and below them simulated HCAs that a schedule moves on step by step.
//!
//! ```text
//!   World ──► engine ⇄ Card ── VerbsDevice ── libibverbs, libmlx5 ──► simulated HCA
//!                        └──── the senders' VerbsDevice ── the same ──────┘  steps, acceptances
//! ```
//!
//! A [`Bench`] holds what outlives a world: the HCAs, one for each path, and the memory of receives. Everything else,
//! contexts and queues, is made anew for each world and must be gone after it. Needs
//! [`hca_hooks!`](crate::hca_hooks) in the binary, and one bench at a time.
//!
//! A program of [`crate::schedules`] counts bytes in small numbers that stand for packets; [`in_bytes`] makes lengths
//! of them that come in so many packets on a wire.

mod card;
mod memory;
pub mod programs;
mod settings;

use std::sync::Arc;

use crate::hca::{Counts, HcaConfig, Limits, LinkLayer};
use crate::hca_abi::{Drive, HcaControl};
use crate::schedules::{self, Failed, Ran, Random, Weights};
use crate::world::scope::{self, Path, Scope};
use crate::world::{Watch, World, Wrong};

pub use card::Card;
pub use memory::UserMemory;
pub use settings::{Setting, settings};

/// See the module.
#[derive(Debug)]
pub struct Bench {
    hcas: Vec<Arc<HcaControl>>,
    link: LinkLayer,
    memory: Arc<UserMemory>,
}

impl Bench {
    /// With HCAs for so many paths, and memory for so many receives.
    ///
    /// # Errors
    /// The devices cannot be made.
    pub fn new(paths: usize, receives: u32) -> std::io::Result<Self> {
        Self::on(LinkLayer::InfiniBand, paths, receives)
    }

    /// The same on another network. On Ethernet a TM-SRQ can be had where A15 is read so.
    ///
    /// # Errors
    /// The devices cannot be made.
    pub fn on(link: LinkLayer, paths: usize, receives: u32) -> std::io::Result<Self> {
        let config = HcaConfig { link_layer: link, ..HcaConfig::default() };
        let hca = |_| HcaControl::new(config, Drive::Steps).map(Arc::new);
        let hcas = (0..paths).map(hca).collect::<Result<_, _>>()?;
        Ok(Self { hcas, link, memory: Arc::new(UserMemory::new(receives)) })
    }

    /// A world at its beginning. The scope counts bytes ([`in_bytes`]).
    ///
    /// # Errors
    /// It cannot be made.
    pub fn world(&self, scope: &Arc<Scope>, watch: Watch) -> Result<World<Card>, Wrong> {
        World::over(scope, self.cards(scope)?, self.memory.places(), watch)
    }

    /// A card for each path of a scope that counts bytes.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn cards(&self, scope: &Scope) -> Result<Vec<Card>, Wrong> {
        let mut cards = Vec::new();
        self.memory.clear(scope);
        for (at, path) in scope.paths.iter().enumerate() {
            let hca = self.hcas.get(at).ok_or_else(|| Wrong::Refused("more paths than HCAs".to_owned()))?;
            let config = HcaConfig { link_layer: self.link, ..config(scope, path) };
            if !hca.with(|hca| hca.renew(config)) {
                return Err(Wrong::Refused(format!(
                    "the last world left {:?} behind",
                    hca.with(|hca| hca.counts())
                )));
            }
            let card = Card::new(scope, at, self.link, Arc::clone(hca), Arc::clone(&self.memory));
            cards.push(card.map_err(Wrong::Refused)?);
        }
        Ok(cards)
    }

    /// Run a program by the schedule of this seed, and see that nothing is left of it.
    ///
    /// # Errors
    /// What went wrong; told in words if `log` says so.
    pub fn run(&self, scope: &Arc<Scope>, seed: u64, log: bool) -> Result<Ran, Failed> {
        self.run_turned(scope, seed, log, Turned::default())
    }

    /// As [`Self::run`], with the driver's counters turned so far before.
    ///
    /// # Errors
    /// What went wrong; told in words if `log` says so.
    pub fn run_turned(
        &self,
        scope: &Arc<Scope>,
        seed: u64,
        log: bool,
        turned: Turned,
    ) -> Result<Ran, Failed> {
        let watch = Watch { history: true, log, ..Watch::default() };
        let failed = |wrong| Failed { wrong, story: Vec::new() };
        let mut cards = self.cards(scope).map_err(failed)?;
        for card in &mut cards {
            card.turned = turned;
        }
        let world = World::over(scope, cards, self.memory.places(), watch);
        let mut world = world.map_err(failed)?;
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5eed);
        let weights =
            if seed.is_multiple_of(2) { Weights::new(&mut random) } else { Weights::posting(&mut random) };
        let ran = match schedules::go_by(weights, &mut world, &mut random) {
            Ok(actions) => Ran { actions, statistics: *world.engine().statistics() },
            Err(wrong) => return Err(Failed { wrong, story: world.log().to_vec() }),
        };
        drop(world);
        let left = self.objects();
        if left.iter().any(|left| *left != Counts::default()) {
            let wrong = Wrong::Stuck(format!("of the devices is left: {left:?}"));
            return Err(Failed { wrong, story: Vec::new() });
        }
        Ok(ran)
    }

    /// The memory of receives.
    #[must_use]
    pub fn memory(&self) -> &UserMemory {
        &self.memory
    }

    /// What there is on each HCA.
    #[must_use]
    pub fn objects(&self) -> Vec<Counts> {
        self.hcas.iter().map(|hca| hca.with(|hca| hca.counts())).collect()
    }

    /// The HCA of this path.
    #[must_use]
    pub fn hca(&self, path: usize) -> Option<&HcaControl> {
        self.hcas.get(path).map(Arc::as_ref)
    }
}

/// How far the driver's counters are at the beginning of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turned {
    /// List operations posted: the command queue's counter.
    pub operations: u32,
    /// Messages without a tag received: the counter of the receive queue.
    pub messages: u32,
}

/// What stands behind a path.
fn config(scope: &Scope, path: &Path) -> HcaConfig {
    // The driver rounds up to what the device must have.
    let tag_operations = path.operations.next_power_of_two();
    HcaConfig {
        // 256 bytes.
        mtu: 1,
        log_tag_list: if path.tags == 0 { 0 } else { 7 },
        rendezvous: path.rendezvous,
        switches: path.switches,
        initial_phase: scope.counters_start,
        limits: Limits { tag_operations, ..Limits::default() },
        ..HcaConfig::default()
    }
}

/// The program with lengths in bytes: eager messages come in as many packets of 256 bytes as it says, what is as long
/// as a receive or longer stays so.
#[must_use]
pub fn in_bytes(mut scope: Scope) -> Scope {
    for message in &mut scope.messages {
        message.length = match (message.rendezvous, message.length) {
            (true, length) if length > scope::EAGER_LIMIT => RENDEZVOUS_LONG,
            (true, length) => length * SCALE,
            // Behind a TMH of 16 bytes.
            (false, length) => u64::from(message.packets - 1) * PACKET + length * 3,
        };
    }
    for receive in &mut scope.receives {
        receive.length *= SCALE;
    }
    scope
}

/// The longest eager payload, in bytes, and the length of receives.
pub const EAGER_LIMIT: u64 = scope::EAGER_LIMIT * SCALE;
/// A byte of a program is so many.
const SCALE: u64 = 12;
/// Bytes of a packet.
const PACKET: u64 = 256;
/// Longer than any receive.
const RENDEZVOUS_LONG: u64 = EAGER_LIMIT + 200;
