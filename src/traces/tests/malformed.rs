//! One test for each way in which a trace can be malformed, with the exact words.

use super::complaint;
use crate::traces::{Parser, Trace};

macro_rules! malformed {
    ($($name:ident: $text:expr => $message:expr;)*) => {
        $(#[test]
        fn $name() {
            assert_eq!(complaint($text), $message);
        })*
    };
}

malformed! {
    a_header_without_a_colon: "# app\n" => "t:2: expected a header \"# key: value\", found \"# app\"";
    a_header_without_a_space: "#app: x\n" => "t:2: expected a header \"# key: value\", found \"#app: x\"";
    a_header_that_is_there_twice: "# app: x\n# app: y\n" => "t:3: expected every header once, found \"app\" again";
    a_second_format: "# format: fi-tagged-trace 1\n" => "t:2: expected every header once, found \"format\" again";
    a_header_behind_an_event: "post 0 tag=0 ignore=0 src=0 len=0\n# app: x\n" =>
        "t:3: expected an event or a result line, found the header \"# app: x\": \
         all headers come before the first event";
    no_ranks: "# ranks: 0\n" =>
        "t:2: expected a number of ranks, 1 to 4294967295 in the header \"ranks\", found \"0\"";
    a_rank_that_the_run_has_not: "# ranks: 2\n# rank: 2\n" =>
        "t:3: expected a rank below the header \"ranks\" in the header \"rank\", found \"2\"";
    an_unknown_order: "# order: chaos\n" => "t:2: expected send or poll in the header \"order\", found \"chaos\"";
    a_count_that_is_no_number: "# n-post: few\n" =>
        "t:2: expected a decimal number in the header \"n-post\", found \"few\"";
    a_prefix_longer_than_the_whole: "# events: 3 (first of 2)\n" =>
        "t:2: expected \"m\" or \"m (first of n)\", m not above n in the header \"events\", \
         found \"3 (first of 2)\"";
    a_count_of_delayed_arrivals_that_is_none: "# arrivals-delayed: -1\n" =>
        "t:2: expected a decimal number in the header \"arrivals-delayed\", found \"-1\"";
    an_unknown_word: "send 0\n" =>
        "t:2: expected an event (post, arrive, peek, claim, cancel) or a result line, found \"send\"";
    an_empty_line: "\n" =>
        "t:2: expected an event (post, arrive, peek, claim, cancel) or a result line, found \"\"";
    a_number_that_is_missing: "post\n" => "t:2: expected the receive's number, found the end of the line";
    a_number_that_is_none: "post x tag=0 ignore=0 src=0 len=0\n" =>
        "t:2: expected the receive's number, found \"x\"";
    a_number_with_leading_zeros: "post 00 tag=0 ignore=0 src=0 len=0\n" =>
        "t:2: expected the receive's number, found \"00\"";
    two_spaces: "post  0 tag=0 ignore=0 src=0 len=0\n" => "t:2: expected the receive's number, found \"\"";
    a_number_of_more_than_64_bits: "post 0 tag=0 ignore=0 src=0 len=18446744073709551616\n" =>
        "t:2: expected len= and a decimal number of bytes, found \"len=18446744073709551616\"";
    a_tag_in_capitals: "arrive 0 tag=AB src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"tag=AB\"";
    a_tag_with_a_prefix: "arrive 0 tag=0x1 src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"tag=0x1\"";
    a_tag_with_leading_zeros: "arrive 0 tag=01 src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"tag=01\"";
    a_tag_of_more_than_64_bits: "arrive 0 tag=10000000000000000 src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"tag=10000000000000000\"";
    an_empty_tag: "arrive 0 tag= src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"tag=\"";
    an_ignore_with_leading_zeros: "post 0 tag=0 ignore=00 src=0 len=0\n" =>
        "t:2: expected ignore= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"ignore=00\"";
    fields_in_another_order: "post 0 ignore=0 tag=0 src=0 len=0\n" =>
        "t:2: expected tag= and a lower-case hexadecimal number of at most 64 bits without leading zeros, \
         found \"ignore=0\"";
    a_source_that_is_no_rank: "post 0 tag=0 ignore=0 src=all len=0\n" =>
        "t:2: expected src= and a rank or any, found \"src=all\"";
    a_message_from_anybody: "arrive 0 tag=0 src=any len=0\n" =>
        "t:2: expected src= and the sender's rank, found \"src=any\"";
    a_length_that_is_missing: "arrive 0 tag=0 src=0\n" =>
        "t:2: expected len= and a decimal number of bytes, found the end of the line";
    a_field_too_many: "arrive 0 tag=0 src=0 len=0 now\n" => "t:2: expected the end of the line, found \"now\"";
    a_space_at_the_end: "arrive 0 tag=0 src=0 len=0 \n" => "t:2: expected the end of the line, found \"\"";
    a_carriage_return: "arrive 0 tag=0 src=0 len=0\r\n" =>
        "t:2: expected len= and a decimal number of bytes, found \"len=0\\r\"";
    a_peek_with_another_word: "peek 0 tag=0 ignore=0 src=0 grab\nnone 0\n" =>
        "t:2: expected the end of the line, found \"grab\"";
    a_receive_out_of_order: "post 1 tag=0 ignore=0 src=0 len=0\n" =>
        "t:2: expected receive 0, the next in order of appearance, found 1";
    a_message_out_of_order: "arrive 0 tag=0 src=0 len=0\narrive 0 tag=0 src=0 len=0\n" =>
        "t:3: expected message 1, the next in order of appearance, found 0";
    a_peek_out_of_order: "peek 7 tag=0 ignore=0 src=0\nnone 7\n" =>
        "t:2: expected peek 0, the next in order of appearance, found 7";
    a_claim_that_does_not_share_the_count: "arrive 0 tag=0 src=0 len=0\npeek 0 tag=0 ignore=0 src=0 claim\n\
         found 0 0\npost 0 tag=1 ignore=0 src=0 len=0\nclaim 0 0 len=0\nmatch 0 0\n" =>
        "t:6: expected receive 1, the next in order of appearance, found 0";
    a_claim_of_an_unknown_peek: "claim 0 0 len=0\nmatch 0 0\n" =>
        "t:2: expected a peek that has appeared before (there are 0, counted from 0), found 0";
    a_cancel_of_an_unknown_receive: "cancel 3\nlate 3\n" =>
        "t:2: expected a receive that has appeared before (there are 0, counted from 0), found 3";
    a_match_with_an_unknown_message: "post 0 tag=0 ignore=0 src=0 len=0\nmatch 0 0\n" =>
        "t:3: expected a message that has appeared before (there are 0, counted from 0), found 0";
    a_match_with_an_unknown_receive: "arrive 0 tag=0 src=0 len=0\nmatch 0 0\n" =>
        "t:3: expected a receive that has appeared before (there are 0, counted from 0), found 0";
    a_sender_that_the_run_has_not: "# ranks: 4\narrive 0 tag=0 src=4 len=0\n" =>
        "t:3: expected a rank below 4 (header \"ranks\"), found 4";
    a_receive_from_a_rank_that_the_run_has_not: "# ranks: 4\npost 0 tag=0 ignore=0 src=9 len=0\n" =>
        "t:3: expected a rank below 4 (header \"ranks\"), found 9";
    a_result_before_any_event: "match 0 0\n" => "t:2: expected an event first, found the result line \"match 0 0\"";
    two_results_behind_one_event: "peek 0 tag=0 ignore=0 src=0\nnone 0\nnone 0\n" =>
        "t:4: expected at most one result line behind peek, found a second one: \"none 0\"";
    a_result_of_another_kind: "peek 0 tag=0 ignore=0 src=0\nlate 0\n" =>
        "t:3: expected found or none behind peek, found \"late\"";
    a_peek_result_behind_a_post: "post 0 tag=0 ignore=0 src=0 len=0\nnone 0\n" =>
        "t:3: expected match or no result line behind post, found \"none\"";
    a_match_of_another_receive: "arrive 0 tag=0 src=0 len=0\npost 0 tag=0 ignore=0 src=0 len=0\nmatch 1 0\n" =>
        "t:4: expected the result of receive 0, found that of receive 1";
    a_match_of_another_message: "post 0 tag=0 ignore=0 src=0 len=0\narrive 0 tag=0 src=0 len=0\nmatch 0 1\n" =>
        "t:4: expected the result of message 0, found that of message 1";
    a_result_of_another_peek: "peek 0 tag=0 ignore=0 src=0\nnone 1\n" =>
        "t:3: expected the result of peek 0, found that of peek 1";
    a_peek_without_a_result: "peek 0 tag=0 ignore=0 src=0\narrive 0 tag=0 src=0 len=0\n" =>
        "t:3: expected found or none behind the peek in line 2, found \"arrive 0 tag=0 src=0 len=0\"";
    a_cancel_without_a_result_at_the_end: "post 0 tag=0 ignore=0 src=0 len=0\ncancel 0\n" =>
        "t:3: expected cancelled or late behind the cancel in line 3, found the end of the file";
    a_claim_without_a_result: "arrive 0 tag=0 src=0 len=0\npeek 0 tag=0 ignore=0 src=0 claim\nfound 0 0\n\
         claim 0 0 len=0\ncancel 0\nlate 0\n" =>
        "t:6: expected match behind the claim in line 5, found \"cancel 0\"";
    fewer_events_than_declared: "# events: 2\narrive 0 tag=0 src=0 len=0\n" =>
        "t:3: expected 2 of \"events\" as the header says, found 1 at the end of the file";
    more_messages_than_declared: "# n-arrive: 0\narrive 0 tag=0 src=0 len=0\n" =>
        "t:3: expected 0 of \"n-arrive\" as the header says, found 1 at the end of the file";
    a_message_received_twice: "arrive 0 tag=0 src=0 len=0\npost 0 tag=0 ignore=0 src=0 len=0\nmatch 0 0\n\
         post 1 tag=0 ignore=0 src=0 len=0\nmatch 1 0\n" =>
        "t:5: expected a message that is still unexpected, found message 0, which had been received before";
    a_bound_message_that_is_found_again: "arrive 0 tag=0 src=0 len=0\npeek 0 tag=0 ignore=0 src=0 claim\n\
         found 0 0\npeek 1 tag=0 ignore=0 src=0\nfound 1 0\n" =>
        "t:5: expected a message that is still unexpected, found message 0, \
         which a peek with \"claim\" had bound before";
    a_receive_matched_twice: "post 0 tag=0 ignore=0 src=0 len=0\narrive 0 tag=0 src=0 len=0\nmatch 0 0\n\
         arrive 1 tag=0 src=0 len=0\nmatch 0 1\n" =>
        "t:5: expected a receive that is still posted, found receive 0, which had been matched before";
    a_receive_matched_after_its_cancel: "post 0 tag=0 ignore=0 src=0 len=0\ncancel 0\ncancelled 0\n\
         arrive 0 tag=0 src=0 len=0\nmatch 0 0\n" =>
        "t:5: expected a receive that is still posted, found receive 0, which had been cancelled before";
    a_cancel_too_late_of_a_posted_receive: "post 0 tag=0 ignore=0 src=0 len=0\ncancel 0\nlate 0\n" =>
        "t:3: expected a receive that was matched, found receive 0, which is still posted";
    a_claim_of_another_message: "arrive 0 tag=0 src=0 len=0\narrive 1 tag=0 src=0 len=0\n\
         peek 0 tag=0 ignore=0 src=0 claim\nfound 0 0\nclaim 0 0 len=0\nmatch 0 1\n" =>
        "t:6: expected message 0, which peek 0 bound, found message 1";
    a_claim_through_a_peek_that_bound_nothing: "arrive 0 tag=0 src=0 len=0\n\
         peek 0 tag=0 ignore=0 src=0\nfound 0 0\nclaim 0 0 len=0\nmatch 0 0\n" =>
        "t:5: expected a peek that found a message with \"claim\" and was not claimed before, found peek 0";
    a_message_longer_than_its_receive: "post 0 tag=0 ignore=0 src=0 len=4\narrive 0 tag=0 src=0 len=5\nmatch 0 0\n" =>
        "t:3: expected a message of at most 4 bytes for receive 0, found message 0 of 5";
    a_last_line_without_an_end: "arrive 0 tag=0 src=0 len=12" =>
        "t:2: expected a line feed at the end of the last line, found the end of the file: it may be cut short";
    a_long_word_is_cut_in_the_message: &format!("{}\n", "x".repeat(100)) =>
        format!("t:2: expected an event (post, arrive, peek, claim, cancel) or a result line, found \"{}...\"",
            "x".repeat(48));
    a_line_that_is_too_long: &format!("{}\n", "x".repeat(Parser::LINE_BYTES_MAX + 1)) =>
        "t:2: expected a line of at most 8192 bytes, found a longer one";
    too_many_headers: &(0..64).map(|number| format!("# key{number}: x\n")).collect::<String>() =>
        "t:65: expected at most 64 headers, found one more";
}

fn raw(bytes: &'static [u8]) -> String {
    Trace::from_bytes("t", bytes).map_or_else(|error| error.to_string(), |_| panic!("should be malformed"))
}

#[test]
fn a_file_of_something_else() {
    assert_eq!(
        raw(b"hello\n"),
        "t:1: expected \"# format: fi-tagged-trace 1\" as the first line, found \"hello\""
    );
}

#[test]
fn a_later_version_of_the_format() {
    assert_eq!(
        raw(b"# format: fi-tagged-trace 2\n"),
        "t:1: expected \"# format: fi-tagged-trace 1\" as the first line, found \"# format: fi-tagged-trace 2\""
    );
}

#[test]
fn an_empty_file() {
    assert_eq!(
        raw(b""),
        "t:1: expected \"# format: fi-tagged-trace 1\" as the first line, found an empty file"
    );
}

#[test]
fn bytes_that_are_no_text_are_shown_escaped() {
    assert_eq!(
        raw(b"# format: fi-tagged-trace 1\n# app: \xff\n"),
        "t:2: expected a header \"# key: value\", found \"# app: \\xff\""
    );
    assert_eq!(
        raw(b"# format: fi-tagged-trace 1\npost\x00\n"),
        "t:2: expected an event (post, arrive, peek, claim, cancel) or a result line, found \"post\\x00\""
    );
}
