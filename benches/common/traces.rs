//! The bundled traces as scripts.
//!
//! Not here: reading them (`tagmatch::traces`).

use super::script::Script;

pub(crate) fn bundled() -> Vec<Script> {
    Vec::new()
}
