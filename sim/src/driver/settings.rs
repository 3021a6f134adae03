//! All settings of the doubtful points of the contract, and which of them break order.

use tagmatch::device::soft::Switches;
use tagmatch::device::soft::readings::READINGS;
use tagmatch::device::soft::switches::HalfReceived;

use crate::world::scope::Scope;

/// One reading that differs from what is assumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The point, as `A1`.
    pub point: &'static str,
    /// The other reading.
    pub reading: &'static str,
    /// All readings.
    pub switches: Switches,
}

impl Setting {
    /// Whether a client depends on what is assumed (TM-CONTRACT 14): with this reading some schedule goes wrong.
    #[must_use]
    pub fn breaks_order(&self) -> bool {
        matches!(self.point, "A1" | "A4" | "A19")
    }

    /// The program under this reading. Where a device does not even match a rendezvous request (A9), none is sent to
    /// one that does not offload them, as its capabilities ask.
    #[must_use]
    pub fn apply(&self, scope: Scope) -> Scope {
        let mut scope = scope.with_switches(self.switches);
        if self.point == "A9" {
            for path in &mut scope.paths {
                path.rendezvous = true;
            }
        }
        scope
    }
}

/// Every other reading of every point, one at a time; and of TM-CONTRACT 13, where nothing is said at all. That
/// completions come in the order of arrival (TM-CONTRACT 10) is documented, and no question.
#[must_use]
pub fn settings() -> Vec<Setting> {
    let named = READINGS.iter().map(|reading| {
        let mut switches = Switches::default();
        (reading.change)(&mut switches);
        Setting { point: reading.point, reading: reading.name, switches }
    });
    let usual = Switches::default();
    let silent = Setting {
        point: "13",
        reading: "half received: nothing comes",
        switches: Switches { half_received: HalfReceived::Silent, ..usual },
    };
    named.chain([silent]).collect()
}
