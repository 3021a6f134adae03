//! Which variables each MPI gets, for which wishes.

use super::*;
use std::path::PathBuf;

const QUIET: Host = Host { is_root: false, cores: 8, is_managed: false };

fn launcher(kind: Kind) -> Launcher {
    Launcher { path: PathBuf::from("mpirun"), kind, version: String::new() }
}

fn given(kind: Kind, wish: &Wish, arguments: &[&str], host: Host, before: &[(&str, &str)]) -> Vec<String> {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let variable = |name: &str| {
        let found = before.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let settings = of(&launcher(kind), "/p", wish, &arguments, &host, &variable);
    let line = |setting: &Setting| {
        format!("{}={}{}", setting.name, setting.value, if setting.is_kept { " kept" } else { "" })
    };
    settings.iter().map(line).collect()
}

fn has(settings: &[String], what: &str) -> bool {
    settings.iter().any(|setting| setting.contains(what))
}

fn offloading() -> Wish {
    Wish { offload: Some("soft".into()), ..Wish::default() }
}

#[test]
fn each_mpi_is_led_to_the_provider_in_its_own_words() {
    let four = given(Kind::OpenMpi4, &Wish::default(), &["-n", "2", "a"], QUIET, &[]);
    let words = ["FI_PROVIDER_PATH=/p", "OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi"];
    assert_eq!(four[..3], words);
    assert_eq!(four[3..], ["OMPI_MCA_mtl_ofi_provider_include=tagmatch"]);
    let five = given(Kind::OpenMpi5, &Wish::default(), &["-n", "2", "a"], QUIET, &[]);
    assert_eq!(five[..3], words);
    assert_eq!(five[3..], ["OMPI_MCA_opal_common_ofi_provider_include=tagmatch"]);
    let mpich = given(Kind::Mpich, &Wish::default(), &["-n", "2", "a"], QUIET, &[]);
    let words = [
        "FI_PROVIDER_PATH=/p",
        "MPIR_CVAR_CH4_NETMOD=ofi",
        "FI_PROVIDER=tagmatch",
        "MPIR_CVAR_NOLOCAL=1",
        "FI_TAGMATCH_LIST_RMA=1",
    ];
    assert_eq!(mpich, words);
}

#[test]
fn the_layout_stays_the_mpis_own_unless_one_is_asked_for() {
    let four = given(Kind::OpenMpi4, &offloading(), &[], QUIET, &[]);
    assert!(has(&four, "FI_TAGMATCH_TM=soft") && !has(&four, "tag_mode"), "{four:?}");
}

#[test]
fn a_network_and_a_device_that_are_asked_for_are_handed_on() {
    let wish = Wish { network: Some("verbs".into()), device: Some("mlx5_1".into()), ..Wish::default() };
    for kind in [Kind::OpenMpi4, Kind::OpenMpi5, Kind::Mpich] {
        let all = given(kind, &wish, &[], QUIET, &[("FI_TAGMATCH_NET", "tcp")]);
        assert!(has(&all, "FI_TAGMATCH_NET=verbs") && has(&all, "FI_TAGMATCH_DEVICE=mlx5_1"), "{all:?}");
        assert!(!has(&all, "kept"), "{all:?}");
    }
}

#[test]
fn a_layout_that_is_asked_for_is_taken_whatever_the_device() {
    let apart = Wish { layout: TagLayout::SourceApart, ..offloading() };
    let four = given(Kind::OpenMpi4, &apart, &[], QUIET, &[]);
    assert!(has(&four, "OMPI_MCA_mtl_ofi_tag_mode=ofi_tag_full"), "{four:?}");
    let within = Wish { layout: TagLayout::SourceInTag, ..Wish::default() };
    let five = given(Kind::OpenMpi5, &within, &[], QUIET, &[]);
    assert!(has(&five, "OMPI_MCA_mtl_ofi_tag_mode=ofi_tag_1"), "{five:?}");
}

#[test]
fn mpich_puts_the_source_into_the_tag_where_there_are_no_directed_receives() {
    let of = |layout| {
        let wish = Wish { layout, ..Wish::default() };
        given(Kind::Mpich, &wish, &[], QUIET, &[("FI_TAGMATCH_DIRECTED_RECV", "1")])
    };
    assert!(has(&of(TagLayout::SourceInTag), "FI_TAGMATCH_DIRECTED_RECV=0"));
    assert!(has(&of(TagLayout::SourceApart), "FI_TAGMATCH_DIRECTED_RECV=1 kept"));
    assert!(!has(&of(TagLayout::Auto), "DIRECTED_RECV"));
    assert!(has(&of(TagLayout::Auto), "FI_TAGMATCH_LIST_RMA=1"));
    assert!(!has(&given(Kind::OpenMpi5, &Wish::default(), &[], QUIET, &[]), "LIST_RMA"));
}

#[test]
fn what_is_set_already_stays_except_what_was_asked_for() {
    let before = [("OMPI_MCA_pml", "ob1"), ("FI_TAGMATCH_TM", "off")];
    let four = given(Kind::OpenMpi4, &offloading(), &[], QUIET, &before);
    assert!(has(&four, "OMPI_MCA_pml=ob1 kept") && has(&four, "FI_TAGMATCH_TM=soft"), "{four:?}");
}

#[test]
fn root_and_too_many_processes_are_allowed_only_where_mpirun_would_refuse() {
    let small = Host { is_root: true, cores: 2, is_managed: false };
    let four = given(Kind::OpenMpi4, &Wish::default(), &["-n", "4", "a"], small, &[]);
    assert!(has(&four, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), "{four:?}");
    assert!(has(&four, "OMPI_MCA_rmaps_base_oversubscribe=1"), "{four:?}");
    let five = given(Kind::OpenMpi5, &Wish::default(), &["-np", "1", "a", ":", "-n", "2", "b"], small, &[]);
    assert!(has(&five, "OMPI_ALLOW_RUN_AS_ROOT=1") && has(&five, ":oversubscribe"), "{five:?}");
    for arguments in [&["-n", "2", "a"][..], &["-n", "4", "--host", "a:4,b:4", "a"], &["a"]] {
        let four = given(Kind::OpenMpi4, &Wish::default(), arguments, small, &[]);
        assert!(!has(&four, "oversubscribe"), "{arguments:?}: {four:?}");
    }
    let managed = Host { is_root: false, is_managed: true, ..small };
    let four = given(Kind::OpenMpi4, &Wish::default(), &["-n", "4", "a"], managed, &[]);
    assert!(!has(&four, "oversubscribe") && !has(&four, "ROOT"), "{four:?}");
    let mpich = given(Kind::Mpich, &Wish::default(), &["-n", "4", "a"], small, &[]);
    assert!(!has(&mpich, "oversubscribe") && !has(&mpich, "ROOT"), "{mpich:?}");
}

#[test]
fn open_mpi_hands_on_the_providers_variables_unless_the_user_does() {
    let arguments = ["-x", "FI_PROVIDER_PATH=/other", "a"].map(OsString::from);
    let four = launcher(Kind::OpenMpi4);
    let settings = of(&four, "/p", &offloading(), &arguments, &QUIET, &|_| None);
    assert_eq!(
        forwarding(&four, &settings, &[], &arguments),
        ["-x", "FI_TAGMATCH_TM", "-x", "FI_PROVIDER_PATH=/other", "a"]
    );
    let both = ["-x", "FI_PROVIDER_PATH", "-x", "FI_TAGMATCH_TM"];
    assert_eq!(forwarding(&launcher(Kind::OpenMpi5), &settings, &[], &[]), both);
    assert_eq!(forwarding(&launcher(Kind::Mpich), &settings, &[], &arguments), arguments);
    let list = ["OMPI_MCA_mca_base_env_list".to_owned()];
    assert_eq!(forwarding(&four, &settings, &list, &arguments), arguments, "it would refuse both");
}

#[test]
fn open_mpi_hands_on_every_parameter_of_the_provider_that_was_set_before() {
    let four = launcher(Kind::OpenMpi4);
    let settings = of(&four, "/p", &offloading(), &[], &QUIET, &|_| None);
    let before = ["FI_TAGMATCH_IFACE", "FI_TAGMATCH_TM", "HOME"].map(String::from);
    let all = ["-x", "FI_PROVIDER_PATH", "-x", "FI_TAGMATCH_TM", "-x", "FI_TAGMATCH_IFACE"];
    assert_eq!(forwarding(&four, &settings, &before, &[]), all);
    let theirs = ["-x", "FI_TAGMATCH_IFACE", "a"].map(OsString::from);
    let with_theirs = [&all[..4], &["-x", "FI_TAGMATCH_IFACE", "a"]].concat();
    assert_eq!(forwarding(&four, &settings, &before, &theirs), with_theirs);
}

#[test]
fn what_stands_behind_a_programs_name_is_the_programs() {
    let small = Host { is_root: true, cores: 2, is_managed: false };
    let of = |arguments: &[&str]| given(Kind::OpenMpi4, &Wish::default(), arguments, small, &[]);
    let four = of(&["-n", "4", "--mca", "btl", "self", "a", "--host", "b", "--allow-run-as-root"]);
    assert!(has(&four, "oversubscribe") && has(&four, "RUN_AS_ROOT"), "{four:?}");
    let one = of(&["-n", "1", "a", "-n", "9"]);
    assert!(!has(&one, "oversubscribe"), "{one:?}");
    let second = of(&["-x", "A=1", "-n", "1", "a", "-n", "9", ":", "--allow-run-as-root", "-n", "2", "b"]);
    assert!(has(&second, "oversubscribe") && !has(&second, "RUN_AS_ROOT"), "{second:?}");
    let settings = super::of(&launcher(Kind::OpenMpi4), "/p", &Wish::default(), &[], &small, &|_| None);
    let arguments = ["-n", "2", "a", "FI_PROVIDER_PATH=/other"].map(OsString::from);
    let forwarded = forwarding(&launcher(Kind::OpenMpi4), &settings, &[], &arguments);
    assert_eq!(forwarded[..3], ["-x", "FI_PROVIDER_PATH", "-n"]);
}
