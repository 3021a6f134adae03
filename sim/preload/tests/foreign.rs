//! Programs of others, unmodified, on the simulated card: rdma-core's examples and perftest.
//!
//! Not here: whether what they measure is realistic. It is not; these are the numbers of a model.

mod common;

use common::Fabric;

#[test]
fn ibv_devices_lists_the_card() {
    let list = Fabric::new("devices").run(&["ibv_devices"]);
    assert!(list.contains("mlx5_0"), "{list}");
}

#[test]
fn ibv_devinfo_shows_the_card_with_its_port() {
    let info = Fabric::new("devinfo").run(&["ibv_devinfo", "-v"]);
    for part in [
        "hca_id:\tmlx5_0",
        "PORT_ACTIVE",
        "link_layer:\t\tInfiniBand",
        "vendor_part_id:\t\t\t4119",
        "GID[  0]",
    ] {
        assert!(info.contains(part), "{part} is not in\n{info}");
    }
}

#[test]
fn ibv_devinfo_shows_how_many_tags_the_card_matches() {
    let info = Fabric::with_options("devinfo-tags", "tags=127").run(&["ibv_devinfo", "-v"]);
    assert!(info.contains("max_num_tags:\t\t\t127"), "{info}");
}

#[test]
fn ibv_devinfo_shows_an_ethernet_port() {
    let info = Fabric::with_options("devinfo-roce", "link=ethernet").run(&["ibv_devinfo", "-v"]);
    assert!(info.contains("link_layer:\t\tEthernet"), "{info}");
    assert!(info.contains("RoCE v2"), "{info}");
}

#[test]
fn ibv_devinfo_shows_a_card_that_does_not_match() {
    let info = Fabric::with_options("devinfo-none", "tags=0").run(&["ibv_devinfo", "-v"]);
    assert!(info.contains("PORT_ACTIVE"), "{info}");
    assert!(!info.contains("max_num_tags"), "{info}");
}

#[test]
fn options_that_make_no_sense_are_named_and_nothing_runs() {
    let fabric = Fabric::with_options("wrong-option", "A1=perhaps");
    let output = fabric.program(&["ibv_devices"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("A1 cannot be \"perhaps\"; there is A1=only-at-append"), "{said}");
}

/// Run one of rdma-core's ping-pongs.
fn pingpong(name: &str, program: &str, options: &[&str]) {
    pingpong_on(&Fabric::new(name), program, options);
}

fn pingpong_on(fabric: &Fabric, program: &str, options: &[&str]) {
    let mut server = vec![program, "-d", "mlx5_0", "-p", "PORT"];
    server.extend(options);
    let mut client = server.clone();
    client.push("127.0.0.1");
    let (served, asked) = fabric.pair(&server, &client);
    for said in [served, asked] {
        assert!(said.contains(" iters in "), "{said}");
    }
}

#[test]
fn ibv_rc_pingpong_works() {
    pingpong("rc", "ibv_rc_pingpong", &["-n", "200"]);
}

#[test]
fn ibv_rc_pingpong_works_with_events() {
    pingpong("rc-events", "ibv_rc_pingpong", &["-n", "200", "-e"]);
}

#[test]
fn ibv_rc_pingpong_checks_messages_of_many_packets() {
    pingpong("rc-long", "ibv_rc_pingpong", &["-n", "50", "-s", "100000", "-m", "2048", "-c"]);
}

#[test]
fn ibv_rc_pingpong_works_with_a_device_wide_address() {
    pingpong("rc-gid", "ibv_rc_pingpong", &["-n", "100", "-g", "0"]);
}

#[test]
fn ibv_srq_pingpong_works() {
    pingpong("srq", "ibv_srq_pingpong", &["-n", "200"]);
}

#[test]
fn ibv_srq_pingpong_works_with_events() {
    pingpong("srq-events", "ibv_srq_pingpong", &["-n", "200", "-e", "-q", "4"]);
}

#[test]
fn ibv_ud_pingpong_works() {
    pingpong("ud", "ibv_ud_pingpong", &["-n", "200", "-s", "1024"]);
}

#[test]
fn ibv_ud_pingpong_works_with_events() {
    pingpong("ud-events", "ibv_ud_pingpong", &["-n", "200", "-s", "1024", "-e"]);
}

#[test]
fn ping_pongs_work_over_ethernet() {
    let fabric = Fabric::with_options("roce", "link=ethernet");
    pingpong_on(&fabric, "ibv_rc_pingpong", &["-n", "100", "-g", "0"]);
    pingpong_on(&fabric, "ibv_ud_pingpong", &["-n", "100", "-g", "0", "-s", "1024"]);
}

#[test]
fn a_process_whose_peer_is_killed_is_told_by_its_completions() {
    let fabric = Fabric::new("killed");
    let server = ["ib_write_bw", "-d", "mlx5_0", "-p", "PORT", "-F", "-D", "50"];
    let said = fabric.survivor(&server, &[&server[..], &["127.0.0.1"]].concat(), "#bytes");
    // IBV_WC_RETRY_EXC_ERR
    assert!(said.contains("Failed status 12"), "{said}");
}

#[test]
fn ibv_xsrq_pingpong_is_told_that_there_is_no_xrc() {
    let fabric = Fabric::new("xsrq");
    let output = fabric.program(&["ibv_xsrq_pingpong", "-d", "mlx5_0"]).output().unwrap();
    assert!(!output.status.success());
    assert_ne!(output.status.code(), Some(124), "it is refused and does not hang");
    assert_ne!(output.status.code(), None, "it is refused and does not crash");
}

/// Run one of perftest's programs.
fn perftest(name: &str, program: &str, options: &[&str]) {
    let fabric = Fabric::new(name);
    let mut server = vec![program, "-d", "mlx5_0", "-p", "PORT", "-F"];
    server.extend(options);
    let mut client = server.clone();
    client.push("127.0.0.1");
    let (_, asked) = fabric.pair(&server, &client);
    assert!(asked.contains("#bytes"), "{asked}");
}

#[test]
fn ib_send_lat_works() {
    perftest("send-lat", "ib_send_lat", &["-n", "200"]);
}

#[test]
fn ib_send_bw_works() {
    perftest("send-bw", "ib_send_bw", &["-n", "300"]);
}

// Not the latency tests: those of 2022 take each event for a completion that has not been polled yet, which an event
// that was asked for before polling need not be.
#[test]
fn ib_send_bw_works_with_events() {
    perftest("send-bw-events", "ib_send_bw", &["-n", "300", "-e"]);
}

#[test]
fn ib_read_bw_works_with_events() {
    perftest("read-bw-events", "ib_read_bw", &["-n", "300", "-e"]);
}

#[test]
fn ib_send_bw_works_over_ud() {
    perftest("send-bw-ud", "ib_send_bw", &["-n", "300", "-c", "UD", "-s", "1024"]);
}

#[test]
fn ib_send_bw_works_both_ways_at_once() {
    perftest("send-bw-both", "ib_send_bw", &["-n", "300", "-b"]);
}

#[test]
fn ib_send_bw_works_with_a_shared_receive_queue_of_many_qps() {
    perftest("send-bw-srq", "ib_send_bw", &["-n", "100", "-q", "8", "--use-srq"]);
}

#[test]
fn ib_write_lat_works() {
    perftest("write-lat", "ib_write_lat", &["-n", "200"]);
}

#[test]
fn ib_write_bw_works() {
    perftest("write-bw", "ib_write_bw", &["-n", "300"]);
}

#[test]
fn ib_read_lat_works() {
    perftest("read-lat", "ib_read_lat", &["-n", "200"]);
}

#[test]
fn ib_read_bw_works() {
    perftest("read-bw", "ib_read_bw", &["-n", "300"]);
}

#[test]
fn ib_atomic_lat_adds_and_compares() {
    perftest("atomic-add", "ib_atomic_lat", &["-n", "200", "-A", "FETCH_AND_ADD"]);
    perftest("atomic-swap", "ib_atomic_lat", &["-n", "200", "-A", "CMP_AND_SWAP"]);
}

#[test]
fn ib_atomic_bw_works() {
    perftest("atomic-bw", "ib_atomic_bw", &["-n", "300"]);
}
