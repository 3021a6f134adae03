//! What the rings see above them, as far as they do.

mod shm;

pub(crate) mod host_memory {
    /// A stretch of the host's memory. No model has one: what is copied there is copied as bytes are.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Stretch(());

    impl Stretch {
        pub(crate) fn length(self) -> usize {
            unreachable!("{self:?}: no model has one")
        }
    }
}

pub(crate) mod sockets {
    pub(crate) mod sys {
        use crate::device::host_memory::Stretch;

        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Part<'a> {
            Bytes(&'a [u8]),
            #[expect(dead_code, reason = "no model has one")]
            Memory(Stretch),
        }
    }
}
