//! What makes an MPI use the provider, as variables with their reasons. Nothing is read or set here.

use super::kind::{Kind, Launcher};
use super::{TagLayout, is_named};
use serde::Serialize;
use std::ffi::OsString;

/// One variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Setting {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: String,
    /// What it is for.
    pub(crate) why: &'static str,
    /// It was set before, and stays.
    pub(crate) is_kept: bool,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) layout: TagLayout,
    /// A value for FI_TAGMATCH_TM.
    pub(crate) offload: Option<String>,
    pub(crate) may_be_root: bool,
    pub(crate) oversubscribe: bool,
}

/// The machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) is_root: bool,
    /// How many processes Open MPI starts here unless told otherwise.
    pub(crate) cores: usize,
    /// A job manager says how many instead.
    pub(crate) is_managed: bool,
}

/// All that has to be set. `variable` gives the value of a variable that is set already.
pub(crate) fn of(
    launcher: &Launcher,
    provider: &str,
    wish: &Wish,
    arguments: &[OsString],
    host: &Host,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let mut list = List { settings: Vec::new(), variable };
    list.replace("FI_PROVIDER_PATH", provider, "where libfabric finds the provider");
    if let Some(offload) = &wish.offload {
        list.replace("FI_TAGMATCH_TM", offload, "asked for with --tm");
    }
    match launcher.kind {
        Kind::OpenMpi4 | Kind::OpenMpi5 => open_mpi(&mut list, launcher.kind, wish, arguments, host),
        Kind::Mpich => mpich(&mut list, wish.layout),
    }
    list.settings
}

/// Parameters of Open MPI can be variables, over which its command line wins.
fn open_mpi(list: &mut List<'_>, kind: Kind, wish: &Wish, arguments: &[OsString], host: &Host) {
    list.set("OMPI_MCA_pml", "cm", "messages go through a matching transport layer");
    list.set("OMPI_MCA_mtl", "ofi", "which is libfabric");
    // The first until 4.1, the second since 5.
    let include = if kind == Kind::OpenMpi4 { "OMPI_MCA_mtl_ofi_provider_include" } else { INCLUDE_SINCE_5 };
    list.set(include, PROVIDER, "with this provider");
    let mode = match wish.layout {
        TagLayout::Auto => None,
        TagLayout::SourceInTag => Some("ofi_tag_1"),
        TagLayout::SourceApart => Some("ofi_tag_full"),
    };
    if let Some(mode) = mode {
        list.set("OMPI_MCA_mtl_ofi_tag_mode", mode, "asked for with --layout");
    }
    if wish.may_be_root || (host.is_root && !is_named(arguments, "--allow-run-as-root")) {
        let why = if wish.may_be_root { "asked for" } else { "mpirun refuses root otherwise" };
        list.set("OMPI_ALLOW_RUN_AS_ROOT", "1", why);
        list.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", why);
    }
    let is_too_many = processes(arguments) > host.cores && !is_placed(arguments) && !host.is_managed;
    if wish.oversubscribe || is_too_many {
        let why = if wish.oversubscribe {
            "asked for"
        } else {
            "mpirun refuses more processes than cores otherwise"
        };
        let (name, value) = if kind == Kind::OpenMpi4 {
            ("OMPI_MCA_rmaps_base_oversubscribe", "1")
        } else {
            ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
        };
        list.set(name, value, why);
        list.set(
            "OMPI_MCA_mpi_yield_when_idle",
            "1",
            "processes that share a core give it up while they wait",
        );
    }
}

/// MPICH puts the source into the tag only where the provider offers no directed receives or no completion data, and takes
/// no provider without the latter; its own variable for that has no
/// effect (seen with 5.0.2).
fn mpich(list: &mut List<'_>, layout: TagLayout) {
    let directed = match layout {
        TagLayout::Auto => None,
        TagLayout::SourceInTag => Some("0"),
        TagLayout::SourceApart => Some("1"),
    };
    if let Some(directed) = directed {
        list.replace("FI_TAGMATCH_DIRECTED_RECV", directed, "asked for with --layout");
    }
    list.set("MPIR_CVAR_CH4_NETMOD", "ofi", "messages go through libfabric");
    list.set("FI_PROVIDER", PROVIDER, "with this provider");
    list.set("MPIR_CVAR_NOLOCAL", "1", "between processes of one machine too");
}

/// Arguments of Open MPI's mpirun that hand the provider's variables to processes on other machines. (Its own it hands
/// on by itself, as MPICH's does with all.)
pub(crate) fn forwarding(launcher: &Launcher, settings: &[Setting], arguments: &[OsString]) -> Vec<OsString> {
    if launcher.kind == Kind::Mpich {
        return Vec::new();
    }
    let names = settings.iter().map(|setting| setting.name.as_str()).filter(|name| name.starts_with("FI_"));
    let not_theirs = names.filter(|name| !is_named(arguments, name));
    not_theirs.flat_map(|name| ["-x".into(), name.into()]).collect()
}

/// How many processes the command line asks for: the sum over its programs, 0 if it does not say.
fn processes(arguments: &[OsString]) -> usize {
    let counts =
        arguments.windows(2).filter(|pair| pair[0].to_str().is_some_and(|name| COUNTS.contains(&name)));
    counts.filter_map(|pair| pair[1].to_str()?.parse::<usize>().ok()).sum()
}

/// Whether the command line says where processes go or how many a machine takes.
fn is_placed(arguments: &[OsString]) -> bool {
    PLACES.iter().any(|name| is_named(arguments, name))
}

/// Settings under way.
struct List<'a> {
    settings: Vec<Setting>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl List<'_> {
    /// Set it unless it is set already.
    fn set(&mut self, name: &str, value: &str, why: &'static str) {
        let before = (self.variable)(name);
        let is_kept = before.is_some();
        let value = before.unwrap_or_else(|| value.to_owned());
        self.settings.push(Setting { name: name.to_owned(), value, why, is_kept });
    }

    /// Set it whatever it is.
    fn replace(&mut self, name: &str, value: &str, why: &'static str) {
        let is_kept = (self.variable)(name).as_deref() == Some(value);
        self.settings.push(Setting { name: name.to_owned(), value: value.to_owned(), why, is_kept });
    }
}

const PROVIDER: &str = "tagmatch";
const INCLUDE_SINCE_5: &str = "OMPI_MCA_opal_common_ofi_provider_include";
const COUNTS: [&str; 5] = ["-n", "-np", "--np", "-c", "--n"];
const PLACES: [&str; 11] = [
    "-H",
    "-host",
    "--host",
    "-hostfile",
    "--hostfile",
    "-machinefile",
    "--machinefile",
    "--oversubscribe",
    "-oversubscribe",
    "--map-by",
    "-map-by",
];

#[cfg(test)]
mod tests;
