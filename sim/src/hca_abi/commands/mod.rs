//! The commands: each decoded, checked as the kernel's verbs layer and its mlx5 driver check it, given to the model,
//! and answered.
//!
//! Not here: what the model itself refuses.

mod objects;
mod queries;
mod queues;

use super::device::{Device, State};
use super::frame::{Command, Request, Shape};
use super::uverbs as abi;
use crate::hca::{ContextId, Errno, Handle};
use core::ffi::c_int;
use std::sync::Arc;

/// A command with what it works on.
struct Call<'a> {
    device: &'a Arc<Device>,
    state: &'a mut State,
    /// The device's descriptor that it was written to.
    fd: c_int,
    request: Request,
}

/// What was written to a device's descriptor.
///
/// # Errors
/// The errno that the kernel answers for the same.
pub(crate) fn execute(
    device: &Arc<Device>,
    state: &mut State,
    fd: c_int,
    address: u64,
    count: usize,
) -> Result<(), c_int> {
    let request = Request::read(address, count, shape)?;
    Call { device, state, fd, request }.execute()
}

impl Call<'_> {
    fn execute(&mut self) -> Result<(), c_int> {
        let command = self.request.command;
        if command == Command::Plain(number::GET_CONTEXT) {
            return self.get_context();
        }
        let context = self.context()?;
        match command {
            Command::Plain(command) => self.plain(command, context),
            Command::Extended(command) => self.extended(command, context),
        }
    }

    fn plain(&mut self, command: u32, context: ContextId) -> Result<(), c_int> {
        match command {
            number::QUERY_DEVICE => self.query_device(),
            number::QUERY_PORT => self.query_port(),
            number::ALLOC_PD => self.alloc_pd(context),
            number::DEALLOC_PD => self.dealloc_pd(context),
            number::CREATE_AH => self.create_ah(),
            number::DESTROY_AH => self.destroy_ah(),
            number::REG_MR => self.register_memory(context),
            number::DEREG_MR => self.deregister_memory(context),
            number::CREATE_COMP_CHANNEL => self.create_channel(context),
            number::CREATE_CQ => self.create_cq(context),
            number::RESIZE_CQ => self.resize_cq(context),
            number::DESTROY_CQ => self.destroy_cq(context),
            number::CREATE_QP => self.create_qp(context),
            number::QUERY_QP => self.query_qp(context),
            number::MODIFY_QP => self.modify_qp(context),
            number::DESTROY_QP => self.destroy_qp(context),
            number::ATTACH_MCAST | number::DETACH_MCAST => self.multicast(context),
            number::CREATE_SRQ => self.create_srq(context),
            number::CREATE_XSRQ => self.create_xsrq(context),
            number::MODIFY_SRQ => self.modify_srq(context),
            number::QUERY_SRQ => self.query_srq(context),
            number::DESTROY_SRQ => self.destroy_srq(context),
            _ => Err(libc::EOPNOTSUPP),
        }
    }

    fn extended(&mut self, command: u32, context: ContextId) -> Result<(), c_int> {
        match command {
            number::QUERY_DEVICE => self.query_device_ex(),
            number::CREATE_CQ => self.create_cq_ex(context),
            number::CREATE_QP => self.create_qp_ex(context),
            number::MODIFY_QP => self.modify_qp_ex(context),
            _ => Err(libc::EOPNOTSUPP),
        }
    }

    /// The context of the descriptor.
    ///
    /// # Errors
    /// EINVAL: GET_CONTEXT was not called.
    fn context(&self) -> Result<ContextId, c_int> {
        self.state.contexts.get(&self.fd).and_then(|context| context.id).ok_or(libc::EINVAL)
    }

    /// One handle.
    fn handle(&self) -> Result<Handle, c_int> {
        Ok(Handle(self.request.core::<abi::Handle>()?.handle))
    }
}

/// The model's refusal as an errno.
fn refused(errno: Errno) -> c_int {
    errno.0
}

/// What each command must bring and have room for. `None`: no such command here.
fn shape(command: Command) -> Option<Shape> {
    const fn plain<T>() -> Option<Shape> {
        Some(Shape { request: size_of::<T>(), response: None })
    }
    const fn answered<T, R>() -> Option<Shape> {
        Some(Shape { request: size_of::<T>(), response: Some(size_of::<R>()) })
    }
    match command {
        Command::Plain(command) => match command {
            number::GET_CONTEXT => answered::<(), abi::GetContextResp>(),
            number::QUERY_DEVICE => answered::<(), abi::QueryDeviceResp>(),
            number::QUERY_PORT => answered::<abi::QueryPort, abi::QueryPortResp>(),
            number::ALLOC_PD => answered::<(), abi::AllocPdResp>(),
            number::DEALLOC_PD | number::DESTROY_AH | number::DEREG_MR => plain::<abi::Handle>(),
            number::CREATE_AH => answered::<abi::CreateAh, abi::CreateAhResp>(),
            number::REG_MR => answered::<abi::RegMr, abi::RegMrResp>(),
            number::CREATE_COMP_CHANNEL => answered::<(), abi::CreateCompChannelResp>(),
            number::CREATE_CQ => answered::<abi::CreateCq, abi::CreateCqResp>(),
            number::RESIZE_CQ => answered::<abi::ResizeCq, u32>(),
            number::DESTROY_CQ => answered::<abi::Destroy, abi::DestroyCqResp>(),
            number::CREATE_QP => answered::<abi::CreateQp, abi::CreateQpResp>(),
            number::QUERY_QP => answered::<abi::QueryQp, abi::QueryQpResp>(),
            number::MODIFY_QP => plain::<abi::ModifyQp>(),
            number::DESTROY_QP | number::DESTROY_SRQ => answered::<abi::Destroy, abi::DestroyResp>(),
            number::ATTACH_MCAST | number::DETACH_MCAST => plain::<abi::Multicast>(),
            number::CREATE_SRQ => answered::<abi::CreateSrq, abi::CreateSrqResp>(),
            number::CREATE_XSRQ => answered::<abi::CreateXsrq, abi::CreateSrqResp>(),
            number::MODIFY_SRQ => plain::<abi::ModifySrq>(),
            number::QUERY_SRQ => answered::<abi::Destroy, abi::QuerySrqResp>(),
            _ => None,
        },
        Command::Extended(command) => match command {
            number::QUERY_DEVICE => answered::<abi::ExQueryDevice, abi::QueryDeviceResp>(),
            number::CREATE_CQ => answered::<abi::ExCreateCq, abi::ExCreateCqResp>(),
            // Room for the numbers in front is what the kernel insists on; the rest may be cut off.
            number::CREATE_QP => answered::<(abi::CreateQp, abi::ExCreateQpTail), abi::CreateQpResp>(),
            number::MODIFY_QP => plain::<abi::ModifyQp>(),
            _ => None,
        },
    }
}

/// `ib_uverbs_write_cmds`
mod number {
    pub(super) const GET_CONTEXT: u32 = 0;
    pub(super) const QUERY_DEVICE: u32 = 1;
    pub(super) const QUERY_PORT: u32 = 2;
    pub(super) const ALLOC_PD: u32 = 3;
    pub(super) const DEALLOC_PD: u32 = 4;
    pub(super) const CREATE_AH: u32 = 5;
    pub(super) const DESTROY_AH: u32 = 8;
    pub(super) const REG_MR: u32 = 9;
    pub(super) const DEREG_MR: u32 = 13;
    pub(super) const CREATE_COMP_CHANNEL: u32 = 17;
    pub(super) const CREATE_CQ: u32 = 18;
    pub(super) const RESIZE_CQ: u32 = 19;
    pub(super) const DESTROY_CQ: u32 = 20;
    pub(super) const CREATE_QP: u32 = 24;
    pub(super) const QUERY_QP: u32 = 25;
    pub(super) const MODIFY_QP: u32 = 26;
    pub(super) const DESTROY_QP: u32 = 27;
    pub(super) const ATTACH_MCAST: u32 = 30;
    pub(super) const DETACH_MCAST: u32 = 31;
    pub(super) const CREATE_SRQ: u32 = 32;
    pub(super) const MODIFY_SRQ: u32 = 33;
    pub(super) const QUERY_SRQ: u32 = 34;
    pub(super) const DESTROY_SRQ: u32 = 35;
    pub(super) const CREATE_XSRQ: u32 = 39;
}
