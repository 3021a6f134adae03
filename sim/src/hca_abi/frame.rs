//! The framing of written commands: what ib_uverbs checks before it looks at a command
//! (drivers/infiniband/core/uverbs_main.c, `verify_hdr`), and the way of the answer.
//!
//! Every length and address comes from the program and may be anything.

use super::raw;
use super::uverbs::{ExtendedHeader, Header};
use core::ffi::c_int;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A command with its parts taken apart.
#[derive(Debug)]
pub(crate) struct Request {
    /// Which.
    pub(crate) command: Command,
    /// The kernel's part, without the response's address.
    core: Vec<u8>,
    /// The driver's part.
    driver: Vec<u8>,
    response: u64,
    core_room: usize,
    driver_room: usize,
}

/// Number of a command: `ib_uverbs_write_cmds`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// Of the first kind.
    Plain(u32),
    /// With the extended header.
    Extended(u32),
}

/// What a command must bring and have room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Bytes of the kernel's part, without the response's address.
    pub(crate) request: usize,
    /// Bytes of the kernel's part of the answer, for commands that have one.
    pub(crate) response: Option<usize>,
}

impl Request {
    /// Take apart what was written.
    ///
    /// # Errors
    /// The errno that the kernel answers.
    pub(crate) fn read(
        address: u64,
        count: usize,
        shape: impl Fn(Command) -> Option<Shape>,
    ) -> Result<Self, c_int> {
        if !(HEADER..=COUNT_MAX).contains(&count) {
            return Err(libc::EINVAL);
        }
        let mut bytes = vec![0; count];
        raw::copy_from_program(address, &mut bytes)?;
        let (header, rest) = Header::read_from_prefix(&bytes).map_err(|_| libc::EINVAL)?;
        if header.command & !(COMMAND_MASK | COMMAND_EXTENDED) != 0 {
            return Err(libc::EINVAL);
        }
        let number = header.command & COMMAND_MASK;
        if header.command & COMMAND_EXTENDED == 0 {
            let command = Command::Plain(number);
            let shape = shape(command).ok_or(libc::EOPNOTSUPP)?;
            Self::plain(command, shape, &header, rest, count)
        } else {
            let command = Command::Extended(number);
            let shape = shape(command).ok_or(libc::EOPNOTSUPP)?;
            Self::extended(command, shape, &header, rest)
        }
    }

    /// The first kind: lengths in words of four bytes; the response's address is the first field.
    fn plain(
        command: Command,
        shape: Shape,
        header: &Header,
        rest: &[u8],
        count: usize,
    ) -> Result<Self, c_int> {
        if usize::from(header.in_words) * 4 != count {
            return Err(libc::EINVAL);
        }
        let room = usize::from(header.out_words) * 4;
        let address = if shape.response.is_some() { ADDRESS } else { 0 };
        let core_room = shape.response.unwrap_or(0);
        if rest.len() < address + shape.request || room < core_room {
            return Err(libc::ENOSPC);
        }
        let (response, rest) = rest.split_at(address);
        let response = <[u8; 8]>::try_from(response).map_or(0, u64::from_ne_bytes);
        let (core, driver) = rest.split_at(shape.request);
        let (core, driver) = (core.to_vec(), driver.to_vec());
        let driver_room = if shape.response.is_some() { room - core_room } else { 0 };
        Self { command, core, driver, response, core_room, driver_room }.probed()
    }

    /// The second kind: lengths in words of eight bytes, the driver's apart.
    fn extended(command: Command, shape: Shape, header: &Header, rest: &[u8]) -> Result<Self, c_int> {
        let (extended, rest) = ExtendedHeader::read_from_prefix(rest).map_err(|_| libc::EINVAL)?;
        let core_length = usize::from(header.in_words) * 8;
        let driver_length = usize::from(extended.provider_in_words) * 8;
        if core_length + driver_length != rest.len() || extended.reserved != 0 {
            return Err(libc::EINVAL);
        }
        let core_room = usize::from(header.out_words) * 8;
        let driver_room = usize::from(extended.provider_out_words) * 8;
        if (extended.response == 0) != (core_room + driver_room == 0) {
            return Err(libc::EINVAL);
        }
        let needed = shape.response.unwrap_or(0);
        if core_length < shape.request || (extended.response != 0 && core_room < needed) {
            return Err(libc::ENOSPC);
        }
        let (core, driver) = rest.split_at(core_length);
        let (core, driver) = (core.to_vec(), driver.to_vec());
        Self { command, core, driver, response: extended.response, core_room, driver_room }.probed()
    }

    /// Whether the answer can be written is found out before anything is done: reading and writing back what is there.
    fn probed(self) -> Result<Self, c_int> {
        let mut there = vec![0; self.core_room + self.driver_room];
        raw::copy_from_program(self.response, &mut there)?;
        raw::copy_to_program(self.response, &there)?;
        Ok(self)
    }

    /// The kernel's part as a structure, or its beginning.
    ///
    /// # Errors
    /// EINVAL: it is shorter.
    pub(crate) fn core<T: FromBytes + KnownLayout + Immutable>(&self) -> Result<T, c_int> {
        T::read_from_prefix(&self.core).map(|(core, _)| core).map_err(|_| libc::EINVAL)
    }

    /// The kernel's part as two structures. What an extended command brings beyond them must be zero.
    ///
    /// # Errors
    /// EINVAL: it is shorter. EOPNOTSUPP: it is longer, and not zero there.
    pub(crate) fn core_and_tail<T, U>(&self) -> Result<(T, U), c_int>
    where
        T: FromBytes + KnownLayout + Immutable,
        U: FromBytes + KnownLayout + Immutable,
    {
        let (core, rest) = T::read_from_prefix(&self.core).map_err(|_| libc::EINVAL)?;
        let (tail, rest) = U::read_from_prefix(rest).map_err(|_| libc::EINVAL)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(libc::EOPNOTSUPP);
        }
        Ok((core, tail))
    }

    /// The driver's part, filled up with zeros. It must have `at_least` bytes; what it has too much must be zero.
    ///
    /// # Errors
    /// EINVAL: too short. EOPNOTSUPP: too long.
    pub(crate) fn driver<T: FromBytes>(&self, at_least: usize) -> Result<T, c_int> {
        if self.driver.len() < at_least {
            return Err(libc::EINVAL);
        }
        let mut bytes = self.driver.clone();
        bytes.resize(self.driver.len().max(size_of::<T>()), 0);
        let (known, beyond) = bytes.split_at(size_of::<T>());
        if beyond.iter().any(|byte| *byte != 0) {
            return Err(libc::EOPNOTSUPP);
        }
        T::read_from_bytes(known).map_err(|_| libc::EINVAL)
    }

    /// Bytes of room for the driver's part of the answer.
    pub(crate) const fn driver_room(&self) -> usize {
        self.driver_room
    }

    /// Bytes of room for the kernel's part of the answer.
    pub(crate) const fn core_room(&self) -> usize {
        self.core_room
    }

    /// Answer without a driver's part.
    ///
    /// # Errors
    /// EFAULT
    pub(crate) fn answer(&self, core: &(impl IntoBytes + Immutable)) -> Result<(), c_int> {
        self.write(core.as_bytes(), &[])
    }

    /// Answer with a driver's part.
    ///
    /// # Errors
    /// EFAULT
    pub(crate) fn answer_both(
        &self,
        core: &(impl IntoBytes + Immutable + ?Sized),
        driver: &(impl IntoBytes + Immutable),
    ) -> Result<(), c_int> {
        self.write(core.as_bytes(), driver.as_bytes())
    }

    fn write(&self, core: &[u8], driver: &[u8]) -> Result<(), c_int> {
        let core = &core[..core.len().min(self.core_room)];
        raw::copy_to_program(self.response, core)?;
        let place = self.response.checked_add(self.core_room as u64).ok_or(libc::EFAULT)?;
        let driver = &driver[..driver.len().min(self.driver_room)];
        raw::copy_to_program(place, driver)
    }
}

const HEADER: usize = size_of::<Header>();
/// The response's address.
const ADDRESS: usize = 8;
/// The longest extended command: three headers and two times 65,535 words of eight bytes.
const COUNT_MAX: usize = 8 + 16 + 2 * 65_535 * 8;
const COMMAND_MASK: u32 = 0xff;
const COMMAND_EXTENDED: u32 = 0x8000_0000;
