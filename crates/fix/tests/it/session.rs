//! Sessions: what users of other engines ran into, a test each. The files beside have the logon, the order of numbers,
//! faults, times, and two sessions whose connection is cut.

use tickpath_fix::{BeginString, LogoutGapRule, Role, SequenceNumbers};

use end::{End, config};
use script::{play, play_acceptor, play_initiator, play_with};

mod cuts;
mod end;
mod faults;
mod logons;
mod numbers;
mod pair;
mod script;
mod times;

/// First lines of an acceptor's script.
const LOGON: &str = "
    connect
    < 35=A|34=1|98=0|108=30
    > 35=A|34=1|98=0|108=30
    ! logged on, heartbeat 30
";

/// First lines of an initiator's script.
const OWN_LOGON: &str = "
    connect
    > 35=A|34=1|98=0|108=30
    < 35=A|34=1|98=0|108=30
    ! logged on, heartbeat 30
";

#[track_caller]
fn after_logon(script: &str) {
    play_acceptor(&format!("{LOGON}{script}"));
}

/// quickfixgo 169, hotfix 312: a deadlock of two sides that both ask for a resend.
#[test]
fn a_resend_request_above_a_gap_is_served() {
    after_logon(
        "
        send 8 a
        > 35=8|34=2|11=a
        < 35=0|34=5
        > 35=2|34=3|7=2|16=0
        < 35=2|34=6|7=2|16=0
        > 35=8|34=2|43=Y|11=a
        > 35=4|34=3|43=Y|36=4|123=Y
        = 2 4
        < 35=4|34=2|43=Y|122=-1|36=7|123=Y
        ! skipped 2 to 5
        = 7 4
        ",
    );
}

/// A new message arrives behind the gap that the peer then fills beyond it: it was sent, so it counts.
#[test]
fn a_gap_fill_skips_no_message_that_has_arrived() {
    after_logon(
        "
        < 35=8|34=5|11=fresh
        > 35=2|34=2|7=2|16=0
        < 35=4|34=2|43=Y|122=-1|36=6|123=Y
        ! skipped 2 to 5
        ! message 5 8
        = 6 3
        ",
    );
}

/// quickfixgo 169: the reset is served with a gap open, too.
#[test]
fn a_sequence_reset_with_a_gap_open_is_served() {
    after_logon(
        "
        < 35=0|34=5
        > 35=2|34=2|7=2|16=0
        < 35=4|34=6|36=9
        ! skipped 2 to 9
        < 35=1|34=9|112=x
        > 35=0|34=3|112=x
        ",
    );
}

/// artio 503: a gap fill that covers a message which was not sent yet.
#[test]
fn a_gap_fill_never_goes_past_what_was_sent() {
    after_logon(
        "
        send 8 a
        > 35=8|34=2|11=a
        < 35=1|34=2|112=x
        > 35=0|34=3|112=x
        < 35=2|34=3|7=1|16=100
        > 35=4|34=1|43=Y|36=2|123=Y
        > 35=8|34=2|43=Y|11=a
        > 35=4|34=3|43=Y|36=4|123=Y
        < 35=2|34=4|7=4|16=0
        > 35=3|34=4|45=4|58=Value is incorrect (out of range) for this tag|371=7|372=2|373=5
        = 5 5
        ",
    );
}

/// philadelphia 231: a gap fill that used up a number of its own, and 16=0 that was taken as a number.
#[test]
fn a_gap_fill_has_no_number_of_its_own_and_zero_is_infinity() {
    after_logon(
        "
        < 35=4|34=2|36=20|123=Y
        ! skipped 2 to 20
        = 20 2
        < 35=2|34=20|7=1|16=0
        > 35=4|34=1|43=Y|36=2|123=Y
        = 21 2
        send 8 a
        > 35=8|34=2|11=a
        ",
    );
}

/// quickfixj 344: the last gap fill began too low.
#[test]
fn the_last_gap_fill_begins_behind_the_last_resent_message() {
    after_logon(
        "
        < 35=1|34=2|112=x
        > 35=0|34=2|112=x
        send 8 a
        > 35=8|34=3|11=a
        < 35=1|34=3|112=y
        > 35=0|34=4|112=y
        < 35=2|34=4|7=1|16=0
        > 35=4|34=1|43=Y|36=3|123=Y
        > 35=8|34=3|43=Y|11=a
        > 35=4|34=4|43=Y|36=5|123=Y
        ",
    );
}

/// quickfixn 309: a gap fill beyond the requested chunk.
#[test]
fn a_gap_fill_beyond_the_chunk_continues_behind_it() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.max_resend = 3;
    let script = "
        < 35=0|34=10
        > 35=2|34=2|7=2|16=4
        < 35=4|34=2|43=Y|122=-1|36=8|123=Y
        ! skipped 2 to 8
        > 35=2|34=3|7=8|16=9
        < 35=0|34=3|43=Y|122=-1
        < 35=8|34=8|43=Y|122=-1|11=a
        ! message 8 8, duplicate
        < 35=8|34=9|43=Y|122=-1|11=b
        ! message 9 8, duplicate
        = 11 4
    ";
    play(config, &format!("{LOGON}{script}"));
}

/// quickfixj 461: a Logout above a gap.
#[test]
fn a_logout_above_a_gap_is_answered_once_the_gap_is_recovered() {
    after_logon(
        "
        < 35=5|34=4|58=bye
        > 35=2|34=2|7=2|16=0
        < 35=8|34=2|43=Y|122=-1|11=a
        ! message 2 8, duplicate
        < 35=8|34=3|43=Y|122=-1|11=b
        ! message 3 8, duplicate
        > 35=5|34=3
        ! logged out: bye
        ! end LogoutComplete
        = 5 4
        ",
    );
}

/// quickfixj 461: a peer that has gone does not keep the session.
#[test]
fn a_logout_above_a_gap_is_answered_in_time() {
    after_logon(
        "
        < 35=5|34=4
        > 35=2|34=2|7=2|16=0
        wait 2
        > 35=5|34=3
        ! logged out
        ! end LogoutComplete
        = 2 4
        ",
    );
}

#[test]
fn a_session_may_answer_a_logout_above_a_gap_at_once() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.logout_gap = LogoutGapRule::Answer;
    let script = "
        < 35=5|34=4
        > 35=5|34=2
        ! logged out
        ! end LogoutComplete
        = 2 3
    ";
    play(config, &format!("{LOGON}{script}"));
}

/// quickfixgo 762, 345, 238, quickfix 562, quickfixj 482: a reset that is not announced, or not counted.
#[test]
fn a_reset_is_announced_both_ways_and_the_next_number_is_2() {
    play_with(
        End::with_numbers(config(Role::Acceptor, BeginString::Fix44), SequenceNumbers { next_in: 7, next_out: 9 }),
        BeginString::Fix44,
        "
        connect
        < 35=A|34=1|98=0|108=30|141=Y
        > 35=A|34=1|98=0|108=30|141=Y
        ! reset
        ! logged on, heartbeat 30
        = 2 2
        ",
    );
    let mut config = config(Role::Initiator, BeginString::Fix44);
    config.reset_on_logon = true;
    play_with(
        End::with_numbers(config, SequenceNumbers { next_in: 7, next_out: 9 }),
        BeginString::Fix44,
        "
        connect
        > 35=A|34=1|98=0|108=30|141=Y
        ! reset
        < 35=A|34=1|98=0|108=30|141=Y
        ! logged on, heartbeat 30
        = 2 2
        ",
    );
}

/// quickfixgo 762: 141=Y with another number than 1.
#[test]
fn a_reset_with_another_number_than_1_is_refused() {
    play_acceptor(
        "
        connect
        < 35=A|34=3|98=0|108=30|141=Y
        > 35=5|34=1|58=ResetSeqNumFlag (141) needs MsgSeqNum (34) 1, not 3
        ! end LogonNumbers
        = 1 2
        ",
    );
}

/// artio 185: a session that waited for a resend after a reset.
#[test]
fn a_reset_clears_the_gap() {
    after_logon(
        "
        < 35=0|34=9
        > 35=2|34=2|7=2|16=0
        < 35=A|34=1|98=0|108=30|141=Y
        > 35=A|34=1|98=0|108=30|141=Y
        ! reset
        < 35=1|34=2|112=x
        > 35=0|34=2|112=x
        < 35=0|34=4
        > 35=2|34=3|7=3|16=0
        ",
    );
}

/// quickfix 417: a second Logon after a reply with 141=Y.
#[test]
fn a_reset_in_the_answer_to_a_logon_needs_no_second_logon() {
    play_with(
        End::with_numbers(config(Role::Initiator, BeginString::Fix44), SequenceNumbers { next_in: 7, next_out: 9 }),
        BeginString::Fix44,
        "
        connect
        > 35=A|34=9|98=0|108=30
        < 35=A|34=1|98=0|108=30|141=Y
        ! reset
        ! logged on, heartbeat 30
        = 2 2
        send D a
        > 35=D|34=2|11=a
        ",
    );
}

/// quickfixj 902, quickfixgo 379: a Heartbeat before the answer to the Logon.
#[test]
fn nothing_is_sent_before_the_logon_is_answered() {
    play_acceptor(
        "
        connect
        wait 9
        < 35=A|34=1|98=0|108=1
        > 35=A|34=1|98=0|108=1
        ! logged on, heartbeat 1
        wait 1
        > 35=0|34=2
        ",
    );
    play_initiator(
        "
        connect
        > 35=A|34=1|98=0|108=30
        wait 9
        < 35=A|34=1|98=0|108=30
        ! logged on, heartbeat 30
        ",
    );
}

/// artio 324, 544, 211: a resend that stalls or cuts the session.
#[test]
fn a_resend_pauses_for_the_output_and_lets_other_messages_pass() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.limits.resend_output = 1;
    let script = "
        send 8 a
        > 35=8|34=2|11=a
        send 8 b
        > 35=8|34=3|11=b
        send 8 c
        > 35=8|34=4|11=c
        < 35=2|34=2|7=2|16=0
        > 35=8|34=2|43=Y|11=a
        send 8 d
        > 35=8|34=5|11=d
        wait 31
        > 35=8|34=3|43=Y|11=b
        > 35=0|34=6
        < 35=1|34=3|112=x
        > 35=0|34=7|112=x
        poll
        > 35=8|34=4|43=Y|11=c
        poll
        = 4 8
    ";
    play(config, &format!("{LOGON}{script}"));
}

/// quickfixj 432, artio PR 257: malformed bytes that loop.
#[test]
fn bytes_that_are_no_message_are_dropped() {
    after_logon(
        "
        raw garbage|8=FIX.4.4|9=5|35=0|10=000|
        < 35=0|34=2
        raw 8=FIX.4.4|9=99999999999|
        < 35=1|34=3|112=x
        > 35=0|34=2|112=x
        = 4 3
        ",
    );
}

/// quickfixj 432: a message whose fields cannot be read uses up its number, so that it is not requested forever.
#[test]
fn a_message_with_a_malformed_field_is_rejected_once() {
    after_logon(
        "
        < 35=0|34=2|4x9=HI
        > 35=3|34=2|45=2|58=Invalid tag number|372=0|373=0
        < 35=0|34=3|-1=HI
        > 35=3|34=3|45=3|58=Invalid tag number|371=-1|372=0|373=0
        < 35=0|34=5|0=HI
        > 35=2|34=4|7=4|16=0
        < 35=0|34=4|43=Y|122=-1
        > 35=3|34=5|45=5|58=Invalid tag number|371=0|372=0|373=0
        = 6 6
        ",
    );
}

/// simplefix 16: `10=` inside a data field.
#[test]
fn data_may_contain_a_checksum_field() {
    after_logon(
        "
        < 35=D|34=2|11=a|95=10|96=x\x0110=000\x01y
        ! message 2 D
        = 3 2
        ",
    );
}

/// nexus 604: a low gap fill with 43=Y.
#[test]
fn a_low_gap_fill_that_is_resent_is_discarded() {
    after_logon(
        "
        < 35=0|34=2
        < 35=4|34=1|43=Y|122=-1|36=20|123=Y
        = 3 2
        < 35=1|34=3|112=x
        > 35=0|34=2|112=x
        ",
    );
}

#[test]
fn stale_orders_are_gap_filled_and_other_messages_are_resent() {
    let script = "
        send D a
        > 35=D|34=2|11=a
        send AE b
        > 35=AE|34=3|11=b
        send D c
        > 35=D|34=4|11=c
        < 35=2|34=2|7=1|16=0
        > 35=4|34=1|43=Y|36=3|123=Y
        > 35=AE|34=3|43=Y|11=b
        > 35=4|34=4|43=Y|36=5|123=Y
    ";
    play_initiator(&format!("{OWN_LOGON}{script}"));
}

#[test]
fn duplicates_are_the_sessions_and_possible_resends_the_applications() {
    after_logon(
        "
        < 35=D|34=2|97=Y|11=a
        ! message 2 D, resend
        < 35=D|34=2|43=Y|122=-1|11=a
        < 35=D|34=3|97=Y|11=a
        ! message 3 D, resend
        < 35=D|34=4|43=Y|122=-1|11=b
        ! message 4 D, duplicate
        ",
    );
}
