//! Devices, their ports and protection domains.

use std::ffi::CStr;
use std::rc::Rc;

use tagmatch::device::verbs::sys::types::{
    ibv_ah_attr, ibv_context, ibv_device, ibv_device_attr_ex, ibv_gid, ibv_pd, ibv_port_attr,
};
use tagmatch::device::verbs::sys::{
    self, IBV_LINK_LAYER_ETHERNET, IBV_PORT_ACTIVE, IBV_QPF_GRH_REQUIRED, Library,
};

/// Which device and port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// `None`: the first one.
    pub device: Option<String>,
    /// From 1.
    pub port: u8,
    /// `None`: on Ethernet the first that is not zero, elsewhere none is needed.
    pub gid_index: Option<u8>,
}

impl Default for Choice {
    fn default() -> Self {
        Self { device: None, port: 1, gid_index: None }
    }
}

/// An open device, and one port of it.
#[derive(Debug)]
pub struct Device {
    pub(super) library: &'static Library,
    pub(super) context: *mut ibv_context,
    name: String,
    attributes: ibv_device_attr_ex,
    port: u8,
    port_attributes: ibv_port_attr,
    gid_index: u8,
    gid: ibv_gid,
}

/// The names of all devices.
///
/// # Errors
/// Why there are none: a text.
pub fn device_names() -> Result<Vec<String>, String> {
    with_devices(|devices| devices.iter().map(|device| name_of(*device)).collect())
}

impl Device {
    /// Open the device.
    ///
    /// # Errors
    /// A text: what is missing, and what there is.
    pub fn open(choice: &Choice) -> Result<Rc<Self>, String> {
        let library = sys::library().map_err(ToString::to_string)?;
        let (name, context) = with_devices(|devices| open_one(library, devices, choice.device.as_deref()))??;
        // SAFETY: zero is a value of every field.
        let mut attributes: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open.
        if unsafe { sys::inline::query_device_ex(context, &mut attributes) } != 0 {
            // SAFETY: the context is open.
            let errno = unsafe { (library.ibv_query_device)(context, &raw mut attributes.orig_attr) };
            if errno != 0 {
                return Err(format!("ibv_query_device of {name} failed with errno {errno}"));
            }
        }
        let mut device = Self {
            library,
            context,
            name,
            attributes,
            port: choice.port,
            port_attributes: ibv_port_attr::default(),
            gid_index: choice.gid_index.unwrap_or_default(),
            gid: ibv_gid::default(),
        };
        device.look_at_port(choice.gid_index)?;
        Ok(Rc::new(device))
    }

    fn look_at_port(&mut self, gid_index: Option<u8>) -> Result<(), String> {
        let (name, port) = (&self.name, self.port);
        let ports = self.attributes.orig_attr.phys_port_cnt;
        if port == 0 || port > ports {
            return Err(format!("{name} has no port {port}, but 1 to {ports}"));
        }
        // SAFETY: the context is open.
        let errno =
            unsafe { sys::inline::query_port(self.library, self.context, port, &mut self.port_attributes) };
        if errno != 0 {
            return Err(format!("ibv_query_port of {name} port {port} failed with errno {errno}"));
        }
        if self.port_attributes.state != IBV_PORT_ACTIVE {
            return Err(format!("port {port} of {name} is not active: state {}", self.port_attributes.state));
        }
        if self.is_ethernet() || gid_index.is_some() {
            self.gid_index = self.find_gid(gid_index)?;
        }
        self.gid = self.read_gid(self.gid_index).unwrap_or_default();
        Ok(())
    }

    fn find_gid(&self, wanted: Option<u8>) -> Result<u8, String> {
        let length = u8::try_from(self.port_attributes.gid_tbl_len).unwrap_or(u8::MAX);
        if let Some(index) = wanted {
            let exists = self.read_gid(index).is_some_and(|gid| gid != ibv_gid::default());
            return if exists && index < length {
                Ok(index)
            } else {
                Err(format!("{} port {} has no GID {index}", self.name, self.port))
            };
        }
        (0..length)
            .find(|index| self.read_gid(*index).is_some_and(|gid| gid != ibv_gid::default()))
            .ok_or_else(|| format!("{} port {}: no usable GID", self.name, self.port))
    }

    fn read_gid(&self, index: u8) -> Option<ibv_gid> {
        let mut gid = ibv_gid::default();
        // SAFETY: the context is open, and there is room for a GID.
        let errno =
            unsafe { (self.library.ibv_query_gid)(self.context, self.port, index.into(), &raw mut gid) };
        (errno == 0).then_some(gid)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it can do.
    #[must_use]
    pub const fn attributes(&self) -> &ibv_device_attr_ex {
        &self.attributes
    }

    /// What its firmware calls itself.
    #[must_use]
    pub fn firmware(&self) -> String {
        let bytes = self.attributes.orig_attr.fw_ver.map(i8::cast_unsigned);
        bytes.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
    }

    /// The port in use, from 1.
    #[must_use]
    pub const fn port(&self) -> u8 {
        self.port
    }

    /// Whether the port is RoCE.
    #[must_use]
    pub const fn is_ethernet(&self) -> bool {
        self.port_attributes.link_layer as u32 == IBV_LINK_LAYER_ETHERNET
    }

    /// The GID in use; zero where none is needed.
    #[must_use]
    pub fn gid(&self) -> [u8; 16] {
        self.gid.raw
    }

    /// The way from this port to the one with this GID, or back to itself.
    pub(super) fn way(&self, gid: Option<[u8; 16]>) -> ibv_ah_attr {
        let mut way = ibv_ah_attr {
            dlid: self.port_attributes.lid,
            sl: 0,
            port_num: self.port,
            ..ibv_ah_attr::default()
        };
        if self.is_ethernet() || u32::from(self.port_attributes.flags) & IBV_QPF_GRH_REQUIRED != 0 {
            way.is_global = 1;
            way.grh.dgid = gid.map_or(self.gid, |raw| ibv_gid { raw });
            way.grh.sgid_index = self.gid_index;
            way.grh.hop_limit = 64;
        }
        way
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: opened here; every object of it holds the device.
        unsafe { (self.library.ibv_close_device)(self.context) };
    }
}

/// A protection domain.
#[derive(Debug)]
pub struct Pd {
    /// Its device.
    pub device: Rc<Device>,
    pub(super) raw: *mut ibv_pd,
}

impl Pd {
    /// `ibv_alloc_pd`
    ///
    /// # Errors
    /// errno
    pub fn new(device: &Rc<Device>) -> Result<Rc<Self>, i32> {
        // SAFETY: the context is open.
        let raw = unsafe { (device.library.ibv_alloc_pd)(device.context) };
        if raw.is_null() { Err(super::errno()) } else { Ok(Rc::new(Self { device: Rc::clone(device), raw })) }
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: allocated here; every object of it holds the domain.
        unsafe { (self.device.library.ibv_dealloc_pd)(self.raw) };
    }
}

fn with_devices<T>(look: impl FnOnce(&[*mut ibv_device]) -> T) -> Result<T, String> {
    let library = sys::library().map_err(ToString::to_string)?;
    let mut number = 0;
    // SAFETY: there is room for the number.
    let list = unsafe { (library.ibv_get_device_list)(&raw mut number) };
    if list.is_null() {
        let errno = super::errno();
        let advice =
            if errno == libc::ENOSYS { " (the kernel has no RDMA support loaded: ib_uverbs)" } else { "" };
        return Err(format!("no verbs device: ibv_get_device_list failed with errno {errno}{advice}"));
    }
    // SAFETY: the list has so many devices.
    let devices = unsafe { std::slice::from_raw_parts(list, usize::try_from(number).unwrap_or_default()) };
    let result = look(devices);
    // SAFETY: the list that was given out.
    unsafe { (library.ibv_free_device_list)(list) };
    Ok(result)
}

fn open_one(
    library: &'static Library,
    devices: &[*mut ibv_device],
    wanted: Option<&str>,
) -> Result<(String, *mut ibv_context), String> {
    let mut names = devices.iter().map(|device| (name_of(*device), *device));
    let found = names.find(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
    let Some((name, device)) = found else {
        let known: Vec<_> = devices.iter().map(|device| name_of(*device)).collect();
        return Err(match wanted {
            Some(wanted) => format!("no verbs device {wanted:?}; there are {known:?} and soft"),
            None => "no verbs device: libibverbs sees none".to_owned(),
        });
    };
    // SAFETY: a device of the list, which has not been given back.
    let context = unsafe { (library.ibv_open_device)(device) };
    if context.is_null() {
        return Err(format!("{name} cannot be opened: errno {}", super::errno()));
    }
    Ok((name, context))
}

fn name_of(device: *mut ibv_device) -> String {
    // SAFETY: a device of a list that has not been given back.
    let name = unsafe { &raw const (*device).name };
    // SAFETY: the name ends with 0 within its room.
    unsafe { CStr::from_ptr(name.cast()) }.to_string_lossy().into_owned()
}
