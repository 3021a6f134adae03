//! What runs inside: the first program of a machine, and the session that makes the devices and runs the command.
//!
//! A session is a script of a shell, put together here for one run. What it leaves in the share is the protocol between
//! inside and outside: `ready` (the session has begun), `setup.log`, `started` (the devices are there, the command
//! begins), `out`, `err`, `files/` and last `rc`, which is the command's exit status, or "setup" if the devices could
//! not be made.

use crate::Options;
use crate::quote::{is_variable, quoted};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// What a session is to do.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) options: &'a Options,
    /// Which of the machines it is for, from 0.
    pub(crate) host: u32,
    /// Where the share is, seen from inside.
    pub(crate) share: PathBuf,
    /// Where the share of all machines is, seen from inside.
    pub(crate) common: PathBuf,
    /// Where its file systems are, seen from inside: nothing before `/proc`, but for tests.
    pub(crate) system: PathBuf,
    /// The environment of the command.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The directory in which it runs.
    pub(crate) directory: PathBuf,
}

impl Session<'_> {
    /// The script.
    pub(crate) fn script(&self) -> Vec<u8> {
        let mut script = Script::default();
        let options = self.options;
        script.line(&[b"#!/bin/sh"]);
        script.assign("PATH", PATH);
        script.line(&[b"export PATH"]);
        script.assign("system", &self.system);
        script.assign("share", &self.share);
        script.assign("common", &self.common);
        script.assign("host", self.host.to_string());
        script.assign("name", if options.hosts > 1 { format!("rxe-{}", self.host) } else { "rxe".into() });
        script.assign("mtu", options.mtu.to_string());
        script.assign("netem", options.netem.as_deref().unwrap_or_default());
        script.text(BEGIN);
        self.devices(&mut script);
        for (number, file) in options.files_in.iter().enumerate() {
            let from = self.share.join(format!("in/{number}"));
            let folder = file.inside.parent().map(|folder| folder.as_os_str().to_owned()).unwrap_or_default();
            script.line(&[b"step mkdir -p ", &quoted(folder)]);
            script.line(&[b"step cp ", &quoted(from), b" ", &quoted(&file.inside)]);
        }
        self.run(&mut script);
        script.text
    }

    /// The devices, and variables that tell of them.
    fn devices(&self, script: &mut Script) {
        script.text(DEVICE);
        script.text(if self.options.hosts > 1 { TWO_HOSTS } else { TWO_DEVICES });
    }

    /// The command, and what comes behind it.
    fn run(&self, script: &mut Script) {
        script.line(&[b": >\"$share/started\""]);
        script.line(&[b"("]);
        script.line(&[b"cd ", &quoted(&self.directory), b" || exit 126"]);
        for (name, value) in &self.environment {
            if is_variable(name) && !SET_INSIDE.iter().any(|inside| name == inside) {
                script.line(&[b"export ", name.as_bytes(), b"=", &quoted(value)]);
            }
        }
        let words: Vec<u8> =
            self.options.command.iter().flat_map(|word| [b" ".to_vec(), quoted(word)].concat()).collect();
        script.line(&[b"exec", &words]);
        script.line(&[b") </dev/null >\"$share/out\" 2>\"$share/err\""]);
        script.line(&[b"rc=$?"]);
        for (number, file) in self.options.files_out.iter().enumerate() {
            let to = self.share.join(format!("files/{number}"));
            script.line(&[
                b"[ ! -e ",
                &quoted(&file.inside),
                b" ] || cp -r ",
                &quoted(&file.inside),
                b" ",
                &quoted(to),
            ]);
        }
        script.line(&[b"finish $rc"]);
    }
}

#[derive(Default, Debug)]
struct Script {
    text: Vec<u8>,
}

impl Script {
    fn line(&mut self, parts: &[&[u8]]) {
        self.text.extend(parts.concat());
        self.text.push(b'\n');
    }

    fn text(&mut self, text: &str) {
        self.text.extend(text.as_bytes());
    }

    fn assign(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.line(&[name.as_bytes(), b"=", &quoted(value)]);
    }
}

/// Where programs are, whatever the person's PATH says; the command has that one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The first program of a machine that has its own kernel and modules.
pub(crate) const INIT: &str = include_str!("init.sh");
/// The first program of a Linux that is a process.
pub(crate) const UML_INIT: &str = include_str!("uml_init.sh");
/// Where the shares are, seen from inside.
pub(crate) const SHARE: &str = "/run/tagmatch-rxe";
pub(crate) const COMMON: &str = "/run/tagmatch-rxe-common";
const BEGIN: &str = include_str!("begin.sh");
const DEVICE: &str = include_str!("device.sh");
const TWO_DEVICES: &str = include_str!("two_devices.sh");
const TWO_HOSTS: &str = include_str!("two_hosts.sh");
/// Variables that the session has set itself, and that of a shell.
const SET_INSIDE: [&str; 8] = [
    "TAGMATCH_RXE_HOST",
    "TAGMATCH_RXE_SHARE",
    "TAGMATCH_RXE_DEVICES",
    "TAGMATCH_RXE_ADDRESSES",
    "TAGMATCH_RXE_INTERFACES",
    "TAGMATCH_RXE_GIDS",
    "PWD",
    "_",
];

#[cfg(test)]
mod tests;
