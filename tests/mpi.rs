//! Real MPI programs over the provider, by `tagmatch mpirun`: the project's own, which check all they receive, on
//! unmodified MPIs. Debian's Open MPI 4 comes from the system; Open MPI 5 and MPICH 5 are installed from PyPI into
//! environments of their own under the target directory.
//!
//! What is missing is a failure that says what to install. One job runs at a time: each has more processes than there
//! may be cores.
#![cfg(target_os = "linux")]
#![allow(clippy::panic, reason = "helpers of tests are outside test functions")]

#[path = "mpi/installed.rs"]
mod installed;
#[path = "mpi/job.rs"]
mod job;

use installed::{MPICH_5, OPEN_MPI_4, OPEN_MPI_5};
use job::{Job, Setup};

/// The programs, each with ranks and arguments that show what it is about and are soon done.
macro_rules! programs {
    ($($name:ident: $program:literal, $ranks:literal, $arguments:expr;)*) => {
        /// One test a program.
        macro_rules! on {
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

programs! {
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
