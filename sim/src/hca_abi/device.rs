//! A simulated device with what the kernel keeps around one: its contexts by descriptor, the descriptors of events,
//! and the lock that its commands and its drive share.
//!
//! Not here: what the commands do ([`super::commands`]), the model itself ([`crate::hca`]).

use super::events::{Charge, EventKind, EventQueue};
use super::fabric::Fabric;
use super::memory::ProcessMemory;
use super::uverbs::{AsyncEvent, CompletionEvent};
use super::{commands, drive, hooks, registry};
use crate::hca::{ChannelId, ContextId, Element, Hca, HcaConfig};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zerocopy::IntoBytes;

/// See the module.
#[derive(Debug)]
pub(crate) struct Device {
    index: u32,
    state: Mutex<State>,
    /// How many calls wait for the lock: the device's thread stands back for them.
    waiting: AtomicU32,
    drive: drive::Thread,
}

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct State {
    /// The model.
    pub(crate) hca: Hca<ProcessMemory>,
    /// By the device's descriptor.
    pub(crate) contexts: HashMap<c_int, Context>,
    channels: HashMap<ChannelId, Channel>,
    asyncs: HashMap<ContextId, EventQueue<ASYNC>>,
    /// The way to other processes.
    pub(crate) fabric: Option<Fabric>,
    channels_made: u32,
}

/// One `open` of the device.
#[derive(Debug)]
pub(crate) struct Context {
    /// Once GET_CONTEXT has made one.
    pub(crate) id: Option<ContextId>,
    /// Address handles, which exist in the driver alone.
    pub(crate) address_handles: u32,
}

#[derive(Debug)]
struct Channel {
    context: ContextId,
    queue: EventQueue<COMPLETION>,
}

impl Device {
    /// A device that nobody has opened.
    pub(crate) fn new(index: u32, config: HcaConfig, drive: Drive, fabric: Option<Fabric>) -> Arc<Self> {
        let (contexts, channels, asyncs) = Default::default();
        let hca = Hca::new(config, ProcessMemory);
        let state = Mutex::new(State { hca, contexts, channels, asyncs, fabric, channels_made: 0 });
        Arc::new(Self { index, state, waiting: AtomicU32::new(0), drive: drive::Thread::new(drive) })
    }

    /// Its number: `uverbs<index>`.
    pub(crate) const fn index(&self) -> u32 {
        self.index
    }

    /// The lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        guard
    }

    /// The lock for the device's thread, unless someone waits for it.
    pub(crate) fn lock_if_free(&self) -> Option<MutexGuard<'_, State>> {
        if self.waiting.load(Ordering::Acquire) > 0 {
            return None;
        }
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How the device is driven.
    pub(crate) const fn drive(&self) -> &drive::Thread {
        &self.drive
    }

    /// Opened as this descriptor.
    ///
    /// # Errors
    /// EAGAIN: there can be no thread.
    pub(crate) fn open(self: &Arc<Self>, fd: c_int) -> Result<(), c_int> {
        self.lock().contexts.insert(fd, Context { id: None, address_handles: 0 });
        self.drive.start(self)
    }

    /// The descriptor was closed: all objects of the context are destroyed.
    pub(crate) fn close(&self, fd: c_int) {
        let mut state = self.lock();
        let context = state.contexts.remove(&fd).and_then(|context| context.id);
        if let Some(context) = context {
            state.hca.close_context(context);
            state.pump();
        }
        drop(state);
        self.drive.stop_unless(|| !self.lock().contexts.is_empty());
    }

    /// An event queue's descriptor was closed.
    pub(crate) fn close_events(&self, fd: c_int) {
        let mut state = self.lock();
        state.channels.retain(|_, channel| channel.queue.descriptor() != fd);
        state.asyncs.retain(|_, queue| queue.descriptor() != fd);
    }

    /// A command was written.
    ///
    /// # Errors
    /// What the command's are.
    pub(crate) fn command(self: &Arc<Self>, fd: c_int, address: u64, count: usize) -> Result<(), c_int> {
        let mut state = self.lock();
        let done = commands::execute(self, &mut state, fd, address, count);
        state.pump();
        done
    }
}

impl State {
    /// A queue of asynchronous events for a new context.
    ///
    /// # Errors
    /// The errno of making it.
    pub(crate) fn make_async(&mut self, device: &Arc<Device>, context: ContextId) -> Result<c_int, c_int> {
        let queue = EventQueue::new()?;
        let fd = queue.descriptor();
        publish(device, fd)?;
        self.asyncs.insert(context, queue);
        Ok(fd)
    }

    /// A completion channel.
    ///
    /// # Errors
    /// The errno of making it.
    pub(crate) fn make_channel(&mut self, device: &Arc<Device>, context: ContextId) -> Result<c_int, c_int> {
        let queue = EventQueue::new()?;
        let fd = queue.descriptor();
        publish(device, fd)?;
        self.channels_made = self.channels_made.wrapping_add(1);
        self.channels.insert(ChannelId(self.channels_made), Channel { context, queue });
        Ok(fd)
    }

    /// The channel of this context that has this descriptor.
    ///
    /// # Errors
    /// EBADF: none.
    pub(crate) fn channel(&self, context: ContextId, fd: c_int) -> Result<ChannelId, c_int> {
        let mut found = self.channels.iter();
        found
            .find(|(_, channel)| channel.context == context && channel.queue.descriptor() == fd)
            .map(|(id, _)| *id)
            .ok_or(libc::EBADF)
    }

    /// Take back a CQ's unread completion events: how many were read.
    pub(crate) fn forget_completions(&mut self, cq: u32) -> u32 {
        let queues = self.channels.values_mut();
        queues.map(|channel| channel.queue.forget((EventKind::Completion, cq))).sum()
    }

    /// Take back an object's unread asynchronous events: how many were read.
    pub(crate) fn forget_asyncs(&mut self, context: ContextId, charge: Charge) -> u32 {
        self.asyncs.get_mut(&context).map_or(0, |queue| queue.forget(charge))
    }

    /// Carry what the model has brought forth to the descriptors that wait for it.
    pub(crate) fn pump(&mut self) {
        while let Some(event) = self.hca.poll_completion_event() {
            if let Some(channel) = self.channels.get_mut(&event.channel) {
                let bytes = CompletionEvent { cq_handle: event.user_handle };
                push(&mut channel.queue, (EventKind::Completion, event.cq.0), bytes.as_bytes());
            }
        }
        while let Some(event) = self.hca.poll_async_event() {
            if let Some(queue) = self.asyncs.get_mut(&event.context) {
                let (element, event_type) = (event.user_handle, event.event_type);
                let bytes = AsyncEvent { element, event_type, reserved: 0 };
                push(queue, charge(event.element), bytes.as_bytes());
            }
        }
        for channel in self.channels.values_mut() {
            channel.queue.flush();
        }
        for queue in self.asyncs.values_mut() {
            queue.flush();
        }
        if let Some(fabric) = &mut self.fabric {
            fabric.send(&mut self.hca);
        }
    }

    /// What other processes have sent. Says whether there was anything.
    pub(crate) fn receive(&mut self) -> bool {
        let Some(fabric) = &mut self.fabric else {
            return false;
        };
        fabric.receive(&mut self.hca)
    }
}

/// Make a new queue's descriptor known to `close`.
fn publish(device: &Arc<Device>, fd: c_int) -> Result<(), c_int> {
    if !hooks::mark(fd, hooks::EVENTS) {
        super::raw::close(fd);
        return Err(libc::EMFILE);
    }
    registry::own(fd, Arc::clone(device));
    Ok(())
}

fn push<const SIZE: usize>(queue: &mut EventQueue<SIZE>, charge: Charge, bytes: &[u8]) {
    if let Ok(bytes) = bytes.try_into() {
        queue.push(charge, bytes);
    }
}

const fn charge(element: Element) -> Charge {
    match element {
        Element::Cq(handle) => (EventKind::Cq, handle.0),
        Element::Qp(handle) => (EventKind::Qp, handle.0),
        Element::Srq(handle) => (EventKind::Srq, handle.0),
        Element::Device => (EventKind::Device, 0),
    }
}

/// Who moves a device on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Drive {
    /// The test, step by step.
    #[default]
    Steps,
    /// A thread, as long as the device is open.
    Thread,
}

/// Bytes of `ib_uverbs_comp_event_desc`.
const COMPLETION: usize = size_of::<CompletionEvent>();
/// Bytes of `ib_uverbs_async_event_desc`.
const ASYNC: usize = size_of::<AsyncEvent>();
