//! What makes an MPI use the provider, as variables with their reasons. Nothing is read or set here.

use super::kind::{Kind, Launcher};
use super::{TagLayout, command_line};
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

impl Setting {
    /// Whether it says over what messages go, and not who may start how many processes.
    pub(crate) fn is_about_messages(&self) -> bool {
        !PROCESSES.iter().any(|start| self.name.starts_with(start))
    }
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) layout: TagLayout,
    /// A value for FI_TAGMATCH_TM.
    pub(crate) offload: Option<String>,
    /// A value for FI_TAGMATCH_NET.
    pub(crate) network: Option<String>,
    /// A value for FI_TAGMATCH_DEVICE.
    pub(crate) device: Option<String>,
    /// A value for FI_TAGMATCH_STATS.
    pub(crate) statistics: Option<String>,
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
    let asked = [
        ("FI_TAGMATCH_TM", &wish.offload, "asked for with --tm"),
        ("FI_TAGMATCH_NET", &wish.network, "asked for with --net"),
        ("FI_TAGMATCH_DEVICE", &wish.device, "asked for with --device"),
        ("FI_TAGMATCH_STATS", &wish.statistics, "asked for with --stats"),
    ];
    for (name, value, why) in asked {
        if let Some(value) = value {
            list.replace(name, value, why);
        }
    }
    match launcher.kind {
        Kind::OpenMpi4 | Kind::OpenMpi5 => open_mpi(&mut list, launcher.kind, wish, arguments, host),
        Kind::Mpich => mpich(&mut list, wish.layout),
    }
    list.settings
}

/// Parameters of Open MPI can be variables, over which its command line wins.
fn open_mpi(list: &mut List<'_>, kind: Kind, wish: &Wish, arguments: &[OsString], host: &Host) {
    let has = |options: &[&str]| command_line::has(kind, arguments, options);
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
    if wish.may_be_root || (host.is_root && !has(&["--allow-run-as-root", "-allow-run-as-root"])) {
        let why = if wish.may_be_root { "asked for" } else { "mpirun refuses root otherwise" };
        list.set("OMPI_ALLOW_RUN_AS_ROOT", "1", why);
        list.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", why);
    }
    let processes = command_line::processes(kind, arguments);
    let is_too_many = processes > host.cores && !has(&PLACES) && !host.is_managed;
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
    list.set(
        "FI_TAGMATCH_LIST_RMA",
        "1",
        "it takes remote memory access where it is listed, and fails without in longer puts",
    );
}

/// The command line of mpirun. Open MPI's hands no variables but its own to processes on other machines, so that it is
/// told the provider's: those that are set here, and those among `before`, which were. (MPICH's hands on all.) Where the
/// user gives Open MPI a list of variables, it takes no others, and the list is left to the user.
pub(crate) fn forwarding(
    launcher: &Launcher,
    settings: &[Setting],
    before: &[String],
    arguments: &[OsString],
) -> Vec<OsString> {
    if launcher.kind == Kind::Mpich || before.iter().any(|name| name == LIST) {
        return arguments.to_vec();
    }
    let ours = settings.iter().map(|setting| setting.name.as_str()).filter(|name| name.starts_with("FI_"));
    let theirs = before.iter().map(String::as_str).filter(|name| name.starts_with(PARAMETERS));
    let mut names: Vec<&str> = Vec::new();
    for name in ours.chain(theirs) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    command_line::handing_on(launcher.kind, &names, arguments)
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
/// How the provider's parameters begin.
pub(crate) const PARAMETERS: &str = "FI_TAGMATCH_";
/// Open MPI's own list of variables to hand on. 4.1 refuses to start with both that and `-x`.
const LIST: &str = "OMPI_MCA_mca_base_env_list";
/// How names of variables begin that are about processes.
const PROCESSES: [&str; 4] =
    ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_MCA_rmaps", "PRTE_MCA_rmaps", "OMPI_MCA_mpi_yield_when_idle"];
/// What says where processes go or how many a machine takes.
const PLACES: [&str; 14] = [
    "-H",
    "-host",
    "--host",
    "-hostfile",
    "--hostfile",
    "-machinefile",
    "--machinefile",
    "-default-hostfile",
    "--default-hostfile",
    "--oversubscribe",
    "-oversubscribe",
    "--nooversubscribe",
    "--map-by",
    "-map-by",
];

#[cfg(test)]
mod tests;
