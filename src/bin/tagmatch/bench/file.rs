//! Runs in files, which come from anywhere: what they say is checked before anybody believes it.

use super::report::{FORMAT, Report};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

impl Report {
    /// What `--json` wrote into a file.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut text = String::new();
        let file = File::open(path).map_err(|error| format!("{shown}: {error}"))?;
        // A file that never ends is none of ours.
        let length = file.take(FILE_MAX + 1).read_to_string(&mut text);
        let length = length.map_err(|error| format!("{shown}: {error}"))?;
        if length as u64 > FILE_MAX {
            return Err(format!("{shown}: longer than {FILE_MAX} bytes, which no run is"));
        }
        Self::parse(&text).map_err(|what| format!("{shown}: {what}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        match value.get("format").and_then(serde_json::Value::as_str) {
            Some(FORMAT) => {}
            Some(other) => return Err(format!("of the format {other:?}, and this is {FORMAT:?}")),
            None => return Err("not what `tagmatch bench --json` writes: it has no format".into()),
        }
        let report: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if let Some(wrong) = report.figures().find(|figure| !(0.0..FIGURE_MAX).contains(figure)) {
            return Err(format!("{wrong} is no figure of a run"));
        }
        if report.devices.len() > DEVICES_MAX {
            return Err(format!("{} devices are more than any run has", report.devices.len()));
        }
        Ok(report)
    }

    fn figures(&self) -> impl Iterator<Item = f64> {
        let points = self.devices.iter().flat_map(|device| &device.points);
        let results = self.rows.iter().flat_map(|row| &row.results);
        let of_points = points.flat_map(|point| {
            let optional = [point.latency_ns, point.instructions];
            let figures = [point.receiver_ns, point.sender_ns, point.per_second, point.share_in_hardware];
            figures.into_iter().chain(optional.into_iter().flatten())
        });
        let of_results = results.flat_map(|result| {
            let optional = [result.instructions_per_event, result.share_in_hardware, result.share_of_posted];
            [result.ns_per_event].into_iter().chain(optional.into_iter().flatten())
        });
        of_points.chain(of_results)
    }
}

/// Bytes of a file, at most.
const FILE_MAX: u64 = 64 << 20;
/// What no time in nanoseconds reaches.
const FIGURE_MAX: f64 = 1e15;
const DEVICES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_run_is_refused_with_the_reason() {
        let refusal = |text: &str| Report::parse(text).unwrap_err();
        assert!(refusal("{").starts_with("no JSON"), "{}", refusal("{"));
        assert!(refusal(&"[".repeat(100_000)).starts_with("no JSON"), "nested too deep");
        assert_eq!(refusal("[1]"), "not what `tagmatch bench --json` writes: it has no format");
        let other = refusal("{\"format\": \"tagmatch bench 1\"}");
        assert_eq!(other, "of the format \"tagmatch bench 1\", and this is \"tagmatch bench 2\"");
        let lacking = refusal("{\"format\": \"tagmatch bench 2\"}");
        assert!(lacking.contains("missing field"), "{lacking}");
    }
}
