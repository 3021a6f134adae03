//! `tagmatch info`: the devices seen with their limits, and what this program was built from.

use crate::build::{BUILD, Build};
use crate::output;
use crate::{End, InfoArguments};
use serde::Serialize;

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
        devices: Vec::new(),
        absent: vec![
            "soft TM-SRQ: this build does not join it to the command line",
            "no verbs device: this build has no verbs backend",
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
