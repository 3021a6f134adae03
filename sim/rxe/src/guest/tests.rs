//! The scripts that run inside, run here over stand-ins.

use super::*;
use crate::Moved;
use crate::place::RunDirectory;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

fn options() -> Options {
    Options { command: ["echo", "it's", ""].map(Into::into).to_vec(), ..crate::tests::options() }
}

fn session<'a>(options: &'a Options, host: u32, share: &Path) -> Session<'a> {
    Session {
        options,
        host,
        share: share.into(),
        common: share.into(),
        system: PathBuf::new(),
        environment: vec![
            ("GREETING".into(), "a 'b' $c".into()),
            ("BASH_FUNC_x%%".into(), "() { :; }".into()),
            ("TAGMATCH_RXE_DEVICES".into(), "of outside".into()),
        ],
        directory: share.into(),
    }
}

/// What programs are asked to do by the part of a script that makes devices, over the file systems of a machine that
/// are made of files; and the variables that tell of the devices.
fn devices(options: &Options, host: u32) -> (Vec<String>, String) {
    let folder = RunDirectory::new().unwrap();
    let path = folder.path();
    let [system, share, programs] = ["system", "share", "programs"].map(|name| path.join(name));
    for folder in [&share, &programs, &system.join("etc"), &system.join("sys/class/net/eth0")] {
        fs::create_dir_all(folder).unwrap();
    }
    for interface in ["all", "v0", "v1"] {
        fs::create_dir_all(system.join("proc/sys/net/ipv4/conf").join(interface)).unwrap();
    }
    for (device, address) in [("rxe0", "0001"), ("rxe1", "0101")] {
        let port = system.join("sys/class/infiniband").join(device).join("ports/1");
        let (gids, types) = (port.join("gids"), port.join("gid_attrs/types"));
        fs::create_dir_all(&gids).unwrap();
        fs::create_dir_all(&types).unwrap();
        fs::write(port.join("state"), "4: ACTIVE\n").unwrap();
        for (index, kind) in [(0, "RoCE v2"), (1, "IB/RoCE v1"), (2, "RoCE v2")] {
            let gid = if index == 0 {
                "fe80::".into()
            } else {
                format!("0000:0000:0000:0000:0000:ffff:0a09:{address}")
            };
            fs::write(gids.join(index.to_string()), gid + "\n").unwrap();
            fs::write(types.join(index.to_string()), format!("{kind}\n")).unwrap();
        }
    }
    for program in ["ip", "rdma", "tc"] {
        let log = path.join("log");
        let log = log.display();
        let script = format!(
            "#!/bin/sh\ncase $1 in -b*) sed 's/^/{program} /' $2 >>'{log}';; *) echo {program} \"$@\" >>'{log}';; esac\n"
        );
        fs::write(programs.join(program), script).unwrap();
        fs::set_permissions(programs.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    // The other machine is there.
    fs::write(share.join(format!("up.{}", 1 - host)), "").unwrap();
    let mut script = Script::default();
    let variables = [("system", &system), ("share", &share), ("common", &share)];
    variables.iter().for_each(|(name, value)| script.assign(name, value));
    script.text(&format!("PATH='{}':$PATH\nhost={host}\nname=rxe\nmtu=9000\nset -u\n", programs.display()));
    script.assign("netem", options.netem.as_deref().unwrap_or_default());
    script.text("step() { \"$@\" || exit 1; }\nuntil_true() { \"$@\" >&2; }\n");
    session(options, host, &share).devices(&mut script);
    script.text("env | grep ^TAGMATCH_RXE_ | sort\n");
    let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script.text)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let log = fs::read_to_string(path.join("log")).unwrap();
    let variables = String::from_utf8(output.stdout).unwrap();
    let variables = variables.replace(&share.display().to_string(), "SHARE").replace("TAGMATCH_RXE_", "");
    (log.lines().map(str::to_owned).collect(), variables)
}

#[test]
fn scripts_are_ones_that_a_shell_can_read() {
    for hosts in [1, 2] {
        let options = Options { hosts, netem: Some("delay 2ms loss 1%".into()), ..options() };
        let folder = RunDirectory::new().unwrap();
        let file = folder.path().join("session");
        fs::write(&file, session(&options, 0, folder.path()).script()).unwrap();
        assert!(Command::new("sh").arg("-n").arg(&file).status().unwrap().success());
        fs::write(&file, INIT).unwrap();
        assert!(Command::new("sh").arg("-n").arg(&file).status().unwrap().success());
    }
}

#[test]
fn each_address_is_routed_over_the_cable_before_the_rule_that_keeps_packets_here() {
    let (lines, variables) = devices(&Options { netem: Some("loss 1%".into()), ..options() }, 0);
    let place = |text: &str| lines.iter().position(|line| line == text);
    let order = [
        "ip link add v0 type veth peer name v1",
        "ip link set v0 mtu 9000 up",
        "ip rule add pref 10 iif lo to 10.9.1.1 lookup 101",
        "ip rule add pref 13 oif v1 to 10.9.0.1 lookup 102",
        "ip route add 10.9.0.1 dev v1 src 10.9.1.1 table 102",
        "ip rule add pref 20 lookup local",
        "ip rule del pref 0",
        "rdma link add rxe0 type rxe netdev v0",
        "rdma link add rxe1 type rxe netdev v1",
        "tc qdisc add dev v0 root netem loss 1%",
        "tc qdisc add dev v1 root netem loss 1%",
    ];
    let places: Option<Vec<usize>> = order.iter().map(|line| place(line)).collect();
    assert!(places.is_some_and(|places| places.is_sorted()), "{lines:#?}");
    assert_eq!(
        variables, "ADDRESSES=10.9.0.1 10.9.1.1\nDEVICES=rxe0 rxe1\nGIDS=2 2\nINTERFACES=v0 v1\n",
        "the GID of RoCE v2 and of the address"
    );
}

#[test]
fn each_of_two_machines_knows_its_own_address_first() {
    let (lines, variables) = devices(&Options { hosts: 2, ..options() }, 0);
    assert!(lines.contains(&"ip address add 10.9.0.1/24 dev eth0".into()), "{lines:#?}");
    assert!(lines.contains(&"rdma link add rxe0 type rxe netdev eth0".into()), "{lines:#?}");
    let expected =
        "ADDRESSES=10.9.0.1 10.9.0.2\nDEVICES=rxe0\nGIDS=2\nHOST=0\nINTERFACES=eth0\nSHARE=SHARE\n";
    assert_eq!(variables, expected);
}

#[test]
fn a_command_has_its_words_its_environment_and_its_files() {
    let folder = RunDirectory::new().unwrap();
    let share = folder.path();
    fs::create_dir(share.join("files")).unwrap();
    let written = share.join("written");
    let command = ["sh", "-c", "echo \"$GREETING,$TAGMATCH_RXE_DEVICES\" >written; echo $0; exit 7", "it's"];
    let options = Options {
        command: command.map(Into::into).to_vec(),
        files_out: vec![Moved { outside: "unused".into(), inside: written }],
        ..options()
    };
    let mut script = Script::default();
    script.assign("share", share);
    script.text("finish() { echo $1 >\"$share/rc\"; }\nTAGMATCH_RXE_DEVICES='rxe0 rxe1'; export TAGMATCH_RXE_DEVICES\n");
    session(&options, 0, share).run(&mut script);
    let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script.text)).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let read = |name: &str| fs::read_to_string(share.join(name)).unwrap();
    assert_eq!((read("out").as_str(), read("rc").as_str()), ("it's\n", "7\n"));
    assert_eq!(read("files/0"), "a 'b' $c,rxe0 rxe1\n");
}
