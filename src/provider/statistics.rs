//! Counters of a running process for who asks from outside, and what is left of them at its end.
//!
//! A domain writes its counters to a small file in memory (`/dev/shm/tagmatch-UID/PID.N`), once a second at most and
//! while it makes progress, and removes it when it is closed. The file says which process wrote it and when that was
//! started, so that one of a process that was killed is known for what it is, and removed by the next process that opens a domain. Not here: who counts (`endpoint`,
//! `offload`), and what is made of the files (`tagmatch stats`).

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::endpoint::{Endpoint, Space};
use crate::offload::Reason;

/// What one domain of a process counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The process.
    pub pid: u32,
    /// When it was started, in ticks since the machine was (`/proc/PID/stat`, field 22).
    pub started: u64,
    /// Its program.
    pub command: String,
    /// Every counter with its name, of all endpoints of the domain together.
    pub counters: Vec<(String, u64)>,
}

impl Report {
    /// Of this process, with nothing counted.
    fn own() -> Self {
        let command = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let pid = std::process::id();
        Self {
            pid,
            started: started(pid).unwrap_or_default(),
            command: command.trim_end().to_owned(),
            counters: Vec::new(),
        }
    }

    /// One that was written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut head = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        if head("tagmatch-statistics")? != VERSION {
            return None;
        }
        let (pid, started) = (head("pid")?.parse().ok()?, head("started")?.parse().ok()?);
        let command = head("command")?.to_owned();
        let counter = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let counters = lines.map(counter).collect::<Option<_>>()?;
        Some(Self { pid, started, command, counters })
    }

    /// As it is written: a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { pid, started, command, counters } = self;
        let mut text =
            format!("tagmatch-statistics {VERSION}\npid {pid}\nstarted {started}\ncommand {command}\n");
        for (name, value) in counters {
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }

    /// Whether the process still runs that wrote it, and not another with its number.
    #[must_use]
    pub fn is_running(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Add what an endpoint counted.
    fn add(&mut self, endpoint: &Endpoint) {
        let offload = endpoint.offload_statistics();
        let spaces = [("tagged", Space::Tagged), ("untagged", Space::Untagged)];
        for (name, space) in spaces {
            let (posted, unexpected) = endpoint.depths(space);
            self.count(&format!("posted_{name}_now"), posted as u64);
            self.count(&format!("unexpected_{name}_now"), unexpected as u64);
        }
        self.count("sends_now", endpoint.sends_in_progress() as u64);
        for (name, value) in endpoint.statistics().rows() {
            self.count(name, value);
        }
        let offloaded = [
            ("device_adds", offload.adds),
            ("device_dels", offload.dels),
            ("device_syncs", offload.syncs),
            ("device_dels_too_late", offload.dels_too_late),
            ("device_bounced", offload.bounced),
            ("device_set_aside", offload.set_aside),
            ("posted_first", offload.posted_first()),
            ("posted_first_matched_by_device", offload.matched_by_device),
            ("posted_first_entering_the_list", offload.used_by_own_device),
            ("posted_first_of_another_path", offload.taken_back),
        ];
        for (name, value) in offloaded {
            self.count(name, value);
        }
        for reason in Reason::ALL {
            self.count(&format!("not_offloaded_{}", reason.name()), offload.ended(reason));
            self.count(&format!("posted_first_{}", reason.name()), offload.first_ended(reason));
        }
    }

    fn count(&mut self, name: &str, value: u64) {
        match self.counters.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += value,
            None => self.counters.push((name.to_owned(), value)),
        }
    }
}

/// Where this user's files are.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new("/dev/shm").join(format!("tagmatch-{}", user()))
}

/// What was left in the folder: each file with what it says, if it says something.
#[must_use]
pub fn reports() -> Vec<(PathBuf, Option<Report>)> {
    let entries = if is_private(&folder()) { fs::read_dir(folder()).ok() } else { None };
    let files = entries.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end != "new"));
    files
        .map(|path| (path.clone(), fs::read_to_string(path).ok().and_then(|text| Report::parse(&text))))
        .collect()
}

/// Writes the counters of one domain.
#[derive(Debug)]
pub(super) struct Publisher {
    /// Its file, if there can be one.
    place: Option<PathBuf>,
    at_exit: Option<PathBuf>,
    next: Duration,
    /// What endpoints counted that are closed.
    ended: Report,
}

impl Publisher {
    /// By the parameter `FI_TAGMATCH_STATS`.
    pub(super) fn new(parameter: Option<&str>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = folder().join(format!("{}.{number}", std::process::id()));
        let is_on = parameter != Some("off") && make_folder();
        Self {
            place: is_on.then_some(place),
            at_exit: parameter.filter(|what| *what != "off").map(PathBuf::from),
            next: Duration::ZERO,
            ended: Report::own(),
        }
    }

    /// Whether it is time to write.
    #[inline]
    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.next
    }

    /// Write what all endpoints have counted so far.
    pub(super) fn publish<'a>(&mut self, now: Duration, endpoints: impl Iterator<Item = &'a Endpoint>) {
        self.next = now + PERIOD;
        let Some(place) = &self.place else { return };
        let mut report = self.ended.clone();
        endpoints.for_each(|endpoint| report.add(endpoint));
        if write_whole(place, &report.text()).is_err() {
            // Full, or taken away: whoever asks sees what was there before, or nothing.
            self.next = Duration::MAX;
        }
    }

    /// An endpoint is closed: what it counted stays.
    pub(super) fn keep(&mut self, endpoint: &Endpoint) {
        self.ended.add(endpoint);
        // What is now, is over with it.
        self.ended.counters.iter_mut().filter(|(name, _)| name.ends_with("_now")).for_each(|(_, n)| *n = 0);
        self.next = Duration::ZERO;
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some(place) = &self.place {
            let _ = fs::remove_file(place);
        }
        let Some(to) = &self.at_exit else { return };
        if to == Path::new("exit") {
            // Standard error may be gone, or full.
            let _ = std::io::stderr().lock().write_all(self.ended.text().as_bytes());
        } else {
            // One write, so that those of several processes do not mix.
            let written = OpenOptions::new().create(true).append(true).open(to);
            let written = written.and_then(|mut file| file.write_all(self.ended.text().as_bytes()));
            if let Err(error) = written {
                let mut error_out = std::io::stderr().lock();
                let _ = writeln!(error_out, "tagmatch: FI_TAGMATCH_STATS={}: {error}", to.display());
            }
        }
    }
}

/// Under another name first: who reads has all of it or what was there before.
fn write_whole(place: &Path, text: &str) -> std::io::Result<()> {
    let new = PathBuf::from(format!("{}.new", place.display()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(new, place)
}

/// Whether there is a folder that is this user's alone.
fn make_folder() -> bool {
    // Where it is there already, it is looked at below.
    let _ = DirBuilder::new().mode(0o700).create(folder());
    let is_ours = is_private(&folder());
    if is_ours {
        sweep(&folder());
    }
    is_ours
}

/// Remove what processes left that were killed.
fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(pid) = name.split('.').next().and_then(|pid| pid.parse().ok()) else { continue };
        let report = || fs::read_to_string(&path).ok().and_then(|text| Report::parse(&text));
        // Of one that runs, what it is writing now says nothing yet.
        if started(pid).is_none() || report().is_some_and(|report| !report.is_running()) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_private(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0)
}

fn user() -> u32 {
    fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid())
}

/// Field 22 of `/proc/PID/stat`, behind the name in brackets, which may hold anything. A process that ended and was not
/// waited for yet (`Z`) does not run.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if state == "Z" { None } else { fields.nth(18)?.parse().ok() }
}

/// Of the format.
const VERSION: &str = "1";
/// How old a file may be while there is progress.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_other_text_is_not() {
        let report = Report { counters: vec![("received".into(), 7)], ..Report::own() };
        assert_eq!(Report::parse(&report.text()), Some(report.clone()));
        assert!(report.is_running());
        for wrong in ["", "tagmatch-statistics 2\n", &report.text().replace('7', "many")] {
            assert_eq!(Report::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_killed_processes_left_is_swept_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("tagmatch-sweep-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("there is room");
        let own = Report::own();
        let (pid, another) = (own.pid, Report { started: own.started + 1, ..own.clone() });
        let files = [
            (format!("{pid}.0"), own.text(), true),
            (format!("{pid}.1.new"), String::new(), true),
            (format!("{pid}.2"), another.text(), false),
            (format!("{pid}.2.new"), another.text(), false),
            ("4194305.0".into(), Report { pid: 4_194_305, ..own.clone() }.text(), false),
            ("4194305.1.new".into(), String::new(), false),
            ("notes".into(), String::new(), true),
        ];
        for (name, text, _) in &files {
            fs::write(folder.join(name), text).expect("there is room");
        }
        sweep(&folder);
        let left = files.each_ref().map(|(name, _, _)| folder.join(name).exists());
        fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(left, files.map(|(_, _, stays)| stays));
    }

    #[test]
    fn another_process_with_the_number_of_one_that_ended_is_not_taken_for_it() {
        let own = Report::own();
        assert!(!Report { started: own.started + 1, ..own }.is_running());
        assert!(!Report { pid: u32::MAX, ..Report::own() }.is_running());
    }
}
