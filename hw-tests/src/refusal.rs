//! Whether a device has a TM-SRQ at all, found out once and before anything is run on one.
//!
//! A card that reports tags can still refuse every TM-SRQ: libmlx5 connects the list's own queue pair to itself without
//! a GRH, which Ethernet ports need (A15). Elsewhere a refusal is no property of the device, and the checks fail on it.

use crate::port::{Abilities, TmDevice};
use crate::script::{Creation, Limit};

/// Why nothing that needs a TM-SRQ can run on this device.
#[must_use]
pub fn refusal(device: &mut dyn TmDevice) -> Option<String> {
    let abilities = device.abilities();
    if abilities.tags == 0 {
        return Some(NO_TAGS.to_owned());
    }
    refusal_on_ethernet(device, &abilities)
}

/// What a card does that has tag matching and refuses it on this kind of port.
fn refusal_on_ethernet(device: &mut dyn TmDevice, abilities: &Abilities) -> Option<String> {
    if !abilities.roce {
        return None;
    }
    // What cannot be opened here cannot be opened for a check either, which will say so.
    let mut port = device.open().ok()?;
    let creation = Creation { tags: Limit::Exactly(abilities.tags.min(TAGS)), ..Creation::default() };
    let created = port.create(&creation);
    port.tear_down().ok()?;
    let errno = created.ok()?.err()?;
    Some(format!(
        "no tag matching on this port: it is Ethernet (RoCE), and ibv_create_srq_ex of a TM-SRQ is refused with \
         errno {errno}, as expected there (A15)"
    ))
}

/// Of a device that reports no list.
pub(crate) const NO_TAGS: &str = "no tag matching: max_num_tags is 0";
/// As few as the checks have.
const TAGS: u32 = 8;
