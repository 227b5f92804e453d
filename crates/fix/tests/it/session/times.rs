//! Heartbeats, test requests, and the patience of a session.

use tickpath_fix::{BeginString, Role};

use super::after_logon;
use super::end::{BEGIN_NS, End, SECOND_NS, config, frame};
use super::script::play_acceptor;

const LOGON_6: &str = "
    connect
    < 35=A|34=1|98=0|108=6
    > 35=A|34=1|98=0|108=6
    ! logged on, heartbeat 6
";

#[test]
fn heartbeats_are_sent_and_test_requests_answered() {
    play_acceptor(&format!(
        "{LOGON_6}
        wait 6
        > 35=0|34=2
        < 35=0|34=2
        wait 6
        > 35=0|34=3
        < 35=1|34=3|112=HELLO
        > 35=0|34=4|112=HELLO
        wait 5
        wait 1
        > 35=0|34=5
        "
    ));
}

#[test]
fn a_silent_peer_is_tested_and_then_left() {
    play_acceptor(&format!(
        "{LOGON_6}
        wait 6
        > 35=0|34=2
        wait 2
        > 35=1|34=3|112=TEST
        < 35=0|34=2|112=TEST
        wait 6
        > 35=0|34=4
        wait 2
        > 35=1|34=5|112=TEST
        wait 7
        ! logged out
        ! end Silence
        "
    ));
}

#[test]
fn garbage_is_no_sign_of_life() {
    play_acceptor(&format!(
        "{LOGON_6}
        wait 6
        > 35=0|34=2
        raw garbage|
        wait 2
        > 35=1|34=3|112=TEST
        raw garbage|
        wait 7
        ! logged out
        ! end Silence
        "
    ));
}

#[test]
fn an_interval_of_zero_switches_heartbeats_off() {
    play_acceptor(
        "
        connect
        < 35=A|34=1|98=0|108=0
        > 35=A|34=1|98=0|108=0
        ! logged on, heartbeat 0
        wait 300
        ",
    );
}

#[test]
fn a_peer_that_sends_no_logon_is_left() {
    play_acceptor("connect\n wait 10\n ! end LogonTimeout");
}

#[test]
fn a_logout_waits_for_its_answer_and_takes_what_comes_before() {
    after_logon(
        "
        logout bye
        > 35=5|34=2|58=bye
        < 35=8|34=2|11=a
        ! message 2 8
        < 35=2|34=3|7=1|16=0
        > 35=4|34=1|43=Y|36=3|123=Y
        < 35=5|34=4
        ! logged out
        ! end LogoutComplete
        = 5 3
        ",
    );
    after_logon("logout bye\n > 35=5|34=2|58=bye\n wait 2\n ! logged out\n ! end LogoutTimeout");
    play_acceptor("connect\n logout bye\n ! end Cancelled");
}

#[test]
fn the_next_poll_is_when_something_is_due() {
    let mut end = End::new(config(Role::Acceptor, BeginString::Fix44));
    assert_eq!(end.session.next_poll_ns(), None);
    end.connect(BEGIN_NS);
    assert_eq!(end.session.next_poll_ns(), Some(BEGIN_NS + 10 * SECOND_NS));
    let logon = frame("FIX.4.4", "35=A|34=1|49=THEM|56=US|52=20261130-09:00:00|98=0|108=30|");
    end.receive(&logon, BEGIN_NS + SECOND_NS);
    assert_eq!(end.session.next_poll_ns(), Some(BEGIN_NS + 31 * SECOND_NS));
    end.call(|session, io| session.logout("", BEGIN_NS + 2 * SECOND_NS, io));
    assert_eq!(end.session.next_poll_ns(), Some(BEGIN_NS + 4 * SECOND_NS));
    end.disconnect(BEGIN_NS + 3 * SECOND_NS);
    assert_eq!(end.session.next_poll_ns(), None);
}
