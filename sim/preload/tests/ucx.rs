//! UCX, unmodified, on the simulated card. Its mlx5 transports write the work requests and read the completions
//! themselves, beside libmlx5, and ask for more of a card than there is here (DEVX, memory on the device), which has to
//! be refused so that they go on without.

mod common;

use common::Fabric;

#[test]
fn ucx_finds_its_transports_on_the_card() {
    let info = Fabric::new("ucx-info").run(&["ucx_info", "-d"]);
    for transport in ["rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5"] {
        assert!(info.contains(&format!("Transport: {transport}\n")), "{transport} is not in\n{info}");
    }
    assert!(info.contains("Device: mlx5_0:1"), "{info}");
}

/// Run one of ucx_perftest's tests over the transports: what both sides wrote.
fn perftest(name: &str, transports: &str, environment: &[(&str, &str)], test: &[&str]) -> String {
    let mut fabric = Fabric::new(name);
    fabric.set("UCX_TLS", transports);
    fabric.set("UCX_NET_DEVICES", "mlx5_0:1");
    for (name, value) in environment {
        fabric.set(name, value);
    }
    let mut client = vec!["ucx_perftest", "127.0.0.1", "-p", "PORT", "-n", "200"];
    client.extend(test);
    let (served, said) = fabric.pair(&["ucx_perftest", "-p", "PORT"], &client);
    assert!(said.contains("Final:"), "{said}");
    served + &said
}

/// Small messages there and back, long ones one way, memory of the other side.
fn reliable(name: &str, transports: &str) {
    perftest(name, transports, &[], &["-t", "tag_lat", "-s", "8"]);
    perftest(name, transports, &[], &["-t", "tag_bw", "-s", "100000"]);
    perftest(name, transports, &[], &["-t", "ucp_put_lat", "-s", "20000"]);
    perftest(name, transports, &[], &["-t", "ucp_get", "-s", "20000"]);
    perftest(name, transports, &[], &["-t", "ucp_fadd", "-s", "8"]);
}

#[test]
fn ucx_works_over_rc_by_verbs() {
    reliable("ucx-rc-verbs", "rc_v");
}

#[test]
fn ucx_works_over_rc_by_work_requests_of_its_own() {
    reliable("ucx-rc-mlx5", "rc_x");
}

#[test]
fn ucx_works_over_ud_by_verbs() {
    perftest("ucx-ud-verbs", "ud_v", &[], &["-t", "tag_lat", "-s", "8"]);
    perftest("ucx-ud-verbs", "ud_v", &[], &["-t", "tag_bw", "-s", "20000"]);
}

#[test]
fn ucx_works_over_ud_by_work_requests_of_its_own() {
    perftest("ucx-ud-mlx5", "ud_x", &[], &["-t", "tag_lat", "-s", "8"]);
    perftest("ucx-ud-mlx5", "ud_x", &[], &["-t", "tag_bw", "-s", "20000"]);
}

/// Over a TM-SRQ that UCX makes and drives by list operations of its own.
fn tag_matching(name: &str, size: &str, test: &str) {
    let environment = [("UCX_RC_TM_ENABLE", "y"), ("UCX_TM_THRESH", "64"), ("UCX_LOG_LEVEL", "debug")];
    let said = perftest(name, "rc_x", &environment, &["-t", test, "-s", size]);
    let about = |line: &&str| line.contains("offload") || line.contains("Tag Matching");
    let about: Vec<&str> = said.lines().filter(about).collect();
    assert!(
        about.iter().any(|line| line.contains("Activate tag offload")),
        "the card did not match: {about:?}"
    );
}

#[test]
fn ucx_lets_the_card_match_eager_messages() {
    tag_matching("ucx-tm-eager", "2000", "tag_lat");
    tag_matching("ucx-tm-eager", "2000", "tag_bw");
}

#[test]
fn ucx_lets_the_card_match_rendezvous() {
    tag_matching("ucx-tm-rendezvous", "200000", "tag_lat");
    tag_matching("ucx-tm-rendezvous", "200000", "tag_bw");
}
