//! The key of a job: how each side of a new connection shows that it holds it, without showing it.
//!
//! HMAC-SHA256 (RFC 2104) over who speaks, both sides' numbers, and the hellos that were said. docs/wire.md has the
//! order of messages. Not here: privacy and integrity of what follows.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::interface::EndpointError;
use crate::wire::{HelloRole, InstanceId};

/// Numbers that nobody else draws, and the key.
pub(super) struct Secrets {
    key: Option<Vec<u8>>,
    seed: [u8; 32],
    drawn: u64,
}

/// Whether a key keeps anybody out.
pub(super) fn check_key(key: Option<&Vec<u8>>) -> Result<(), EndpointError> {
    match key.map(Vec::len) {
        Some(length) if length < JOB_KEY_LEAST => Err(EndpointError::JobKey { length, least: JOB_KEY_LEAST }),
        Some(_) | None => Ok(()),
    }
}

impl Secrets {
    pub(super) fn new(key: Option<Vec<u8>>, seed: Option<[u8; 32]>) -> Self {
        Self { key, seed: seed.unwrap_or_else(from_the_system), drawn: 0 }
    }

    pub(super) const fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// A number that has not been drawn before.
    pub(super) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.drawn.to_be_bytes());
        hash.finalize().into()
    }

    pub(super) fn instance(&mut self) -> InstanceId {
        loop {
            let drawn = self.draw();
            let mut id = [0; 16];
            id.copy_from_slice(&drawn[..16]);
            if let Some(instance) = InstanceId::new(u128::from_be_bytes(id)) {
                return instance;
            }
        }
    }

    /// What one side says. The one that called has not heard the answer yet: its proof is over an empty one.
    pub(super) fn prove(&self, said: &Said<'_>) -> [u8; 32] {
        self.mac(said).map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }

    /// Whether the other side holds the key. Takes as long whatever is wrong.
    pub(super) fn is_proven(&self, said: &Said<'_>, proof: &[u8; 32]) -> bool {
        self.mac(said).is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }

    fn mac(&self, said: &Said<'_>) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_deref()?).ok()?;
        mac.update(LABEL);
        mac.update(&[said.role as u8]);
        mac.update(&said.challenge);
        mac.update(&said.counter);
        for hello in [said.request, said.answer] {
            mac.update(&(hello.len() as u64).to_be_bytes());
            mac.update(hello);
        }
        Some(mac)
    }
}

/// What a proof is over.
pub(super) struct Said<'a> {
    /// Who proves.
    pub(super) role: HelloRole,
    /// The number of the side that was called.
    pub(super) challenge: [u8; 32],
    /// The number of the side that called.
    pub(super) counter: [u8; 32],
    /// The hello of the side that called.
    pub(super) request: &'a [u8],
    /// The hello of the side that was called; of the other's proof: nothing.
    pub(super) answer: &'a [u8],
}

/// The standard library draws the keys of its hash maps from the operating system.
fn from_the_system() -> [u8; 32] {
    use std::hash::{BuildHasher, RandomState};
    let mut hash = Sha256::new();
    let state = RandomState::new();
    for part in 0..8_u64 {
        hash.update(state.hash_one(part).to_be_bytes());
        hash.update(RandomState::new().hash_one(part).to_be_bytes());
    }
    hash.update(std::process::id().to_be_bytes());
    hash.finalize().into()
}

/// Bytes of a key at least.
const JOB_KEY_LEAST: usize = 16;
const LABEL: &[u8] = b"tagmatch job key, version 1";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: HelloRole, answer: &'static [u8]) -> Said<'static> {
        Said { role, challenge: [1; 32], counter: [2; 32], request: b"request", answer }
    }

    #[test]
    fn only_the_key_and_all_that_was_said_make_the_proof() {
        let ours = Secrets::new(Some(vec![7; 16]), Some([0; 32]));
        let other = Secrets::new(Some(vec![8; 16]), Some([0; 32]));
        let proof = ours.prove(&said(HelloRole::Request, b""));
        assert!(ours.is_proven(&said(HelloRole::Request, b""), &proof));
        assert!(!other.is_proven(&said(HelloRole::Request, b""), &proof));
        assert!(!ours.is_proven(&said(HelloRole::Answer, b""), &proof));
        assert!(!ours.is_proven(&said(HelloRole::Request, b"x"), &proof));
        let replayed = Said { challenge: [3; 32], ..said(HelloRole::Request, b"") };
        assert!(!ours.is_proven(&replayed, &proof));
        assert!(!Secrets::new(None, None).is_proven(&said(HelloRole::Request, b""), &proof));
    }

    #[test]
    fn numbers_are_not_drawn_twice_and_lives_differ() {
        let mut secrets = Secrets::new(None, Some([5; 32]));
        assert_ne!(secrets.draw(), secrets.draw());
        assert_ne!(Secrets::new(None, None).instance(), Secrets::new(None, None).instance());
    }
}
