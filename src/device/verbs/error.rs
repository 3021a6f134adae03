//! What goes wrong around verbs: which call, on which device, with which errno, and what to do about it.
//!
//! Not here: failures of a device in use; those are [`crate::seam::DeviceError`].

use std::fmt;

use super::sys::LoadError;
use crate::seam::DeviceError;

/// Why something with verbs could not be done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerbsError {
    /// The machine has no libibverbs.
    #[error("no verbs device: {0}")]
    NoLibrary(&'static LoadError),
    /// The library sees no device.
    #[error(
        "no verbs device: libibverbs sees none (it takes an RDMA card, its kernel modules, ib_uverbs among them, and its provider: package ibverbs-providers or libmlx5)"
    )]
    NoDevice,
    /// There is no device of that name.
    #[error("there is no verbs device {wanted:?}; there are: {there}")]
    UnknownDevice {
        /// What was asked for.
        wanted: String,
        /// Names of what there is.
        there: String,
    },
    /// There is no such port.
    #[error("{device} has no port {port}; it has ports 1 to {ports}")]
    NoPort {
        /// The device.
        device: String,
        /// What was asked for.
        port: u8,
        /// How many it has.
        ports: u8,
    },
    /// The port carries nothing.
    #[error(
        "port {port} of {device} is not active (state {state}): check the cable, and on InfiniBand the subnet manager"
    )]
    PortDown {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// `enum ibv_port_state`
        state: u32,
    },
    /// The port's addresses are of no use.
    #[error(
        "no usable GID: port {port} of {device} has none that is an address of an interface of this machine"
    )]
    NoGid {
        /// The device.
        device: String,
        /// The port.
        port: u8,
    },
    /// There is no address at the index that was asked for.
    #[error(
        "port {port} of {device} has no GID at index {index}, of a table of {gids}: leave the index out, and one that can be used is taken"
    )]
    NoGidAt {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// What was asked for.
        index: u8,
        /// Entries of the table.
        gids: u32,
    },
    /// A call of the library failed.
    #[error("{call} on {device} failed: {cause}")]
    Call {
        /// The function.
        call: &'static str,
        /// The device.
        device: String,
        /// Its errno.
        cause: Errno,
    },
    /// The device has less than is needed.
    #[error("{device}: {what} is {offered} and must be at least {needed}")]
    TooSmall {
        /// The device.
        device: String,
        /// Which limit.
        what: &'static str,
        /// What it has.
        offered: u64,
        /// What is needed.
        needed: u64,
    },
    /// Tag matching was required, and is not there.
    #[error("{device} has no tag matching that could be used: {reason}")]
    NoTagMatching {
        /// The device.
        device: String,
        /// Why.
        reason: Box<TagMatchingRefusal>,
    },
    /// The caller's fault.
    #[error("{0}")]
    Caller(String),
}

/// Why a device is used without tag matching.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TagMatchingRefusal {
    /// It was not asked for.
    #[error("tag matching was switched off by the configuration")]
    NotWanted,
    /// `max_num_tags` is 0.
    #[error(
        "the device reports max_num_tags = 0 (not a ConnectX-5 or later, tag matching off in its firmware, or a kernel that does not report it)"
    )]
    NotReported,
    /// The port is of Ethernet, where no list can be made.
    #[error("tag matching through libmlx5 needs InfiniBand, and the port is of Ethernet")]
    OnEthernet,
    /// The device has tag matching, and could not be set up for it.
    #[error("{0}")]
    Refused(VerbsError),
    /// The same, on a port where that is known.
    #[error(
        "libmlx5 connects the list's own QP without a GRH, which RoCE ports refuse: tag matching through it needs InfiniBand ({0})"
    )]
    RoCe(VerbsError),
}

/// An errno, shown with its name's words.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// What the last call of this thread left.
    #[must_use]
    pub fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }

    /// Calls return it positive; some negative.
    #[must_use]
    pub const fn returned(value: i32) -> Self {
        Self(value.saturating_abs())
    }

    const fn advice(self) -> &'static str {
        match self.0 {
            libc::ENOMEM => {
                "; a limit is reached: raise the locked-memory limit (ulimit -l), or ask for fewer peers, tags or buffers"
            }
            libc::EPERM | libc::EACCES => "; may this user open the files in /dev/infiniband?",
            libc::EOPNOTSUPP | libc::ENOSYS => "; the device, its provider or the kernel cannot do this",
            libc::EINVAL => "; a value is beyond what the device or the kernel takes",
            libc::ENODEV | libc::EIO => "; the device is gone or failed",
            _ => "",
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", std::io::Error::from_raw_os_error(self.0), self.advice())
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({})", self.0)
    }
}

impl VerbsError {
    pub(super) fn call(call: &'static str, device: &str, cause: Errno) -> Self {
        Self::Call { call, device: device.to_owned(), cause }
    }

    /// As a failure of a device in use.
    #[must_use]
    pub fn into_device_error(self) -> DeviceError {
        if let Self::Call { call, cause, .. } = self {
            DeviceError::System { call, errno: cause.0 }
        } else {
            DeviceError::Contract(self.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_call_names_call_device_errno_and_what_to_do() {
        let error = VerbsError::call("ibv_reg_mr", "mlx5_0", Errno(libc::ENOMEM));
        let text = error.to_string();
        for part in ["ibv_reg_mr", "mlx5_0", "os error 12", "ulimit -l"] {
            assert!(text.contains(part), "{text}");
        }
        let expected = DeviceError::System { call: "ibv_reg_mr", errno: 12 };
        assert_eq!(error.into_device_error(), expected);
    }

    #[test]
    fn a_refusal_of_tag_matching_on_roce_says_that_it_needs_infiniband() {
        let cause = VerbsError::call("ibv_create_srq_ex", "mlx5_0", Errno(libc::EINVAL));
        let text = TagMatchingRefusal::RoCe(cause).to_string();
        assert!(text.starts_with("libmlx5 connects the list's own QP without a GRH"), "{text}");
        assert!(text.contains("needs InfiniBand (ibv_create_srq_ex on mlx5_0 failed"), "{text}");
    }
}
