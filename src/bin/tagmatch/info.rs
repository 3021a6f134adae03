//! `tagmatch info`: the libraries and devices seen with versions and limits, and what this program was built from.

use crate::build::{BUILD, Build};
use crate::libraries::{Library, libraries};
use crate::output;
use crate::{End, InfoArguments};
use serde::Serialize;
use tagmatch::device::soft::SoftConfig;

#[derive(Debug, Serialize)]
struct Info {
    build: Build,
    features: Vec<&'static str>,
    system: String,
    verbs_layouts: &'static str,
    fabric_layouts: &'static str,
    libraries: Vec<Library>,
    devices: Vec<Device>,
    absent: Vec<String>,
    parameters: Vec<Parameter>,
    /// Who matches for the provider with these parameters, or why it is not offered.
    matching: String,
}

/// A run-time parameter of the libfabric provider.
#[derive(Debug, Serialize)]
struct Parameter {
    variable: String,
    value: String,
    origin: &'static str,
    range: String,
    meaning: &'static str,
}

/// A device with its limits.
#[derive(Debug, Serialize)]
struct Device {
    name: String,
    is_model: bool,
    limits: Limits,
}

/// Its limits, in the order in which they are shown.
#[derive(Debug)]
struct Limits(Vec<Limit>);

/// One limit.
#[derive(Debug)]
struct Limit {
    /// In JSON.
    key: String,
    /// For a person.
    words: String,
    value: u64,
}

impl Serialize for Limits {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|limit| (&limit.key, limit.value)))
    }
}

/// Show it.
pub(crate) fn run(arguments: &InfoArguments) -> End {
    let info = info();
    if arguments.json {
        output::write_json(&info, End::AsExpected)
    } else {
        output::write(&text(&info), End::AsExpected)
    }
}

fn info() -> Info {
    let (verbs, absent) = verbs::devices();
    Info {
        build: BUILD,
        features: FEATURES.into_iter().filter_map(|(name, is_on)| is_on.then_some(name)).collect(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        verbs_layouts: verbs::LAYOUTS,
        fabric_layouts: provider::LAYOUTS,
        libraries: libraries(),
        devices: std::iter::once(soft()).chain(verbs).collect(),
        absent,
        parameters: provider::parameters(),
        matching: provider::matching(),
    }
}

/// The soft TM-SRQ as `replay` sets it up unless told otherwise.
fn soft() -> Device {
    let config = SoftConfig::matching(TAGS);
    Device {
        name: "soft TM-SRQ".into(),
        is_model: true,
        limits: named(&[
            ("tags", "tags (--tags, at most 32767)", config.tags.into()),
            ("list_operations", "list operations outstanding", config.operations.into()),
            ("completions", "completions", config.completions.into()),
            ("unexpected_buffers", "buffers for unexpected messages", config.unexpected_buffers.into()),
            ("eager_limit_bytes", "eager limit, bytes", config.eager_limit),
            ("tagged_buffer_bytes_max", "longest tagged buffer, bytes", config.buffer_length_max),
        ]),
    }
}

fn named(limits: &[(&str, &str, u64)]) -> Limits {
    let limit =
        |&(key, words, value): &(&str, &str, u64)| Limit { key: key.into(), words: words.into(), value };
    Limits(limits.iter().map(limit).collect())
}

fn text(info: &Info) -> String {
    let Info {
        build,
        features,
        system,
        verbs_layouts,
        fabric_layouts,
        libraries,
        devices,
        absent,
        parameters,
        matching,
    } = info;
    let mut text = format!(
        "tagmatch {}\ncommit    {}\ncompiler  {}\nbuilt     {}\nsystem    {system}\nfeatures  {}\nverbs     layouts {verbs_layouts}\nlibfabric layouts {fabric_layouts}\n\nlibraries:\n",
        build.version,
        build.commit,
        build.compiler,
        if build.debug { "for debugging: times mean little" } else { "optimised" },
        features.join(" "),
    );
    for library in libraries {
        text += &format!("  {}\n", output::harmless(library.line()));
    }
    text += "\ndevices:\n";
    for device in devices {
        let kind = if device.is_model { " (a model, not a card)" } else { "" };
        text += &format!("  {}{kind}\n", device.name);
        for Limit { words, value, .. } in &device.limits.0 {
            text += &format!("    {words}: {value}\n");
        }
    }
    for what in absent {
        text += &format!("  {what}\n");
    }
    text += "\nparameters of the libfabric provider:\n";
    for Parameter { variable, value, origin, range, .. } in parameters {
        text += &format!("  {variable} = {value:?} ({origin}; {range})\n");
    }
    text += &format!("  tags are matched by: {matching}\n");
    text
}

/// What the libfabric provider says of itself.
#[cfg(target_os = "linux")]
mod provider {
    use super::Parameter;
    use tagmatch::provider::check_interface;
    use tagmatch::provider::matching::choose;
    use tagmatch::provider::parameters::Parameters;

    pub(super) use tagmatch::provider::abi::LAYOUTS;

    pub(super) fn parameters() -> Vec<Parameter> {
        let rows =
            Parameters::rows(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
        let show = |row: tagmatch::provider::parameters::Row| Parameter {
            variable: row.variable,
            value: row.value,
            origin: if row.from_environment { "set" } else { "default" },
            range: row.parameter.range.to_string(),
            meaning: row.parameter.meaning,
        };
        rows.into_iter().map(show).collect()
    }

    pub(super) fn matching() -> String {
        let parameters = match Parameters::from_environment() {
            Ok(parameters) => parameters,
            Err(refused) => return format!("nobody: {refused}"),
        };
        if let Err(refused) = check_interface(&parameters) {
            return format!("nobody: {refused}");
        }
        match choose(&parameters) {
            Ok(choice) => choice.to_string(),
            Err(refused) => format!("nobody: {refused}"),
        }
    }
}

/// There is none on this system.
#[cfg(not(target_os = "linux"))]
mod provider {
    use super::Parameter;

    pub(super) const LAYOUTS: &str = "not used on this system";

    pub(super) fn parameters() -> Vec<Parameter> {
        Vec::new()
    }

    pub(super) fn matching() -> String {
        "nobody: there is no provider on this system".into()
    }
}

/// Devices behind libibverbs.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod verbs {
    use super::{Device, Limit, named};
    use crate::device::is_simulated;
    use tagmatch::device::verbs::context::{Context, LinkLayer};
    use tagmatch::device::verbs::{self, VerbsError};

    pub(super) use tagmatch::device::verbs::LAYOUTS;

    /// What there is with its limits, and in words what there is not.
    pub(super) fn devices() -> (Vec<Device>, Vec<String>) {
        let entries = match verbs::devices() {
            Ok(entries) if entries.is_empty() => return (Vec::new(), vec![VerbsError::NoDevice.to_string()]),
            Ok(entries) => entries,
            Err(error) => return (Vec::new(), vec![error.to_string()]),
        };
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        for entry in entries {
            match device(&entry.name) {
                Ok(device) => found.push(device),
                Err(error) => absent.push(format!("{}: {error}", entry.name)),
            }
        }
        (found, absent)
    }

    fn device(name: &str) -> Result<Device, VerbsError> {
        let context = Context::open(Some(name))?;
        let limits = context.limits()?;
        let mut rows = named(&[
            ("queue_pairs", "queue pairs (two for each peer)", limits.queue_pairs.into()),
            ("work_requests", "requests in a queue", limits.work_requests.into()),
            ("completions", "completions in a queue", limits.completions.into()),
            ("shared_receives", "receives in a shared queue", limits.shared_receives.into()),
        ]);
        let matching = match limits.tag_matching {
            None => named(&[("tags", "tags (none: it does not match)", 0)]),
            Some(tm) => named(&[
                ("tags", "tags", tm.tags.into()),
                ("list_operations", "list operations outstanding", tm.operations.into()),
                ("tagged_buffer_segments", "segments of a tagged buffer", tm.segments.into()),
                ("rendezvous_request_bytes", "rendezvous request, bytes", tm.rendezvous_header.into()),
                ("rendezvous", "reads matched rendezvous itself (1: yes)", tm.rendezvous.into()),
            ]),
        };
        rows.0.extend(matching.0);
        for number in 1..=limits.ports {
            let port = context.port(number)?;
            let state = if port.is_active() { "active" } else { "not active" };
            let link = match port.link {
                LinkLayer::InfiniBand => "InfiniBand",
                LinkLayer::Ethernet => "Ethernet: no tag matching through libmlx5",
            };
            rows.0.push(Limit {
                key: format!("port_{number}_message_bytes_max"),
                words: format!("port {number}, {state}, {link}; longest message, bytes"),
                value: port.message.into(),
            });
        }
        Ok(Device {
            name: format!("verbs {name}, firmware {}", limits.firmware),
            is_model: is_simulated(),
            limits: rows,
        })
    }
}

/// Nothing of the kind on this system.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod verbs {
    use super::Device;

    pub(super) const LAYOUTS: &str = "not used on this system";

    pub(super) fn devices() -> (Vec<Device>, Vec<String>) {
        (Vec::new(), vec!["no verbs device: this system has no libibverbs".into()])
    }
}

/// Those of Cargo.toml, and whether this program has them.
const FEATURES: [(&str, bool); 4] = [
    ("cli", cfg!(feature = "cli")),
    ("traces", cfg!(feature = "traces")),
    ("libfabric", cfg!(feature = "libfabric")),
    ("ablation", cfg!(feature = "ablation")),
];
/// The default of `--tags`.
const TAGS: u32 = 1024;
