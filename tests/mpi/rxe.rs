//! MPI over verbs on real soft-RoCE (docs/rxe.md): in one emulated machine, with a device for all ranks or for half of
//! them each, and on two machines; eager and by RDMA READ, matched in software and by the soft list, also where packets
//! are lost. Each machine is started once for all jobs.

use crate::installed::OPEN_MPI_4;
use crate::job::{TURN, library};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

/// In one machine: `job` takes who matches and mpirun's arguments, `halves` also how many ranks each device has.
const ONE_MACHINE: &str = r#"
job() { matcher=$1; shift; "$tagmatch" mpirun --mpirun "$mpirun" --tm $matcher "$@"; }
half() { echo "-n $1 -x FI_TAGMATCH_DEVICE=$2 -x FI_TAGMATCH_IFACE=$3"; }
halves() {
    matcher=$1 ranks=$2; shift 2
    job $matcher $(half $ranks rxe0 v0) "$@" : $(half $ranks rxe1 v1) "$@"
}
job off -n 2 $programs/sizes bytes=1000000 all=256
job soft -n 2 $programs/order rounds=5
halves off 1 $programs/sizes bytes=1000000 all=64
halves soft 2 $programs/storm count=20
lose v0 v1
halves soft 1 $programs/order rounds=5
halves off 2 $programs/collectives count=100 rounds=1
"#;

/// On two machines. The first one's mpirun starts its daemon on the second by a file in the directory of both.
const TWO_MACHINES: &str = r#"
cd "$TAGMATCH_RXE_SHARE"
# Open MPI's daemons look for it, too.
echo '#!/bin/sh
shift; echo "$@" >"$TAGMATCH_RXE_SHARE/$$.new"; mv "$TAGMATCH_RXE_SHARE/$$.new" "$TAGMATCH_RXE_SHARE/$$.start"' >/usr/local/bin/agent
chmod +x /usr/local/bin/agent
if [ $TAGMATCH_RXE_HOST = 1 ]; then
    lose_when_told() { [ ! -e lose ] || { lose $TAGMATCH_RXE_INTERFACES; rm lose; }; }
    until [ -e done ]; do
        for command in *.start; do
            [ -e $command ] || continue
            mv $command $command.begun
            sh ./$command.begun &
        done
        lose_when_told
        sleep 0.1
    done
    exit 0
fi
trap ': >"$TAGMATCH_RXE_SHARE/done"' EXIT
job() {
    matcher=$1 ranks=$2; shift 2
    "$tagmatch" mpirun --mpirun "$mpirun" --tm $matcher --mca plm_rsh_agent /usr/local/bin/agent \
        --mca oob_tcp_if_include 10.9.0.0/24 --host rxe-0:$ranks,rxe-1:$ranks -n $((2 * ranks)) "$@"
}
export FI_TAGMATCH_IFACE=$TAGMATCH_RXE_INTERFACES
job off 1 $programs/sizes bytes=1000000 all=64
job soft 2 $programs/storm count=20
lose $TAGMATCH_RXE_INTERFACES
: >lose
while [ -e lose ]; do sleep 0.1; done
job soft 1 $programs/order rounds=5
job off 2 $programs/collectives count=100 rounds=1
"#;

/// Run a script of a shell, which must end well, and all programs too: which, with how many ranks.
fn run(hosts: &str, memory: &str, script: &str, jobs: &[(&str, u32)]) {
    let ready = OPEN_MPI_4.ready();
    let library = library();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let tagmatch = env!("CARGO_BIN_EXE_tagmatch");
    let (mpirun, programs) = (ready.mpirun.display(), ready.programs.display());
    let script = format!(
        "set -e; export FI_TAGMATCH_NET=verbs; tagmatch='{tagmatch}' mpirun='{mpirun}' programs='{programs}'
lose() {{ for end; do tc qdisc add dev $end root netem limit 10000 delay 2ms loss 1% duplicate 1% reorder 5%; done; }}
{script}"
    );
    let output = Command::new(tagmatch)
        .args(["rxe", "--backend", "qemu", "--install", "--hosts", hosts, "--memory", memory])
        .args(["--timeout", "1500", "--cache"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("rxe"))
        .args(["--", "sh", "-c", &script])
        .env("TAGMATCH_FI_LIB", library)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("tagmatch cannot be run: {error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}{complaints}", output.status);
    let ended: Vec<&str> = said.lines().filter(|line| line.ends_with(" checks, all right")).collect();
    assert_eq!(ended.len(), jobs.len(), "{said}{complaints}");
    for (line, (program, ranks)) in ended.iter().zip(jobs) {
        assert!(line.contains(&format!("{program}: {ranks} ranks, ")), "{said}{complaints}");
    }
}

#[test]
fn programs_run_over_verbs_on_soft_roce_on_one_device_and_between_two() {
    let jobs = [("sizes", 2), ("order", 2), ("sizes", 2), ("storm", 4), ("order", 2), ("collectives", 4)];
    run("1", "2048", ONE_MACHINE, &jobs);
}

#[test]
fn programs_run_over_verbs_between_two_machines_also_where_packets_are_lost_and_overtake_each_other() {
    let jobs = [("sizes", 2), ("storm", 4), ("order", 2), ("collectives", 4)];
    run("2", "1024", TWO_MACHINES, &jobs);
}
