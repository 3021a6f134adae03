//! The bundled traces as scripts.
//!
//! Not here: reading them (`tagmatch::traces`).

use super::script::Script;

pub(crate) fn bundled() -> Vec<Script> {
    Vec::new()
}

/// Whether the trace's lists stay short: all but incast, deepposted and wildmix.
pub(crate) fn is_shallow(name: &str) -> bool {
    !["incast", "deepposted", "wildmix"].iter().any(|deep| name.starts_with(deep))
}
