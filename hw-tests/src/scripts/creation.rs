//! TM-CONTRACT 5: what creation refuses and what it rounds.

use crate::script::{Creation, EINVAL, ENOMEM, Form, Limit, Operation, Script, Step, post, refused};

pub(super) fn scripts() -> Vec<Script> {
    let good = Creation::default();
    let create = |name, creation, result| Script::new(name, "5", vec![Step::Create(creation, result)]).bare();
    let mut scripts = vec![
        create("creation.without_cq_is_refused", Creation { form: Form::NoCq, ..good }, Err(EINVAL)),
        create("creation.without_tm_is_refused", Creation { form: Form::NoTm, ..good }, Err(EINVAL)),
        create(
            "creation.of_type_tm_alone_is_refused",
            Creation { form: Form::TypeAndPdOnly, ..good },
            Err(EINVAL),
        ),
        create("creation.on_a_plain_cq_is_refused", Creation { form: Form::PlainCq, ..good }, Err(EINVAL)),
        create("creation.of_no_tags_is_refused", Creation { tags: Limit::Exactly(0), ..good }, Err(EINVAL)),
        create(
            "creation.of_too_many_tags_is_refused",
            Creation { tags: Limit::TooMany, ..good },
            Err(EINVAL),
        ),
        create(
            "creation.of_too_many_receives_is_refused",
            Creation { receives: Limit::TooMany, ..good },
            Err(EINVAL),
        ),
        create(
            "creation.of_too_many_segments_is_refused",
            Creation { segments: Limit::Exactly(1000), ..good },
            Err(EINVAL),
        ),
        create(
            "creation.of_too_many_operations_is_refused",
            Creation { operations: 1 << 20, ..good },
            Err(EINVAL),
        ),
        create("creation.of_the_most_tags_succeeds", Creation { tags: Limit::Most, ..good }, Ok(None)),
        without_operations(),
        not_a_tm_srq(),
    ];
    scripts.extend(
        [(1, 1), (4, 7), (16, 31), (64, 127), (100, 127)].map(|(asked, answered)| rounded(asked, answered)),
    );
    scripts
}

/// `max_ops = 0` is accepted, and every operation is refused.
fn without_operations() -> Script {
    let creation = Creation { operations: 0, ..Creation::default() };
    let steps = vec![
        Step::Create(creation, Ok(None)),
        refused([Operation::add(1, 1)], ENOMEM, 0),
        refused([Operation::sync(0).unsignalled()], ENOMEM, 0),
    ];
    Script::new("creation.without_operations_succeeds_and_each_is_refused", "5", steps).bare()
}

fn not_a_tm_srq() -> Script {
    let creation = Creation { form: Form::BasicSrq, ..Creation::default() };
    let list = [Operation::sync(0), Operation::sync(0)];
    let steps = vec![Step::Create(creation, Ok(None)), refused(list, EINVAL, 0)];
    Script::new("operations.on_another_srq_are_refused", "6", steps).bare()
}

/// `attr.max_wr` comes back as 2^k - 1, and as many receives can be posted.
fn rounded(asked: u32, answered: u32) -> Script {
    let creation = Creation { receives: Limit::Exactly(asked), ..Creation::default() };
    let steps = vec![
        Step::Create(creation, Ok(Some(answered))),
        Step::Receives { calls: answered + 3, taken: answered },
        post([Operation::sync(0)]),
        Step::Settle,
        Step::DestroySrq(0),
    ];
    Script::new(format!("creation.of_{asked}_receives_makes_{answered}"), "5", steps).bare()
}
