//! The same where packets are late, lost, doubled, and overtake each other: run once more in the same machine (`inside`).

use super::{TAGS, inside, run};

#[test]
fn endpoints_match_in_software_where_packets_are_lost_doubled_and_overtake_each_other() {
    let name = concat!(
        module_path!(),
        "::endpoints_match_in_software_where_packets_are_lost_doubled_and_overtake_each_other"
    );
    inside(name, |devices| {
        run(devices, None);
    });
}

#[test]
fn endpoints_match_by_the_soft_list_where_packets_are_lost_doubled_and_overtake_each_other() {
    let name = concat!(
        module_path!(),
        "::endpoints_match_by_the_soft_list_where_packets_are_lost_doubled_and_overtake_each_other"
    );
    inside(name, |devices| {
        let happened = run(devices, Some(TAGS));
        assert!(happened.matched_by_device > 100, "{happened:?}");
    });
}
