//! Why receives were not matched by the device: the table, and what its columns mean.

use crate::offload::Offloaded;
use crate::table::Table;
use std::fmt::Display;
use tagmatch::offload::Reason;

/// One column for each reason that occurs, and what each of them means.
pub(crate) fn text<'a>(
    offloads: impl Iterator<Item = (&'a str, &'a Offloaded)>,
    is_as_recorded: bool,
) -> String {
    let offloads: Vec<_> = offloads.collect();
    let mut names: Vec<&str> = Vec::new();
    for reason in offloads.iter().flat_map(|(_, offload)| &offload.reasons) {
        if !names.contains(&reason.reason) {
            names.push(reason.reason);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new(std::iter::once("trace".to_owned()).chain(names.iter().map(|name| broken(name))));
    for (trace, offload) in &offloads {
        let mut cells = vec![(*trace).to_owned()];
        cells.extend(names.iter().map(|name| {
            let reason = offload.reasons.iter().find(|reason| reason.reason == *name);
            reason.map_or(0, |reason| reason.receives).to_string()
        }));
        table.row(cells);
    }
    let mut text = String::new();
    if is_as_recorded && names.contains(&DIRECTED) {
        text += "Most receives name a source that these tags do not carry: --layout source-in-tag puts it there, and \
                 the device can match them.\n\n";
    }
    text += &format!("Receives that the device did not match, by reason:\n\n{}\n", table.text());
    for name in names {
        text += &format!("{name}: {}\n", meaning(name));
    }
    let cancelled: u64 = offloads.iter().map(|(_, offload)| offload.cancelled).sum();
    if cancelled > 0 {
        text += &format!("Of all these, {} cancelled and took no message.\n", receives_were(cancelled));
    }
    text + "\n"
}

/// A number of things, in words.
pub(crate) fn tallied(number: impl Display, thing: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

fn receives_were(number: u64) -> String {
    let were = if number == 1 { "was" } else { "were" };
    format!("{} {were}", tallied(number, "receive"))
}

/// A name in two lines, as a heading.
fn broken(name: &str) -> String {
    let middle = name.len() / 2;
    let places = name.match_indices('_').map(|(place, _)| place);
    match places.min_by_key(|place| place.abs_diff(middle)) {
        Some(place) => format!("{}\n{}", &name[..=place], &name[place + 1..]),
        None => name.to_owned(),
    }
}

/// What a reason says of a receive.
pub(crate) fn meaning(name: &str) -> &'static str {
    match name {
        MESSAGE_WAS_FIRST => "it was posted when its message was there already, so software had it to give",
        TAKEN_BY_SOFTWARE => {
            "it was in the device, and software took it back for a message that the device did not match"
        }
        CANCELLED_IN_DEVICE => "it was in the device when it was cancelled",
        DOES_NOT_MATCH => "the device was opened without a matching list",
        _ => Reason::ALL.into_iter().find(|reason| reason.name() == name).map_or("", of_the_engine),
    }
}

const fn of_the_engine(reason: Reason) -> &'static str {
    match reason {
        Reason::DeviceFull => "it waited for an entry: all were in use (more --tags help)",
        Reason::NoCommandSlot => "it waited for a command slot of the device",
        Reason::NoBounceBuffer => "it is shorter than the eager limit, and waited for a bounce buffer",
        Reason::OlderOverlap => {
            "a message that fits it could also fit an older receive that was not in this device's list"
        }
        Reason::Directed => "it names a source that cannot be read from the tag",
        Reason::SeveralSegments => "its buffer has several segments",
        Reason::OverDeviceLength => "its buffer is longer than the device takes",
        Reason::BufferOverlap => "its buffer overlaps one that is in a device",
        Reason::NotRegistered => "its buffer is not registered with the device",
        Reason::MultiReceive => "it is a multi-receive buffer",
        Reason::ServedByAnotherPath => "its messages come through another device",
        Reason::TooManyClasses => "there are more live classes (mask, kind of source) than are followed",
        Reason::Disabled => "offload is switched off",
        Reason::DeviceFault => "the device failed or broke its contract",
    }
}

/// Receives that took a message which was there before them.
pub(crate) const MESSAGE_WAS_FIRST: &str = "message_was_first";
/// Receives that no device could have matched.
pub(crate) const DOES_NOT_MATCH: &str = "device_does_not_match";
/// Receives that a device had, and that took a message in software.
pub(crate) const TAKEN_BY_SOFTWARE: &str = "taken_by_software";
/// Receives that a device had, and that took none.
pub(crate) const CANCELLED_IN_DEVICE: &str = "cancelled_in_device";
const DIRECTED: &str = "directed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_meaning() {
        let names = Reason::ALL.iter().map(|reason| reason.name());
        for name in names.chain([MESSAGE_WAS_FIRST, DOES_NOT_MATCH, TAKEN_BY_SOFTWARE, CANCELLED_IN_DEVICE]) {
            assert!(!meaning(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(tallied(1, "trace"), "1 trace");
        assert_eq!(tallied(0, "trace"), "0 traces");
    }

    #[test]
    fn a_long_name_is_broken_in_its_middle() {
        assert_eq!(broken("message_was_first"), "message_\nwas_first");
        assert_eq!(broken("directed"), "directed");
    }
}
