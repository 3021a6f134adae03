//! What a run says of where it ran: machine, kernel, load, and the libraries of devices.

use super::report::Machine;
use std::collections::BTreeMap;
use std::fs;

impl Machine {
    /// This one, as it is now.
    pub(crate) fn here() -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| value(&cpuinfo, name);
        Self {
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            kernel: or_unknown(read("/proc/sys/kernel/osrelease").trim()),
            processor: or_unknown(field("model name").or_else(|| field("CPU part")).unwrap_or_default()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory(&read("/proc/meminfo")),
            is_virtual: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load_before: load(),
            load_after: None,
        }
    }

    /// In one line.
    pub(crate) fn words(&self) -> String {
        let Self { system, kernel, processor, processors, memory_mib, is_virtual, .. } = self;
        let emulated = if *is_virtual { ", virtual" } else { "" };
        let memory = if *memory_mib < 2048 {
            format!("{memory_mib} MiB")
        } else {
            format!("{} GiB", memory_mib.saturating_add(512) / 1024)
        };
        format!("{processor}{emulated}, {processors} processors, {memory}; {system}, kernel {kernel}")
    }

    /// Whether others wanted so much of it that times are worth less.
    pub(crate) fn is_busy(&self) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "machines have few processors")]
        let processors = self.processors as f64;
        self.load_before.is_some_and(|load| load > processors)
    }
}

/// The system's load over the last minute.
pub(crate) fn load() -> Option<f64> {
    read("/proc/loadavg").split(' ').next()?.parse().ok()
}

/// Of the libraries of devices that this process has open: each with the version that its file has in its name.
pub(super) fn libraries() -> BTreeMap<String, String> {
    libraries_of(&read("/proc/self/maps"))
}

fn libraries_of(maps: &str) -> BTreeMap<String, String> {
    let names = maps.lines().filter_map(|line| line.rsplit_once('/').map(|(_, name)| name));
    let versions = names.filter_map(|name| {
        let (library, version) = name.split_once(".so.")?;
        let is_wanted = ["libibverbs", "libmlx5"].contains(&library);
        is_wanted.then(|| (library.to_owned(), version.to_owned()))
    });
    versions.collect()
}

/// Of a file of lines `name : value`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.trim() == name).then(|| after.trim())
    })
}

fn memory(meminfo: &str) -> u64 {
    let words = value(meminfo, "MemTotal").unwrap_or_default();
    words.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() >> 10
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() { "unknown".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_the_names_of_their_files() {
        let maps = "7f00-7f01 r-xp 00000000 00:01 7  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0\n\
                    7f02-7f03 r--p 00000000 00:01 7  /usr/lib/x86_64-linux-gnu/libmlx5.so.1.24.44.0 (deleted)\n\
                    7f04-7f05 r--p 00000000 00:01 7  /usr/lib/x86_64-linux-gnu/libc.so.6\n\
                    7f06-7f07 rw-p 00000000 00:00 0  [heap]\n";
        let versions: Vec<_> = libraries_of(maps).into_iter().collect();
        let version = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let wanted = vec![version("libibverbs", "1.14.44.0"), version("libmlx5", "1.24.44.0 (deleted)")];
        assert_eq!(versions, wanted);
    }

    #[test]
    fn a_machine_that_says_nothing_is_unknown_and_not_busy() {
        assert_eq!((value("", "MemTotal"), memory("MemTotal: no number\n")), (None, 0));
        assert_eq!(memory("MemTotal:       2097152 kB\n"), 2048);
        assert_eq!(or_unknown(""), "unknown");
        let idle = Machine { load_before: None, ..Machine::here() };
        assert!(!idle.is_busy());
    }
}
