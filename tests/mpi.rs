//! Real MPI programs over the provider, by `tagmatch mpirun`: the project's own, which check all they receive, on
//! unmodified MPIs. Debian's Open MPI 4 comes from the system; Open MPI 5 and MPICH 5 are installed from PyPI into
//! environments of their own under the target directory.
//!
//! What is missing is a failure that says what to install. One job runs at a time: each has more processes than there
//! may be cores.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are outside test functions")]

#[path = "mpi/installed.rs"]
mod installed;
#[path = "mpi/job.rs"]
mod job;
#[path = "mpi/options.rs"]
mod options;
#[path = "mpi/pair.rs"]
mod pair;
#[path = "mpi/rxe.rs"]
mod rxe;

use installed::{MPICH_5, OPEN_MPI_4, OPEN_MPI_5};
use job::{Job, Setup};

/// The programs, each with ranks and arguments that show what it is about and are soon done.
macro_rules! programs {
    ($on:ident: $($name:ident: $program:literal, $ranks:literal, $arguments:expr;)*) => {
        /// One test a program.
        macro_rules! $on {
            ($setup:expr) => {
                $(
                    #[test]
                    fn $name() {
                        $setup.passes(Job { program: $program, ranks: $ranks, arguments: $arguments });
                    }
                )*
            };
        }
    };
}

programs! { on:
    every_mode_and_form_of_sending_delivers: "modes", 4, &["bytes=300000"];
    wildcards_take_what_fits_and_name_it: "wildcards", 4, &["count=100"];
    mixed_receives_match_in_the_order_they_were_posted: "order", 4, &["rounds=30"];
    probes_see_and_matching_probes_take: "probes", 2, &["bytes=1000000", "count=300"];
    a_receive_is_cancelled_or_completes_and_never_both: "cancel", 2, &["rounds=300"];
    a_message_too_long_is_an_error_and_writes_nothing_outside: "truncate", 2, &["bytes=1000000"];
    messages_of_all_sizes_up_to_64_mib_arrive_whole: "sizes", 2, &["bytes=67108864", "all=65536"];
    many_send_to_one: "many_to_one", 8, &["count=400"];
    one_buffer_is_posted_in_many_receives: "same_buffer", 2, &["bytes=262144"];
    collectives_are_right_in_and_between_groups: "collectives", 5, &["count=500", "rounds=1"];
    collectives_are_right_with_sixteen_ranks: "collectives", 16, &["count=20", "rounds=1"];
    threads_send_and_receive_at_once: "threads", 2, &["threads=4", "count=150"];
    data_in_pieces_arrives_in_its_places: "types", 2, &["count=10000"];
    everyone_sends_to_everyone: "storm", 4, &["count=200"];
    sixteen_ranks_send_to_one_another: "storm", 16, &["count=20"];
    ten_thousand_receives_and_messages_wait: "deep", 2, &["count=10000"];
}

// The same on the simulated card, where each packet is worked at by the processes themselves: fewer and shorter ones.
programs! { on_card:
    every_mode_and_form_of_sending_delivers: "modes", 2, &["bytes=100000"];
    wildcards_take_what_fits_and_name_it: "wildcards", 4, &["count=100"];
    mixed_receives_match_in_the_order_they_were_posted: "order", 4, &["rounds=10"];
    probes_see_and_matching_probes_take: "probes", 2, &["bytes=100000", "count=100"];
    a_receive_is_cancelled_or_completes_and_never_both: "cancel", 2, &["rounds=100"];
    a_message_too_long_is_an_error_and_writes_nothing_outside: "truncate", 2, &["bytes=1000000"];
    messages_of_all_sizes_up_to_4_mib_arrive_whole: "sizes", 2, &["bytes=4194304", "all=4096"];
    many_send_to_one: "many_to_one", 4, &["count=100"];
    one_buffer_is_posted_in_many_receives: "same_buffer", 2, &["bytes=65536"];
    collectives_are_right_in_and_between_groups: "collectives", 4, &["count=200", "rounds=1"];
    threads_send_and_receive_at_once: "threads", 2, &["threads=4", "count=50"];
    data_in_pieces_arrives_in_its_places: "types", 2, &["count=1000"];
    everyone_sends_to_everyone: "storm", 4, &["count=50"];
    two_thousand_receives_and_messages_wait: "deep", 2, &["count=2000"];
}

// The examples, each a few turns: what they are for is their times, which nothing here looks at.
programs! { examples:
    half_a_round_trip_is_timed_beside_long_lists: "pingpong", 2, &["bytes=70000", "depth=200", "rounds=2", "turns=5"];
    messages_a_second_are_timed_beside_long_lists: "msgrate", 2, &["bytes=70000", "depth=200", "rounds=2", "turns=3"];
    an_exchange_with_26_neighbours_is_timed: "neighbours", 8, &["side=6", "rounds=2", "turns=5"];
    a_stencil_is_timed_and_right: "stencil", 4, &["rounds=2", "turns=10"];
    many_that_send_to_one_are_timed: "to_one", 8, &["rounds=2", "turns=3"];
    all_that_send_to_all_are_timed: "all_to_all", 8, &["rounds=2", "turns=5"];
}

// And what shows that another MPI works there as well.
programs! { few_on_card:
    every_mode_and_form_of_sending_delivers: "modes", 2, &["bytes=100000"];
    mixed_receives_match_in_the_order_they_were_posted: "order", 4, &["rounds=10"];
    collectives_are_right_in_and_between_groups: "collectives", 4, &["count=200", "rounds=1"];
    everyone_sends_to_everyone: "storm", 4, &["count=50"];
}

mod open_mpi_4 {
    use super::{Job, OPEN_MPI_4, Setup};

    mod in_software {
        use super::{Job, OPEN_MPI_4, Setup};
        on!(Setup::new(&OPEN_MPI_4, &["--tm", "off"]));
    }

    mod offloaded_with_the_source_in_the_tag {
        use super::{Job, OPEN_MPI_4, Setup};
        // Open MPI then acknowledges a synchronous send only where its receiver is rank 0, on any provider.
        on!(Setup::new(&OPEN_MPI_4, &["--tm", "soft", "--layout", "source-in-tag"])
            .with("modes", "synchronous=0"));
    }

    mod offloaded_with_the_source_apart {
        use super::{Job, OPEN_MPI_4, Setup};
        on!(Setup::new(&OPEN_MPI_4, &["--tm", "soft", "--layout", "source-apart"]));
    }
}

mod open_mpi_4_examples {
    use super::{Job, OPEN_MPI_4, Setup};

    mod over_tcp {
        use super::{Job, OPEN_MPI_4, Setup};
        examples!(Setup::new(&OPEN_MPI_4, &["--tm", "off"]));
    }

    mod over_shared_memory {
        use super::{Job, OPEN_MPI_4, Setup};
        examples!(Setup::new(&OPEN_MPI_4, &["--tm", "off"]).shared());
    }
}

/// Over the real libibverbs and libmlx5, on a simulated card.
mod open_mpi_4_over_verbs {
    use super::{Job, OPEN_MPI_4, Setup};

    mod in_software {
        use super::{Job, OPEN_MPI_4, Setup};
        on_card!(Setup::new(&OPEN_MPI_4, &["--net", "verbs", "--tm", "off"]).on_card());
    }

    mod with_the_model_over_it {
        use super::{Job, OPEN_MPI_4, Setup};
        on_card!(
            Setup::new(&OPEN_MPI_4, &["--net", "verbs", "--tm", "soft", "--layout", "source-in-tag"])
                .with("modes", "synchronous=0")
                .on_card()
        );
    }

    mod matched_by_the_card {
        use super::{Job, OPEN_MPI_4, Setup};
        on_card!(
            Setup::new(&OPEN_MPI_4, &["--tm", "require", "--layout", "source-in-tag"])
                .with("modes", "synchronous=0")
                .on_card()
        );
    }

    /// Of the receives that were posted before the header of their message came, the card matches nine of ten at least; and
    /// of each of the others it is said why not.
    #[test]
    fn what_is_posted_first_is_matched_by_the_card() {
        let setup = Setup::new(&OPEN_MPI_4, &["--tm", "require", "--layout", "source-in-tag"]).on_card();
        let jobs = [
            Job { program: "wildcards", ranks: 4, arguments: &["count=100"] },
            Job { program: "truncate", ranks: 2, arguments: &["bytes=1000000"] },
            Job { program: "collectives", ranks: 2, arguments: &["count=500", "rounds=4"] },
        ];
        for job in jobs {
            let counters = setup.counters(job);
            let counter = |name| counters.get(name).copied().unwrap_or(0);
            let (first, card) = (counter("posted_first"), counter("posted_first_matched_by_device"));
            assert!(card >= 100 && 10 * card >= 9 * first, "{job:?}: {card} of {first}: {counters:?}");
            let with_reason = counters.iter().filter(|(name, _)| name.starts_with("posted_first_"));
            let with_reason: u64 = with_reason.map(|(_, count)| count).sum();
            assert_eq!(with_reason, first, "{job:?}: {counters:?}");
        }
    }
}

/// Windows: by remote memory access where the MPI takes it, else by messages.
mod one_sided {
    use super::{Job, MPICH_5, OPEN_MPI_4, OPEN_MPI_5, Setup};

    const ALL: Job = Job { program: "onesided", ranks: 3, arguments: &["count=50"] };
    // Over its transports for remote memory access Open MPI fails by itself where values are compared and swapped, and has
    // no largest of two.
    const OF_OPEN_MPI: Job =
        Job { program: "onesided", ranks: 3, arguments: &["count=50", "swap=0", "max=0"] };

    macro_rules! remote {
        () => {
            &[
                "--mca",
                "opal_common_ofi_provider_include",
                "tagmatch",
                "--mca",
                "osc",
                "rdma",
                "--mca",
                "btl",
                "self,ofi",
            ]
        };
    }

    #[test]
    fn open_mpi_4_by_messages() {
        Setup::new(&OPEN_MPI_4, &["--mca", "osc", "pt2pt"]).passes(ALL);
    }

    #[test]
    fn open_mpi_4_by_remote_memory_access() {
        Setup::new(&OPEN_MPI_4, remote!()).passes(OF_OPEN_MPI);
    }

    #[test]
    fn open_mpi_4_by_remote_memory_access_through_shared_memory() {
        Setup::new(&OPEN_MPI_4, remote!()).shared().passes(OF_OPEN_MPI);
    }

    #[test]
    fn open_mpi_5_by_remote_memory_access() {
        Setup::new(&OPEN_MPI_5, remote!()).passes(OF_OPEN_MPI);
    }

    #[test]
    fn mpich_5_by_remote_memory_access() {
        Setup::new(&MPICH_5, &[]).passes(ALL);
    }

    #[test]
    fn mpich_5_by_remote_memory_access_through_shared_memory() {
        let counters = Setup::new(&MPICH_5, &[]).shared().counters(ALL);
        assert!(counters["remote_writes"] > 0 && counters["remote_reads"] > 0, "{counters:?}");
    }

    #[test]
    fn mpich_5_by_remote_memory_access_with_the_soft_list() {
        Setup::new(&MPICH_5, &["--tm", "soft"]).passes(ALL);
    }

    #[test]
    fn open_mpi_5_by_remote_memory_access_on_the_simulated_card() {
        Setup::new(
            &OPEN_MPI_5,
            &["--net", "verbs", "--tm", "off", "--mca", "osc", "rdma", "--mca", "btl", "self,ofi"],
        )
        .on_card()
        .passes(OF_OPEN_MPI);
    }

    #[test]
    fn mpich_5_by_remote_memory_access_on_the_simulated_card() {
        Setup::new(&MPICH_5, &["--net", "verbs", "--tm", "off"]).on_card().passes(ALL);
    }
}

mod open_mpi_5_over_verbs {
    use super::{Job, OPEN_MPI_5, Setup};

    mod in_software {
        use super::{Job, OPEN_MPI_5, Setup};
        few_on_card!(Setup::new(&OPEN_MPI_5, &["--net", "verbs", "--tm", "off"]).on_card());
    }

    mod matched_by_the_card {
        use super::{Job, OPEN_MPI_5, Setup};
        few_on_card!(
            Setup::new(&OPEN_MPI_5, &["--tm", "require", "--layout", "source-in-tag"])
                .with("modes", "synchronous=0")
                .on_card()
        );
    }
}

mod mpich_5_over_verbs {
    use super::{Job, MPICH_5, Setup};

    mod in_software {
        use super::{Job, MPICH_5, Setup};
        few_on_card!(Setup::new(&MPICH_5, &["--net", "verbs", "--tm", "off"]).on_card());
    }

    mod matched_by_the_card {
        use super::{Job, MPICH_5, Setup};
        few_on_card!(Setup::new(&MPICH_5, &["--tm", "require", "--layout", "source-in-tag"]).on_card());
    }
}

mod open_mpi_5 {
    use super::{Job, OPEN_MPI_5, Setup};

    mod offloaded_with_the_source_apart {
        use super::{Job, OPEN_MPI_5, Setup};
        on!(Setup::new(&OPEN_MPI_5, &["--tm", "soft", "--layout", "source-apart"]));
    }

    mod in_software {
        use super::{Job, OPEN_MPI_5, Setup};
        on!(Setup::new(&OPEN_MPI_5, &["--tm", "off"]));
    }

    mod offloaded_with_the_source_in_the_tag {
        use super::{Job, OPEN_MPI_5, Setup};
        on!(Setup::new(&OPEN_MPI_5, &["--tm", "soft", "--layout", "source-in-tag"])
            .with("modes", "synchronous=0"));
    }
}

mod mpich_5 {
    use super::{Job, MPICH_5, Setup};

    mod in_software {
        use super::{Job, MPICH_5, Setup};
        on!(Setup::new(&MPICH_5, &["--tm", "off"]));
    }

    mod offloaded_with_the_source_apart {
        use super::{Job, MPICH_5, Setup};
        on!(Setup::new(&MPICH_5, &["--tm", "soft"]));
    }

    mod offloaded_with_the_source_in_the_tag {
        use super::{Job, MPICH_5, Setup};
        on!(Setup::new(&MPICH_5, &["--tm", "soft", "--layout", "source-in-tag"]));
    }
}

#[path = "mpi/shared.rs"]
mod shared;

/// By `tagmatch mpirun --stats`, with the rank of each.
#[test]
fn what_each_rank_has_counted_is_shown_when_the_job_has_ended() {
    for mpi in [&OPEN_MPI_4, &OPEN_MPI_5, &MPICH_5] {
        let setup = Setup::new(mpi, &["--tm", "soft", "--layout", "source-in-tag"]);
        let counters = setup.counters(Job { program: "order", ranks: 2, arguments: &["rounds=5"] });
        let matched = counters.get("matched_by_device").copied().unwrap_or_default();
        assert!(matched > 0, "{}: {counters:?}", mpi.name);
    }
}

/// A program that finds something wrong ends the job with an error and one line that says what.
#[test]
fn what_a_program_finds_wrong_is_said_and_fails() {
    for mpi in [&OPEN_MPI_4, &OPEN_MPI_5, &MPICH_5] {
        let said = Setup::new(mpi, &[]).fails(Job { program: "order", ranks: 1, arguments: &[] });
        assert!(said.contains("order: rank 0: 2 ranks are needed, there are 1\n"), "{}: {said}", mpi.name);
    }
}

/// Nothing else carries the messages: without the provider there is no job.
#[test]
fn where_the_provider_cannot_be_loaded_there_is_no_job() {
    for mpi in [&OPEN_MPI_4, &OPEN_MPI_5, &MPICH_5] {
        let setup = Setup::without_provider(mpi);
        let said = setup.fails(Job { program: "types", ranks: 2, arguments: &["count=1"] });
        assert!(!said.contains("all right"), "{}: {said}", mpi.name);
    }
}
