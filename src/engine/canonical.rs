//! The engine's state in a form where two states that behave alike look alike: for counting explored states.

use crate::ids::ReceiveId;

use super::Engine;

impl Engine {
    /// Everything that decides about the future, as words. Receives are named by the caller, since a device may know
    /// one that is posted no more; messages by their `app_ctx` and transfers by the context of their receive, which
    /// the model makes unique; sequence numbers appear as order only, counters relative.
    pub fn canonical(&self, out: &mut Vec<u64>, name: &dyn Fn(ReceiveId) -> u64) {
        for id in self.matcher.posted_ids() {
            out.push(name(id));
        }
        out.push(SEPARATOR);
        for id in self.matcher.unexpected_ids() {
            if let Some((_, held)) = self.unexpected_message(id) {
                out.extend([u64::from(held.app_ctx), held.token.0, u64::from(held.device.0)]);
            }
        }
        out.push(SEPARATOR);
        self.offload.canonical(out, name, &|ticket| self.waiting.place(ticket));
        let record_name =
            |index: usize| self.offload.record(index).map_or(u64::MAX, |record| name(record.receive));
        self.renamed.canonical(out);
        self.waiting.canonical(out, &record_name);
        self.transfers.canonical(out);
        out.extend([self.claims.len() as u64, self.completions.len() as u64, self.faults.len() as u64]);
        for multi in self.multis.iter().map(|(_, multi)| multi) {
            out.extend([
                multi.context,
                multi.rest.length,
                u64::from(multi.under_way),
                u64::from(multi.closed),
            ]);
        }
    }
}

const SEPARATOR: u64 = u64::MAX - 1;
