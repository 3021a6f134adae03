//! Counters of a running process for who asks from outside, and what is left of them at its end.
//!
//! A domain keeps its counters as text in memory of its own that has no name (`memfd_create(2)`), written anew once a second
//! at most and while it makes progress. Whoever asks finds it among the descriptors of the process
//! (`/proc/PID/fd`), which the same user may read. It is gone with the process, whatever ends that. At the end of the domain
//! it is written to where `FI_TAGMATCH_STATS` says. Not here: who counts (`endpoint`, `offload`), and what is made of it
//! (`tagmatch stats`, `tagmatch mpirun --stats`).

use std::ffi::CString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::device::check_file_length;
use crate::endpoint::{Endpoint, Space};
use crate::offload::Reason;

/// What one domain of a process counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The process.
    pub pid: u32,
    /// When it was started, in ticks since the machine was (`/proc/PID/stat`, field 22).
    pub started: u64,
    /// The name of its machine.
    pub host: String,
    /// Its rank in its job, where whoever started it says so.
    pub rank: Option<u32>,
    /// Its program.
    pub command: String,
    /// Every counter with its name, of all endpoints of the domain together.
    pub counters: Vec<(String, u64)>,
}

impl Report {
    /// Of this process, with nothing counted.
    fn own() -> Self {
        // Either may hold anything, also line feeds.
        let line = |file: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        let pid = std::process::id();
        Self {
            pid,
            started: started(pid).unwrap_or_default(),
            host: line("/proc/sys/kernel/hostname"),
            rank: RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()),
            command: line("/proc/self/comm"),
            counters: Vec::new(),
        }
    }

    /// Those that stand one after the other in a file. `None`: something else is there as well, or not all of one.
    #[must_use]
    pub fn parse_all(text: &str) -> Option<Vec<Self>> {
        let is_end = |line: &str| line.strip_suffix('\n') == Some(END);
        let mut rest = text;
        let mut reports = Vec::new();
        while !rest.is_empty() {
            let mut length = 0;
            let last = rest.split_inclusive('\n').find(|line| {
                length += line.len();
                is_end(line)
            });
            let (report, behind) = rest.split_at_checked(last.map(|_| length)?)?;
            reports.push(Self::parse(report)?);
            rest = behind;
        }
        Some(reports)
    }

    /// One that was written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // What a process calls itself may end with a carriage return.
        let mut lines = text.split('\n');
        let mut head = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        if head("tagmatch-statistics")? != VERSION {
            return None;
        }
        let (pid, started) = (head("pid")?.parse().ok()?, head("started")?.parse().ok()?);
        let (host, rank) = (head("host")?.to_owned(), head("rank")?);
        let rank = if rank == NO_RANK { None } else { Some(rank.parse().ok()?) };
        let command = head("command")?.to_owned();
        let mut counters = Vec::new();
        loop {
            let line = lines.next()?;
            if line == END {
                return Some(Self { pid, started, host, rank, command, counters });
            }
            let (name, value) = line.split_once(' ')?;
            counters.push((name.to_owned(), value.parse().ok()?));
        }
    }

    /// As it is written: a line each, and one at the end, without which it is not whole.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { pid, started, host, rank, command, counters } = self;
        let rank = rank.map_or_else(|| NO_RANK.to_owned(), |rank| rank.to_string());
        let mut text = format!(
            "tagmatch-statistics {VERSION}\npid {pid}\nstarted {started}\nhost {host}\nrank {rank}\ncommand {command}\n"
        );
        for (name, value) in counters {
            let _ = writeln!(text, "{name} {value}");
        }
        text + END + "\n"
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

/// What this user's processes count now, each domain of each.
#[must_use]
pub fn reports() -> Vec<Report> {
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| is_own(*pid)).flat_map(reports_of).collect()
}

/// What domains left in a directory that `FI_TAGMATCH_STATS` named, in the order of ranks. Other files are passed over.
///
/// # Errors
/// The directory cannot be read: the error of the system.
pub fn reports_in(folder: &Path) -> std::io::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_file() {
            continue;
        }
        let mut text = String::new();
        let read = File::open(entry.path()).and_then(|file| file.take(LENGTH_MAX).read_to_string(&mut text));
        reports.extend(read.ok().and_then(|_| Report::parse(&text)));
    }
    let place = |report: &Report| (report.rank, report.host.clone(), report.pid);
    reports.sort_by_key(place);
    Ok(reports)
}

/// Those of one process. Others of its descriptors are passed over, as is what is being written.
fn reports_of(pid: u32) -> Vec<Report> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    let (named, inner) = (format!("/memfd:{NAME} (deleted)"), inner_number(pid));
    let is_it = |path: &PathBuf| fs::read_link(path).is_ok_and(|name| name == Path::new(&named));
    let texts = descriptors.map(|entry| entry.path()).filter(is_it).filter_map(|path| read_whole(&path));
    let reports = texts.filter_map(|text| Report::parse(&text));
    // Whoever was forked has its parent's as well.
    reports.filter(|report| Some(report.pid) == inner).map(|report| Report { pid, ..report }).collect()
}

/// The number of a process where it runs itself, which may be in a namespace.
fn inner_number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.map_or(Some(pid), |numbers| numbers.split_whitespace().last()?.parse().ok())
}

fn read_whole(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    // SAFETY: no memory is passed.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    let mut text = String::new();
    let is_whole = seals >= 0 && seals & libc::F_SEAL_WRITE != 0;
    (is_whole && file.take(LENGTH_MAX).read_to_string(&mut text).is_ok()).then_some(text)
}

/// Writes the counters of one domain.
#[derive(Debug)]
pub(super) struct Publisher {
    /// Others are to see them.
    is_shown: bool,
    /// As they see them now.
    shown: Option<File>,
    at_exit: Option<PathBuf>,
    next: Duration,
    /// What endpoints counted that are closed.
    ended: Report,
}

impl Publisher {
    /// By the parameter `FI_TAGMATCH_STATS`.
    pub(super) fn new(parameter: Option<&str>) -> Self {
        Self {
            is_shown: parameter != Some("off"),
            shown: None,
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
        if !self.is_shown {
            return;
        }
        let mut report = self.ended.clone();
        endpoints.for_each(|endpoint| report.add(endpoint));
        // Without memory or descriptors whoever asks sees what was there before, or nothing.
        if let Ok(shown) = write_whole(&report.text()) {
            self.shown = Some(shown);
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
        let Some(to) = &self.at_exit else { return };
        if to == Path::new("exit") {
            // Standard error may be gone, or full.
            let _ = std::io::stderr().lock().write_all(self.ended.text().as_bytes());
        } else if let Err(error) = leave(to, &self.ended) {
            let mut error_out = std::io::stderr().lock();
            let _ = writeln!(error_out, "tagmatch: FI_TAGMATCH_STATS={}: {error}", to.display());
        }
    }
}

/// Write to a file, which others write to as well, or to a new one in a directory.
fn leave(to: &Path, report: &Report) -> std::io::Result<()> {
    let mut file = if to.is_dir() {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_.".contains(*letter);
        let host: String = report.host.chars().filter(is_plain).collect();
        let name = format!("{NAME}-{host}-{}-{}-{number}", report.pid, report.started);
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(to.join(name))?
    } else {
        OpenOptions::new().create(true).append(true).open(to)?
    };
    // One write, so that those of several processes do not mix.
    file.write_all(report.text().as_bytes())
}

/// Sealed when all is there: who reads knows that it is.
fn write_whole(text: &str) -> std::io::Result<File> {
    check_file_length(text.len() as u64)?;
    let name = CString::new(NAME)?;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(text.as_bytes())?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: no memory is passed.
    if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(file)
}

/// Whether a process is this user's.
fn is_own(pid: u32) -> bool {
    let user = |process: &str| fs::metadata(format!("/proc/{process}")).map(|of| of.uid()).ok();
    user(&pid.to_string()).is_some_and(|of| Some(of) == user("self"))
}

/// Field 22 of `/proc/PID/stat`, behind the name in brackets, which may hold anything.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Of the memory, in the name that the system shows.
pub const NAME: &str = "tagmatch-statistics";
/// Of a text that is read.
const LENGTH_MAX: u64 = 1 << 20;
/// Of the format.
const VERSION: &str = "2";
/// The last line.
const END: &str = "end";
/// What stands for the rank of a process that has none.
const NO_RANK: &str = "-";
/// Where those who start jobs say which rank a process has: PMIx (Open MPI, srun), Open MPI, PMI (MPICH), Slurm.
const RANKS: [&str; 4] = ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
/// How old a file may be while there is progress.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_other_text_is_not() {
        let counters = vec![("received".into(), 7)];
        for rank in [None, Some(3)] {
            let report = Report { rank, counters: counters.clone(), ..Report::own() };
            let text = report.text();
            assert_eq!(Report::parse(&text), Some(report.clone()));
            let without_end = text.strip_suffix("end\n").expect("it ends so");
            let both = text.clone() + &text;
            assert_eq!(Report::parse_all(&both), Some(vec![report.clone(), report.clone()]));
            for wrong in [
                without_end,
                &(text.clone() + without_end),
                &(text.clone() + "x"),
                &("\n".to_owned() + &text),
            ] {
                assert_eq!(Report::parse_all(wrong), None, "{wrong}");
            }
            let other = text.replace("statistics 2", "statistics 1");
            for wrong in [
                "",
                "tagmatch-statistics 2\n",
                &text.replace("received 7", "received many"),
                without_end,
                &other,
            ] {
                assert_eq!(Report::parse(wrong), None, "{wrong}");
            }
        }
    }

    #[test]
    fn each_domain_leaves_a_file_of_its_own_in_a_directory() {
        let folder = std::env::temp_dir().join(format!("tagmatch-statistics-test-{}", std::process::id()));
        fs::create_dir(&folder).expect("there is room");
        let report = |rank, host: &str| {
            let counters = vec![("marked".into(), u64::from(rank))];
            Report { rank: Some(rank), host: host.into(), counters, ..Report::own() }
        };
        // A name may be anything.
        for (rank, host) in [(10, "one"), (2, "../two")] {
            leave(&folder, &report(rank, host)).expect("there is room");
        }
        fs::write(folder.join("another"), "something else").expect("there is room");
        fs::create_dir(folder.join("folder")).expect("there is room");
        let left = reports_in(&folder);
        fs::remove_dir_all(&folder).expect("it is this test's");
        assert_eq!(left.expect("it is there"), [report(2, "../two"), report(10, "one")]);
        assert!(reports_in(&folder).is_err(), "it is gone");
    }

    #[test]
    fn what_is_shown_is_seen_whole_and_gone_with_its_descriptor() {
        let own = |marked: u64| {
            let is_it = |report: &Report| report.counters == [("marked".to_owned(), marked)];
            reports().into_iter().filter(is_it).collect::<Vec<_>>()
        };
        let report = |pid| Report { pid, counters: vec![("marked".into(), 77)], ..Report::own() };
        let shown = write_whole(&report(std::process::id()).text()).expect("there is memory");
        assert_eq!(own(77), [report(std::process::id())]);
        // Of a parent's, which whoever was forked has as well.
        let _parents = write_whole(&report(1).text()).expect("there is memory");
        assert_eq!(own(77).len(), 1);
        drop(shown);
        assert_eq!(own(77), []);
    }

    #[test]
    fn what_is_being_written_is_not_seen() {
        let name = CString::new(NAME).expect("no zero is in it");
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_ALLOW_SEALING) };
        // SAFETY: the descriptor is new and nobody else's.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let report = Report { counters: vec![("marked".into(), 78)], ..Report::own() };
        file.write_all(report.text().as_bytes()).expect("there is memory");
        assert!(reports().iter().all(|seen| seen.counters != report.counters));
    }
}
