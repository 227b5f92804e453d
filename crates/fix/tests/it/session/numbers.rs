//! Order of numbers: low, high and missing ones, held messages, and SequenceReset.

use tickpath_fix::{
    AppAnswer, BeginString, DisconnectReason, MessageStore, Role, SendError, SequenceNumbers, Session, SessionConfig,
    SessionEvent, SessionIo, SessionState, StoreError, tags,
};

use super::end::{BEGIN_NS, End, config, frame};
use super::script::{play, play_acceptor, play_with};
use super::{LOGON, after_logon};

#[test]
fn a_low_number_ends_the_session() {
    after_logon(
        "
        < 35=0|34=2
        < 35=0|34=2
        > 35=5|34=2|58=MsgSeqNum too low, expecting 3 but received 2
        ! logged out
        ! end NumberTooLow
        = 3 3
        ",
    );
}

#[test]
fn a_missing_number_ends_the_session() {
    after_logon(
        "
        < 35=1|112=x
        > 35=5|34=2|58=Received message without MsgSeqNum
        ! logged out
        ! end NumberMissing
        ",
    );
}

#[test]
fn a_low_message_that_is_resent_is_discarded_if_its_times_are_right() {
    after_logon(
        "
        < 35=D|34=2|11=a
        ! message 2 D
        < 35=D|34=2|43=Y|122=-1|11=a
        < 35=D|34=2|43=Y|11=a
        > 35=3|34=2|45=2|58=Required tag missing|371=122|372=D|373=1
        = 3 3
        < 35=D|34=2|43=Y|122=+10|11=a
        > 35=3|34=3|45=2|58=SendingTime accuracy problem|372=D|373=10
        > 35=5|34=4
        < 35=5|34=3
        ! logged out
        ! end LogoutComplete
        ",
    );
}

#[test]
fn messages_above_a_gap_wait_for_their_turn() {
    after_logon(
        "
        < 35=D|34=4|11=c
        > 35=2|34=2|7=2|16=0
        < 35=1|34=5|112=x
        < 35=D|34=2|43=Y|122=-1|11=a
        ! message 2 D, duplicate
        < 35=D|34=3|43=Y|122=-1|11=b
        ! message 3 D, duplicate
        ! message 4 D
        > 35=0|34=3|112=x
        < 35=D|34=4|43=Y|122=-1|11=c
        = 6 4
        ",
    );
}

#[test]
fn messages_that_found_no_room_are_requested_again() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.limits.held_messages = 1;
    let script = "
        < 35=D|34=3|11=b
        > 35=2|34=2|7=2|16=0
        < 35=D|34=4|11=c
        < 35=D|34=2|43=Y|122=-1|11=a
        ! message 2 D, duplicate
        ! message 3 D
        > 35=2|34=3|7=4|16=0
        < 35=D|34=4|43=Y|122=-1|11=c
        ! message 4 D, duplicate
        = 5 4
    ";
    play(config, &format!("{LOGON}{script}"));
}

#[test]
fn a_request_without_an_answer_is_repeated() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.times.recovery_s = 20;
    play(config, &format!("{LOGON}\n < 35=0|34=4\n > 35=2|34=2|7=2|16=0\n wait 20\n > 35=2|34=3|7=2|16=0\n ! alarm"));
}

#[test]
fn a_rejected_message_uses_up_its_number_and_held_ones_follow() {
    after_logon(
        "
        < 35=1|34=3|112=HELLO1
        > 35=2|34=2|7=2|16=0
        < 35=D|34=2|43=Y|122=-1
        > 35=3|34=3|45=2|58=Required tag missing|371=11|372=D|373=1
        > 35=0|34=4|112=HELLO1
        < 35=1|34=4|112=HELLO2
        > 35=0|34=5|112=HELLO2
        = 5 6
        ",
    );
}

#[test]
fn a_held_message_is_rejected_in_its_turn() {
    after_logon(
        "
        < 35=D|34=3
        > 35=2|34=2|7=2|16=0
        < 35=0|34=2|43=Y|122=-1
        > 35=3|34=3|45=3|58=Required tag missing|371=11|372=D|373=1
        = 4 4
        ",
    );
}

#[test]
fn sequence_resets_move_up_only() {
    after_logon(
        "
        < 35=4|34=0|36=25
        ! skipped 2 to 25
        < 35=4|34=0|36=25|123=N
        < 35=4|34=0|36=1
        > 35=3|34=2|45=0|58=Value is incorrect (out of range) for this tag|372=4|373=5
        < 35=4|34=25|36=24|123=Y
        > 35=3|34=3|45=25|58=Value is incorrect (out of range) for this tag|372=4|373=5
        = 25 4
        < 35=4|34=27|36=40|123=Y
        > 35=2|34=4|7=25|16=0
        < 35=4|34=25|43=Y|122=-1|36=27|123=Y
        ! skipped 25 to 27
        ! skipped 27 to 40
        = 40 5
        ",
    );
}

#[test]
fn a_gap_fill_with_a_low_number_ends_the_session() {
    after_logon(
        "
        < 35=4|34=1|36=20|123=Y
        > 35=5|34=2|58=MsgSeqNum too low, expecting 2 but received 1
        ! logged out
        ! end NumberTooLow
        ",
    );
}

#[test]
fn a_request_is_served_whatever_its_number_is_and_checked() {
    after_logon(
        "
        send 8 a
        > 35=8|34=2|11=a
        < 35=2|34=1|7=2|16=2
        > 35=8|34=2|43=Y|11=a
        = 2 3
        < 35=2|34=1|43=Y|122=-1|7=2|16=2
        < 35=2|34=2|7=2|16=1
        > 35=3|34=3|45=2|58=Value is incorrect (out of range) for this tag|371=16|372=2|373=5
        < 35=2|34=5|7=2|16=2
        > 35=8|34=2|43=Y|11=a
        > 35=2|34=4|7=3|16=0
        = 3 5
        ",
    );
}

#[test]
fn old_versions_have_another_infinity() {
    play(
        config(Role::Acceptor, BeginString::Fix41),
        "
        connect
        < 35=A|34=1|98=0|108=30
        > 35=A|34=1|98=0|108=30
        ! logged on, heartbeat 30
        < 35=0|34=4
        > 35=2|34=2|7=2|16=999999
        < 35=2|34=5|7=1|16=999999
        > 35=4|34=1|43=Y|36=3|123=Y
        ",
    );
}

#[test]
fn a_logout_with_a_low_number_is_answered() {
    after_logon("< 35=0|34=2\n < 35=5|34=2\n > 35=5|34=2\n ! logged out\n ! end LogoutComplete\n = 3 3");
}

#[test]
fn numbers_survive_a_lost_connection() {
    after_logon(
        "
        send 8 a
        > 35=8|34=2|11=a
        < 35=D|34=2|11=b
        ! message 2 D
        lost
        ! logged out
        connect
        < 35=A|34=3|98=0|108=30
        > 35=A|34=3|98=0|108=30
        ! logged on, heartbeat 30
        < 35=2|34=4|7=2|16=0
        > 35=8|34=2|43=Y|11=a
        > 35=4|34=3|43=Y|36=4|123=Y
        ",
    );
}

#[test]
fn an_operator_sets_numbers() {
    let mut end = End::new(config(Role::Acceptor, BeginString::Fix44));
    let End { session, store, .. } = &mut end;
    session.set_numbers(SequenceNumbers { next_in: 4, next_out: 1 }, store).expect("the store has room");
    assert_eq!(store.numbers(), SequenceNumbers { next_in: 4, next_out: 1 });
    session.set_numbers(SequenceNumbers { next_in: 4, next_out: 6 }, store).expect("the store has room");
    assert_eq!(store.numbers(), session.numbers());
    play_with(
        end,
        BeginString::Fix44,
        "
        connect
        < 35=A|34=4|98=0|108=30
        > 35=A|34=6|98=0|108=30
        ! logged on, heartbeat 30
        < 35=2|34=5|7=1|16=0
        > 35=4|34=1|43=Y|36=7|123=Y
        ",
    );
}

#[test]
fn messages_are_refused_before_the_logon_and_above_the_limit_of_the_output() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.limits.output = 100;
    let mut end = End::new(config);
    end.connect(BEGIN_NS);
    assert_eq!(end.send("8", "a", BEGIN_NS), Err(SendError::NotLoggedOn));
    end.receive(&logon(), BEGIN_NS);
    assert_eq!(end.send("8", "a", BEGIN_NS), Ok(2));
    assert_eq!(end.send("8", "b", BEGIN_NS), Err(SendError::Full));
    end.out.clear();
    assert_eq!(end.send("8", "b", BEGIN_NS), Ok(3), "a message that was refused used no number");
}

/// A store that fails from a number on.
struct FullStore {
    last: u64,
}

impl MessageStore for FullStore {
    fn append(&mut self, number: u64, _: &[u8]) -> Result<(), StoreError> {
        if number > self.last { Err(StoreError("no space is left; free some".to_owned())) } else { Ok(()) }
    }

    fn set_next_in(&mut self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    fn read(&mut self, _: u64, _: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn reset(&mut self, _: SequenceNumbers) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_store_that_fails_ends_the_session_and_uses_no_number() {
    let config: SessionConfig = config(Role::Acceptor, BeginString::Fix44);
    let mut session = End::new(config).session;
    let (mut out, mut reasons) = (Vec::new(), Vec::new());
    let mut events = |event: SessionEvent<'_>| {
        if let SessionEvent::Disconnect(reason) = event {
            reasons.push(reason);
        }
        AppAnswer::Taken
    };
    let mut io = SessionIo { out: &mut out, store: &mut FullStore { last: 1 }, events: &mut events };
    session.connected(BEGIN_NS, &mut io);
    session.receive(&logon(), BEGIN_NS, &mut io);
    let sent = send(&mut session, &mut io);
    assert!(matches!(sent, Err(SendError::Store(_))), "{sent:?}");
    let unsent = io.out.len();
    let test = frame("FIX.4.4", "35=1|34=2|49=THEM|56=US|52=20261130-09:00:00|112=x|");
    session.receive(&test, BEGIN_NS, &mut io);
    assert_eq!((session.state(), session.numbers().next_out), (SessionState::Closing, 2));
    assert_eq!(io.out.len(), unsent, "a message that is not stored is not sent");
    assert_eq!(reasons, [DisconnectReason::Store]);
}

fn send(session: &mut Session, io: &mut SessionIo<'_>) -> Result<u64, SendError> {
    session.send(b"8", BEGIN_NS, io, |body| body.text(tags::CL_ORD_ID, "a"))
}

fn logon() -> Vec<u8> {
    frame("FIX.4.4", "35=A|34=1|49=THEM|56=US|52=20261130-09:00:00|98=0|108=30|")
}

#[test]
fn a_connection_that_is_to_be_closed_ignores_what_arrives() {
    play_acceptor(&format!(
        "{LOGON}
        < 35=5|34=2
        > 35=5|34=2
        ! logged out
        ! end LogoutComplete
        = 3 3
        < 35=1|34=3|112=x
        wait 100
        = 3 3
        "
    ));
}
