//! The same programs where ranks share memory, and where one of them goes by the network alone: in software, with the soft
//! TM-SRQ, and beside the simulated card. A few of them for every change, all of them in `.ci/nightly`.

use super::{Job, MPICH_5, OPEN_MPI_4, OPEN_MPI_5, Setup};

const FEW: &[Job] = &[
    Job { program: "modes", ranks: 4, arguments: &["bytes=100000"] },
    Job { program: "order", ranks: 4, arguments: &["rounds=10"] },
    Job { program: "probes", ranks: 2, arguments: &["bytes=1000000", "count=100"] },
    Job { program: "collectives", ranks: 5, arguments: &["count=200", "rounds=1"] },
    Job { program: "storm", ranks: 4, arguments: &["count=50"] },
];

const OTHERS: &[Job] = &[
    Job { program: "wildcards", ranks: 4, arguments: &["count=100"] },
    Job { program: "cancel", ranks: 2, arguments: &["rounds=300"] },
    Job { program: "truncate", ranks: 2, arguments: &["bytes=1000000"] },
    Job { program: "sizes", ranks: 2, arguments: &["bytes=67108864", "all=65536"] },
    Job { program: "many_to_one", ranks: 8, arguments: &["count=400"] },
    Job { program: "same_buffer", ranks: 2, arguments: &["bytes=262144"] },
    Job { program: "collectives", ranks: 16, arguments: &["count=20", "rounds=1"] },
    Job { program: "threads", ranks: 2, arguments: &["threads=4", "count=150"] },
    Job { program: "types", ranks: 2, arguments: &["count=10000"] },
    Job { program: "storm", ranks: 16, arguments: &["count=20"] },
    Job { program: "deep", ranks: 2, arguments: &["count=10000"] },
];

fn pass(setup: &Setup) {
    let others = if std::env::var_os("TAGMATCH_NIGHTLY").is_some() { OTHERS } else { &[] };
    FEW.iter().chain(others).for_each(|job| setup.passes(*job));
}

mod open_mpi_4 {
    use super::{OPEN_MPI_4, Setup, pass};

    #[test]
    fn programs_pass_through_shared_memory() {
        pass(&Setup::new(&OPEN_MPI_4, &["--tm", "off"]).shared());
    }

    #[test]
    fn programs_pass_through_shared_memory_offloaded() {
        let arguments = &["--tm", "soft", "--layout", "source-in-tag"];
        pass(&Setup::new(&OPEN_MPI_4, arguments).with("modes", "synchronous=0").shared());
    }

    #[test]
    fn programs_pass_on_mixed_paths() {
        pass(&Setup::new(&OPEN_MPI_4, &["--tm", "off"]).mixed());
    }

    #[test]
    fn programs_pass_on_mixed_paths_offloaded() {
        pass(&Setup::new(&OPEN_MPI_4, &["--tm", "soft", "--layout", "source-apart"]).mixed());
    }
}

mod open_mpi_5 {
    use super::{OPEN_MPI_5, Setup, pass};

    #[test]
    fn programs_pass_through_shared_memory_offloaded() {
        pass(&Setup::new(&OPEN_MPI_5, &["--tm", "soft", "--layout", "source-apart"]).shared());
    }

    #[test]
    fn programs_pass_on_mixed_paths() {
        pass(&Setup::new(&OPEN_MPI_5, &["--tm", "off"]).mixed());
    }
}

mod mpich_5 {
    use super::{MPICH_5, Setup, pass};

    #[test]
    fn programs_pass_through_shared_memory() {
        pass(&Setup::new(&MPICH_5, &["--tm", "off"]).shared());
    }

    #[test]
    fn programs_pass_on_mixed_paths_offloaded() {
        pass(&Setup::new(&MPICH_5, &["--tm", "soft", "--layout", "source-in-tag"]).mixed());
    }
}

/// Of four ranks three share memory, and the card matches what comes to and from the fourth.
#[test]
fn a_card_matches_beside_shared_memory() {
    let setup = Setup::new(&OPEN_MPI_4, &["--tm", "require", "--layout", "source-in-tag"]).on_card().mixed();
    setup.passes(Job { program: "order", ranks: 4, arguments: &["rounds=10"] });
    let counters = setup.counters(Job { program: "storm", ranks: 4, arguments: &["count=50"] });
    let counter = |name| counters.get(name).copied().unwrap_or(0);
    assert_eq!(counter("connected_shm"), 3 * 2, "{counters:?}");
    assert!(counter("matched_by_device") > 0, "{counters:?}");
}

#[test]
fn all_ranks_share_memory_or_all_but_one_or_none() {
    let job = Job { program: "storm", ranks: 4, arguments: &["count=20"] };
    let setup = || Setup::new(&OPEN_MPI_4, &["--tm", "off"]);
    for (setup, connected) in [(setup(), 0), (setup().shared(), 4 * 3), (setup().mixed(), 3 * 2)] {
        let counters = setup.counters(job);
        assert_eq!(counters.get("connected_shm"), Some(&connected), "{counters:?}");
    }
}
