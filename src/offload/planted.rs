//! Bugs on purpose, of five kinds, to see that the simulations find such: each can be switched on in a build with feature
//! `ablation`, for the thread that asks. In every build that users get the question is answered no when it is compiled, and
//! costs nothing.
//!
//! Here, since this is the lowest module that takes part; the endpoint above asks as well.

/// A bug of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bug {
    /// What is to be told a second peer while a first is on the list is put down, and nobody comes for it.
    LostWakeUp,
    /// A name of a receive is believed though its place is another's by now.
    StaleHandle,
    /// A counter that has 16 bits turns one too early.
    WrapOffByOne,
    /// A message passes an earlier one of its sender that waits for what another path has.
    OrderAcrossPaths,
    /// A cancel is answered when it is asked, and again when the device answers.
    DoubleCompletion,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::LostWakeUp,
        Self::StaleHandle,
        Self::WrapOffByOne,
        Self::OrderAcrossPaths,
        Self::DoubleCompletion,
    ];
}

#[cfg(feature = "ablation")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Everything that this thread runs from now on has this bug; `None`: none.
#[cfg(feature = "ablation")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether it is there.
#[inline(always)]
pub(crate) fn is_planted(bug: Bug) -> bool {
    #[cfg(feature = "ablation")]
    {
        PLANTED.get() == Some(bug)
    }
    #[cfg(not(feature = "ablation"))]
    {
        let _ = bug;
        false
    }
}
