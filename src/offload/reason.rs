//! Why a receive is not in a NIC, and how often each reason occurred.

/// Why a posted receive is matched in software. Every one that is not in a NIC has exactly one (rule 10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Reason {
    /// It waits its turn: every entry that the device has is in use.
    DeviceFull,
    /// It waits its turn: no command slot for its ADD and the DEL that may follow.
    NoCommandSlot,
    /// It waits its turn: it is shorter than the device's eager limit and every bounce buffer is in use.
    NoBounceBuffer,
    /// An older receive that some message fits as well is not in this device's list.
    OlderOverlap,
    /// It names a source that cannot be read from the tag.
    Directed,
    /// Its buffer has several segments.
    SeveralSegments,
    /// Its buffer is longer than the device takes.
    OverDeviceLength,
    /// Its buffer overlaps one that is in a NIC.
    BufferOverlap,
    /// Its buffer is not registered with the device.
    NotRegistered,
    /// It is a multi-receive buffer.
    MultiReceive,
    /// Its messages come through another device.
    ServedByAnotherPath,
    /// There are more live classes (mask, kind of source) than the overlap index follows.
    TooManyClasses,
    /// Offload is switched off.
    Disabled,
    /// The device failed or broke its contract.
    DeviceFault,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::DeviceFull,
        Self::NoCommandSlot,
        Self::NoBounceBuffer,
        Self::OlderOverlap,
        Self::Directed,
        Self::SeveralSegments,
        Self::OverDeviceLength,
        Self::BufferOverlap,
        Self::NotRegistered,
        Self::MultiReceive,
        Self::ServedByAnotherPath,
        Self::TooManyClasses,
        Self::Disabled,
        Self::DeviceFault,
    ];

    /// Its name in reports and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeviceFull => "device_full",
            Self::NoCommandSlot => "no_command_slot",
            Self::NoBounceBuffer => "no_bounce_buffer",
            Self::OlderOverlap => "older_overlap",
            Self::Directed => "directed",
            Self::SeveralSegments => "several_segments",
            Self::OverDeviceLength => "over_device_length",
            Self::BufferOverlap => "buffer_overlap",
            Self::NotRegistered => "not_registered",
            Self::MultiReceive => "multi_receive",
            Self::ServedByAnotherPath => "served_by_another_path",
            Self::TooManyClasses => "too_many_classes",
            Self::Disabled => "disabled",
            Self::DeviceFault => "device_fault",
        }
    }
}

/// What offload has done since the engine was made. Counts, all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Receives that were queued while a device with tags was there.
    pub tracked: u64,
    /// Receives matched by a device.
    pub matched_by_device: u64,
    // Apart from the first, with which it is raised: as neighbours they would be raised as a vector, which is dearer.
    /// ADDs.
    pub adds: u64,
    /// DELs.
    pub dels: u64,
    /// SYNCs.
    pub syncs: u64,
    /// Receives in a NIC that a message the same NIC called unexpected took (TM-CONTRACT 11.4).
    pub used_by_own_device: u64,
    /// Receives in a NIC that a message of another path took.
    pub taken_back: u64,
    /// Receives that a device took and does without ([`Event::SetAside`](crate::seam::Event::SetAside)). They count as
    /// in software, and not as ADDs.
    pub set_aside: u64,
    /// DELs that came too late.
    pub dels_too_late: u64,
    /// Completions with the hint `IBV_WC_TM_SYNC_REQ`.
    pub sync_requests: u64,
    /// Receives that went through a bounce buffer.
    pub bounced: u64,
    /// Receives that left the posted list without a device's match, by their reason then, in the order of
    /// [`Reason::ALL`].
    pub in_software: [u64; Reason::ALL.len()],
    /// Of those, receives that a message took which came when they were posted: the messages that the host matched with
    /// receives that were there before them. A multi-receive buffer counts once for each message.
    pub first_in_software: [u64; Reason::ALL.len()],
}

impl Statistics {
    /// How many receives ended in software for this reason.
    #[must_use]
    pub const fn ended(&self, reason: Reason) -> u64 {
        self.in_software[reason as usize]
    }

    /// Receives that were posted before their message came, and were matched in software for this reason.
    #[must_use]
    pub const fn first_ended(&self, reason: Reason) -> u64 {
        self.first_in_software[reason as usize]
    }

    /// Receives that were posted before their message came, as far as the host can tell: it knew of the receive first.
    ///
    /// All of those are in it whose message's header came to the device later than they were posted. The others are of
    /// messages that a device had in its hands by then, and had not told: those are in [`Self::used_by_own_device`] if the
    /// receive was on its way into the list, else in [`Self::first_in_software`]. What a device matches was posted before,
    /// in any case. So [`Self::matched_by_device`] over this is the least that their share can be.
    #[must_use]
    pub fn posted_first(&self) -> u64 {
        let in_software: u64 = self.first_in_software.iter().sum();
        self.matched_by_device + self.used_by_own_device + self.taken_back + in_software
    }
}
