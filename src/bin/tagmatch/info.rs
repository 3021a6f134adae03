//! `tagmatch info`: the devices seen with their limits, and what this program was built from.

use crate::build::{BUILD, Build};
use crate::output;
use crate::{End, InfoArguments};
use serde::Serialize;
use tagmatch::device::soft::SoftConfig;

#[derive(Debug, Serialize)]
struct Info {
    build: Build,
    features: Vec<&'static str>,
    system: String,
    devices: Vec<Device>,
    absent: Vec<&'static str>,
}

/// A device with its limits.
#[derive(Debug, Serialize)]
struct Device {
    name: &'static str,
    is_model: bool,
    limits: Vec<(&'static str, u64)>,
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
    Info {
        build: BUILD,
        features: [("cli", cfg!(feature = "cli")), ("traces", cfg!(feature = "traces"))]
            .into_iter()
            .filter_map(|(name, is_on)| is_on.then_some(name))
            .collect(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        devices: vec![soft()],
        absent: vec!["no verbs device: this build has no verbs backend"],
    }
}

/// The soft TM-SRQ as `replay` sets it up unless told otherwise.
fn soft() -> Device {
    let config = SoftConfig::matching(TAGS);
    Device {
        name: "soft TM-SRQ",
        is_model: true,
        limits: vec![
            ("tags (--tags, at most 32767)", config.tags.into()),
            ("list operations outstanding", config.operations.into()),
            ("completions", config.completions.into()),
            ("buffers for unexpected messages", config.unexpected_buffers.into()),
            ("eager limit, bytes", config.eager_limit),
            ("longest tagged buffer, bytes", config.buffer_length_max),
        ],
    }
}

fn text(info: &Info) -> String {
    let Info { build, features, system, devices, absent } = info;
    let mut text = format!(
        "tagmatch {}\ncommit    {}\ncompiler  {}\nbuilt     {}\nsystem    {system}\nfeatures  {}\n\ndevices:\n",
        build.version,
        build.commit,
        build.compiler,
        if build.debug { "for debugging: times mean little" } else { "optimised" },
        features.join(" "),
    );
    for device in devices {
        let kind = if device.is_model { " (a model, not a card)" } else { "" };
        text += &format!("  {}{kind}\n", device.name);
        for (limit, value) in &device.limits {
            text += &format!("    {limit}: {value}\n");
        }
    }
    for what in absent {
        text += &format!("  {what}\n");
    }
    text
}

/// The default of `--tags`.
const TAGS: u32 = 1024;
