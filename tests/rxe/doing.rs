//! What any machine with soft-RoCE devices is to do, wherever the devices come from.

use crate::bench::{Folder, errors, rxe, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Two devices: they are there, with addresses; what one sends to the other goes over the cable.
const TWO_DEVICES: &str = r#"
set -eu
ibv_devices
echo "$TAGMATCH_RXE_DEVICES, $TAGMATCH_RXE_ADDRESSES"
ibv_devinfo -d rxe1 | grep -E 'PORT_ACTIVE|active_mtu'
set -- $TAGMATCH_RXE_GIDS
counter=/sys/class/net/v0/statistics/tx_packets
read -r before <$counter
ibv_rc_pingpong -d rxe0 -g $1 -n 200 -s 4096 &
until ibv_rc_pingpong -d rxe1 -g $2 -n 200 -s 4096 127.0.0.1 2>/dev/null; do sleep 0.1; done
wait $!
read -r after <$counter
[ $((after - before)) -ge 800 ] && echo 'over the cable'
echo inside >written
echo more >not-wanted
cat /etc/tagmatch-test
id -u
echo complaint >&2
exit 7
"#;

pub(crate) fn run_with_two_devices(backend: &str, cache: &Path) {
    let folder = Folder::new();
    fs::write(folder.0.join("greeting"), "brought in\n").unwrap();
    let output =
        rxe(&["--backend", backend, "--in", "greeting=/etc/tagmatch-test", "--out", "written", "--cache"])
            .arg(cache)
            .args(["--", "sh", "-c", TWO_DEVICES])
            .current_dir(&folder.0)
            .output()
            .unwrap();
    let (said, complaints) = (text(&output), errors(&output));
    assert_eq!(output.status.code(), Some(7), "{said}{complaints}");
    for line in
        ["rxe0 rxe1, 10.9.0.1 10.9.1.1", "PORT_ACTIVE", "1024 (3)", "over the cable", "brought in\n0\n"]
    {
        assert!(said.contains(line), "{line} is not in\n{said}{complaints}");
    }
    assert_eq!(said.matches("200 iters in").count(), 2, "{said}");
    assert!(complaints.contains("complaint\n"), "{complaints}");
    assert_eq!(fs::read_to_string(folder.0.join("written")).unwrap(), "inside\n");
    assert!(!folder.0.join("not-wanted").exists() && !Path::new("/etc/tagmatch-test").exists());
}

/// On each of two machines; packets are lost and late on the wire.
///
/// The end of a ping-pong can be lost too: the client has all answers, and is gone before its acknowledgement of the
/// last one has arrived. `ibv_rc_pingpong` asks for a retry_cnt of 7, which rxe takes for "without end" (drivers/infiniband/
/// sw/rxe/rxe_comp.c), and its server then sends that answer for ever. So the server is given up after a while, and both
/// begin again.
const TWO_HOSTS: &str = r#"
set -eu
tc qdisc show dev "$TAGMATCH_RXE_INTERFACES"
if [ "$TAGMATCH_RXE_HOST" = 0 ]; then
    left=5
    until timeout 30 ibv_rc_pingpong -g "$TAGMATCH_RXE_GIDS" -n 100; do left=$((left - 1)); [ $left -gt 0 ]; done
    echo done >"$TAGMATCH_RXE_SHARE/done"
else
    until [ -e "$TAGMATCH_RXE_SHARE/done" ]; do
        timeout 30 ibv_rc_pingpong -g "$TAGMATCH_RXE_GIDS" -n 100 rxe-0 2>/dev/null || sleep 0.1
    done
fi
"#;

pub(crate) fn run_on_two_machines(backend: &str, cache: &Path) {
    // An ordinary user reads neither root's directories nor those of this build.
    let folder = Folder::new();
    let (home, program) = (folder.folder("home"), folder.0.join("tagmatch"));
    fs::copy(env!("CARGO_BIN_EXE_tagmatch"), &program).unwrap();
    let kept = folder.0.join("cache");
    let copied = Command::new("cp").arg("-r").arg(cache).arg(&kept).status().unwrap();
    assert!(copied.success());
    let is_root = text(&Command::new("id").arg("-u").output().unwrap()) == "0\n";
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "12345", "--regid", "12345", "--clear-groups", "--"]).arg(&program);
        std::os::unix::fs::chown(&home, Some(12345), Some(12345)).unwrap();
        std::os::unix::fs::chown(&kept, Some(12345), Some(12345)).unwrap();
        command
    } else {
        Command::new(&program)
    };
    let output = command
        .args([
            "rxe",
            "--backend",
            backend,
            "--hosts",
            "2",
            "--memory",
            "512",
            "--netem",
            "delay 2ms loss 1%",
            "--cache",
        ])
        .arg(&kept)
        .args(["--", "sh", "-c", TWO_HOSTS])
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .output()
        .unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", errors(&output));
    for host in ["[0]", "[1]"] {
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with(host)).collect();
        assert!(lines.iter().any(|line| line.contains("netem")), "{said}");
        assert!(lines.iter().any(|line| line.contains("100 iters in")), "{said}");
    }
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0, "nothing is left");
}
