//! The bundled traces as scripts.
//!
//! Not here: reading them (`tagmatch::traces`), and checking each expected result (`tagmatch replay`).

use std::collections::HashMap;
use tagmatch::traces::{Event, Trace};

use super::script::{Script, Step};

/// Those whose file's name is wanted, by name.
pub(crate) fn bundled(wanted: impl Fn(&str) -> bool) -> Vec<Script> {
    let traces = tagmatch::traces::bundled().iter().filter(|bundled| wanted(bundled.name));
    traces.map(|bundled| script(&bundled.read().expect("a bundled trace is well formed"))).collect()
}

/// Whether the trace's lists stay short: all but incast, deepposted and wildmix.
pub(crate) fn is_shallow(name: &str) -> bool {
    !["incast", "deepposted", "wildmix"].iter().any(|deep| name.starts_with(deep))
}

/// A receive by claim matches nothing: its peek has taken the message.
fn script(trace: &Trace) -> Script {
    let mut posts = HashMap::new();
    let steps: Vec<_> = trace
        .steps
        .iter()
        .filter_map(|step| match step.event {
            Event::Post { receive, pattern, .. } => {
                let place = u32::try_from(posts.len()).expect("a trace has fewer receives");
                posts.insert(receive, place);
                Some(Step::Post(pattern))
            }
            Event::Arrive { envelope, .. } => Some(Step::Arrive(envelope)),
            Event::Peek { pattern, claim: false, .. } => Some(Step::Probe(pattern)),
            Event::Peek { pattern, claim: true, .. } => Some(Step::Claim(pattern)),
            Event::Claim { .. } => None,
            Event::Cancel { receive } => posts.get(&receive).map(|&post| Step::Cancel(post)),
        })
        .collect();
    Script::new(trace.short_name(), steps)
}
