//! The links of all transports, and what has been said on each before it was a connection.

use std::time::Duration;

use crate::ids::{LinkId, PeerId};

use super::peers::Path;

/// All links, by transport and place.
#[derive(Default)]
pub(super) struct Links {
    devices: Vec<Vec<Option<Link>>>,
}

/// A link, from its making until its end was told.
pub(super) struct Link {
    generation: u32,
    pub(super) phase: Phase,
    /// Whose it is, as far as is known: whom it was made for, or who said a hello.
    pub(super) peer: Option<PeerId>,
    /// When patience ends. [`Duration::MAX`]: never.
    pub(super) deadline: Duration,
    /// Of one that closes: bytes that the other side had still to take when that was looked at last.
    pub(super) untaken: u64,
    pub(super) greeting: Option<Box<Greeting>>,
}

/// How far a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Ours; the transport has not told that it is there.
    Opening,
    /// Ours; a hello went out, and an answer is to come.
    Asked,
    /// Ours; the answer is here, its proof is to come.
    Answered,
    /// Theirs; a hello is to come.
    Silent,
    /// Theirs; the hello is here, its proof is to come.
    Challenged,
    /// Theirs; it waits for the end of the connection before it, or, of a connected endpoint, to be accepted.
    Waiting,
    /// It is a connection.
    Up,
    /// It was closed here.
    Closing,
}

/// What was said, for the proofs and for later.
#[derive(Default)]
pub(super) struct Greeting {
    /// The hello that came.
    pub(super) theirs: Vec<u8>,
    /// The hello that went.
    pub(super) ours: Vec<u8>,
    /// The number of the side that was called.
    pub(super) challenge: Option<[u8; 32]>,
    /// The number of the side that called.
    pub(super) counter: Option<[u8; 32]>,
}

impl Link {
    pub(super) fn greeting(&mut self) -> &mut Greeting {
        self.greeting.get_or_insert_default()
    }
}

impl Links {
    pub(super) fn insert(
        &mut self,
        (device, id): Path,
        phase: Phase,
        peer: Option<PeerId>,
        deadline: Duration,
    ) {
        let device = usize::from(device.0);
        if self.devices.len() <= device {
            self.devices.resize_with(device + 1, Vec::new);
        }
        let links = &mut self.devices[device];
        let index = id.index as usize;
        if links.len() <= index {
            links.resize_with(index + 1, || None);
        }
        let link =
            Link { generation: id.generation, phase, peer, deadline, untaken: u64::MAX, greeting: None };
        links[index] = Some(link);
    }

    #[inline]
    pub(super) fn find(&self, (device, id): Path) -> Option<&Link> {
        let link = self.devices.get(usize::from(device.0))?.get(id.index as usize)?.as_ref();
        link.filter(|link| link.generation == id.generation)
    }

    #[inline]
    pub(super) fn find_mut(&mut self, (device, id): Path) -> Option<&mut Link> {
        let link = self.devices.get_mut(usize::from(device.0))?.get_mut(id.index as usize)?.as_mut();
        link.filter(|link| link.generation == id.generation)
    }

    pub(super) fn remove(&mut self, path: Path) -> Option<Link> {
        self.find(path)?;
        let (device, LinkId { index, .. }) = path;
        self.devices.get_mut(usize::from(device.0))?.get_mut(index as usize)?.take()
    }

    /// All of them. Not for the hot path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Path, &Link)> + '_ {
        self.devices.iter().enumerate().flat_map(|(device, links)| {
            let device = crate::ids::DeviceId(u8::try_from(device).unwrap_or(u8::MAX));
            links.iter().enumerate().filter_map(move |(index, link)| {
                let link = link.as_ref()?;
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                Some(((device, LinkId { index, generation: link.generation }), link))
            })
        })
    }
}
