//! Devices that this machine has already, for which no machine need be made.
//!
//! Nothing is added to this machine and no route of it is touched: rxe lives in the first network namespace (seen with
//! Linux 6.1 and 6.12), so that devices made here would be made for everybody.

use crate::Options;
use crate::failure::Failure;
use crate::place::RunDirectory;
use crate::protocol::Outcome;
use crate::relay::Relay;
use crate::tools;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A device with a port that is up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// The index of a GID that can be used, on Ethernet.
    pub(crate) gid: Option<u32>,
    /// The IPv4 address that this GID says.
    pub(crate) address: Option<String>,
}

/// The devices of this machine, by name.
pub(crate) fn devices(sysfs: &Path) -> Vec<Device> {
    let mut devices: Vec<Device> = names(&sysfs.join("class/infiniband"))
        .into_iter()
        .filter_map(|name| {
            let port = sysfs.join("class/infiniband").join(&name).join("ports/1");
            let state = fs::read_to_string(port.join("state")).ok()?;
            state.contains("ACTIVE").then(|| {
                let gid = gid(&port);
                let address = gid.as_ref().and_then(|(_, gid)| ipv4(gid));
                Device { name, gid: gid.map(|(index, _)| index), address }
            })
        })
        .collect();
    devices.sort_by(|one, other| one.name.cmp(&other.name));
    devices
}

/// Run the command on this machine, with the variables that it would have inside of one.
pub(crate) fn run(
    options: &Options,
    devices: &[Device],
    run: &mut RunDirectory,
    relay: &mut dyn Relay,
) -> Result<Outcome, Failure> {
    let [program, rest @ ..] = options.command.as_slice() else {
        return Err(Failure::Refused("there is no command".into()));
    };
    let mut command = tools::tied_path(program)?;
    let all = |value: &dyn Fn(&Device) -> String| devices.iter().map(value).collect::<Vec<_>>().join(" ");
    command
        .args(rest)
        .current_dir(&options.directory)
        .stdin(Stdio::null())
        .env("TAGMATCH_RXE_DEVICES", all(&|device| device.name.clone()))
        .env("TAGMATCH_RXE_ADDRESSES", all(&|device| device.address.clone().unwrap_or_else(|| "-".into())))
        .env(
            "TAGMATCH_RXE_GIDS",
            all(&|device| device.gid.map_or_else(|| "-".into(), |gid| gid.to_string())),
        );
    let child = run.start(&mut command);
    let child = child.map_err(|error| Failure::system(program.display().to_string(), error))?;
    let outcome = wait(child, options.timeout)?;
    for file in options.files_out.iter().filter(|file| file.inside != file.outside) {
        if fs::copy(&file.inside, &file.outside).is_err() {
            relay.note(&format!("{} cannot be copied to {}", file.inside.display(), file.outside.display()));
        }
    }
    Ok(outcome)
}

/// How a program ended, as a shell says it; killed after its time.
fn wait(mut child: Child, timeout: Duration) -> Result<Outcome, Failure> {
    let failed = |error| Failure::system("waiting for the command", error);
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            return Ok(Outcome::Ended(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)));
        }
        if start.elapsed() >= timeout {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Ok(Outcome::TimedOut);
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// A RoCE v2 GID of an IPv4 address, else another one that is not link-local. Index 0 is often link-local, and not
/// reachable.
fn gid(port: &Path) -> Option<(u32, String)> {
    let read = |path: &str, index: u32| {
        let text = fs::read_to_string(port.join(path).join(index.to_string())).ok()?;
        Some(text.trim().to_owned())
    };
    let mut indices: Vec<u32> =
        names(&port.join("gids")).iter().filter_map(|name| name.parse().ok()).collect();
    indices.sort_unstable();
    let usable: Vec<(u32, String)> = indices
        .into_iter()
        .filter(|&index| read("gid_attrs/types", index).as_deref() == Some("RoCE v2"))
        .filter_map(|index| Some((index, read("gids", index)?)))
        .filter(|(_, gid)| !gid.starts_with("fe80:") && gid.contains(|c| c != '0' && c != ':'))
        .collect();
    usable.iter().find(|(_, gid)| ipv4(gid).is_some()).or(usable.first()).cloned()
}

/// The address in a GID that is one of IPv4.
fn ipv4(gid: &str) -> Option<String> {
    let rest = gid.strip_prefix("0000:0000:0000:0000:0000:ffff:")?.replace(':', "");
    let address = u32::from_str_radix(&rest, 16).ok()?;
    Some(std::net::Ipv4Addr::from_bits(address).to_string())
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::RunDirectory;

    fn sysfs(files: &[(&str, &str)]) -> RunDirectory {
        let folder = RunDirectory::new().unwrap();
        for (path, content) in files {
            let path = folder.path().join("class/infiniband").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{content}\n")).unwrap();
        }
        folder
    }

    #[test]
    fn a_device_that_is_up_is_found_with_the_gid_of_its_address() {
        let sysfs = sysfs(&[
            ("rxe1/ports/1/state", "1: DOWN"),
            ("rxe0/ports/1/state", "4: ACTIVE"),
            ("rxe0/ports/1/gids/0", "fe80:0000:0000:0000:0011:22ff:fe33:4455"),
            ("rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a09:0001"),
            ("rxe0/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a09:0001"),
            ("rxe0/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000"),
            ("rxe0/ports/1/gid_attrs/types/0", "RoCE v2"),
            ("rxe0/ports/1/gid_attrs/types/1", "IB/RoCE v1"),
            ("rxe0/ports/1/gid_attrs/types/2", "RoCE v2"),
            ("rxe0/ports/1/gid_attrs/types/3", "RoCE v2"),
        ]);
        let device = Device { name: "rxe0".into(), gid: Some(2), address: Some("10.9.0.1".into()) };
        assert_eq!(devices(sysfs.path()), [device]);
    }

    #[test]
    fn a_port_of_infiniband_needs_no_gid_and_no_devices_are_none() {
        let sysfs = sysfs(&[("mlx5_0/ports/1/state", "4: ACTIVE")]);
        assert_eq!(devices(sysfs.path()), [Device { name: "mlx5_0".into(), gid: None, address: None }]);
        assert_eq!(devices(Path::new("nowhere")), []);
    }
}
