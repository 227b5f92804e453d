//! Logon of both roles, its refusals, resets, and NextExpectedMsgSeqNum (789).

use tickpath_fix::{
    AppAnswer, BeginString, FaultDetail, LogonRecipe, LogonSecret, LogonSigner, MessageStore, Role, SequenceNumbers,
    SessionConfig,
};

use super::LOGON;
use super::end::{BEGIN_NS, End, config, shown};
use super::script::{play, play_acceptor, play_initiator, play_with};

fn acceptor(change: impl FnOnce(&mut SessionConfig)) -> SessionConfig {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    change(&mut config);
    config
}

#[track_caller]
fn play_with_numbers(config: SessionConfig, next_in: u64, next_out: u64, script: &str) {
    let begin_string = config.begin_string;
    play_with(End::with_numbers(config, SequenceNumbers { next_in, next_out }), begin_string, script);
}

#[test]
fn a_logon_of_another_session_ends_the_connection_without_an_answer() {
    for (logon, end) in [
        ("35=A|34=1|49=WT|98=0|108=30", "InvalidLogon"),
        ("35=A|34=1|56=DLSI|98=0|108=30", "InvalidLogon"),
        ("35=A|34=1|52=-121|98=0|108=30", "InvalidLogon"),
        ("35=A|34=1|52=+121|98=0|108=30", "InvalidLogon"),
        ("35=A|8=FIX.3.9|34=1|98=0|108=30", "InvalidLogon"),
        ("35=A|98=0|108=30", "InvalidLogon"),
        ("35=A|34=1|98=0", "InvalidLogon"),
        ("35=A|34=1|98=0|108=30|112=x", "InvalidLogon"),
        ("35=0|34=1", "NoLogon"),
        ("35=D|34=1|11=a", "NoLogon"),
        ("35=5|34=1", "NoLogon"),
    ] {
        play_acceptor(&format!("connect\n < {logon}\n ! end {end}\n = 1 1"));
    }
    play_acceptor("connect\n raw 8=FIX.4.4|9=4|35=A|34=1|49=THEM|56=US|98=0|108=30|10=000|\n ! end InvalidLogon");
}

#[test]
fn a_wrong_logon_is_answered_in_full_detail() {
    for (logon, text) in [
        ("35=A|34=1|52=-121|98=0|108=30", "Invalid Logon message: SendingTime accuracy problem, field=52"),
        ("35=A|34=1|98=0", "Invalid Logon message: Required tag missing, field=108"),
    ] {
        let config = acceptor(|config| config.fault_detail = FaultDetail::Full);
        play(config, &format!("connect\n < {logon}\n > 35=5|34=1|58={text}\n ! end InvalidLogon"));
    }
}

#[test]
fn an_interval_that_cannot_be_is_refused() {
    for (interval, text) in [("-1", "HeartBtInt must not be negative"), ("4294967296", "HeartBtInt is too large")] {
        play_acceptor(&format!(
            "connect\n < 35=A|34=1|98=0|108={interval}\n > 35=5|34=1|58={text}\n ! end InvalidLogon"
        ));
    }
}

#[test]
fn the_application_may_refuse_a_logon() {
    let mut end = End::new(acceptor(|_| {}));
    end.answer = AppAnswer::RefuseLogon("wrong password".into());
    play_with(
        end,
        BeginString::Fix44,
        "
        connect
        < 35=A|34=1|98=0|108=30|553=u|554=p
        > 35=5|34=1|58=wrong password
        ! end LogonRefused
        = 1 2
        ",
    );
}

#[test]
fn a_refused_initiator_learns_the_reason() {
    play_initiator(
        "
        connect
        > 35=A|34=1|98=0|108=30
        < 35=5|34=1|58=wrong password
        ! logged out: wrong password
        ! end LogonRefusedByPeer
        = 2 2
        ",
    );
    play_initiator("connect\n > 35=A|34=1|98=0|108=30\n < 35=1|34=1|112=x\n ! end NoLogon");
}

#[test]
fn a_logon_with_a_low_number_is_refused_and_one_with_a_high_number_recovered() {
    play_with_numbers(
        acceptor(|_| {}),
        7,
        9,
        "
        connect
        < 35=A|34=6|98=0|108=30
        > 35=5|34=9|58=MsgSeqNum too low, expecting 7 but received 6
        ! end NumberTooLow
        lost
        connect
        < 35=A|34=8|98=0|108=30
        > 35=A|34=10|98=0|108=30
        ! logged on, heartbeat 30
        > 35=2|34=11|7=7|16=0
        < 35=4|34=7|43=Y|122=-1|36=9|123=Y
        ! skipped 7 to 9
        = 9 12
        ",
    );
}

#[test]
fn an_initiator_recovers_what_was_sent_before_the_acceptors_logon() {
    play_with_numbers(
        config(Role::Initiator, BeginString::Fix44),
        7,
        9,
        "
        connect
        > 35=A|34=9|98=0|108=30
        < 35=A|34=9|98=0|108=30
        ! logged on, heartbeat 30
        > 35=2|34=10|7=7|16=0
        < 35=8|34=7|43=Y|122=-1|11=a
        ! message 7 8, duplicate
        < 35=8|34=8|43=Y|122=-1|11=b
        ! message 8 8, duplicate
        = 10 11
        ",
    );
}

#[test]
fn an_acceptor_that_resets_on_logon_needs_no_flag() {
    let config = acceptor(|config| config.reset_on_logon = true);
    play_with_numbers(
        config,
        7,
        9,
        "
        connect
        < 35=A|34=5|98=0|108=30
        > 35=A|34=1|98=0|108=30
        ! reset
        ! logged on, heartbeat 30
        > 35=2|34=2|7=1|16=0
        < 35=5|34=6
        > 35=5|34=3
        ! logged out
        ! end LogoutComplete
        ",
    );
}

#[test]
fn a_reset_that_the_acceptor_does_not_answer_ends_the_connection() {
    let mut config = config(Role::Initiator, BeginString::Fix44);
    config.reset_on_logon = true;
    play(
        config,
        "
        connect
        > 35=A|34=1|98=0|108=30|141=Y
        < 35=A|34=8|98=0|108=30
        > 35=5|34=2|58=ResetSeqNumFlag (141) of the Logon was not answered
        ! end LogonNumbers
        ",
    );
}

#[test]
fn numbers_restart_after_a_logout_or_a_lost_connection_if_configured() {
    play(
        acceptor(|config| config.reset_on_logout = true),
        &format!("{LOGON}\n < 35=5|34=2\n > 35=5|34=2\n ! reset\n ! logged out\n ! end LogoutComplete\n = 1 1"),
    );
    play(
        acceptor(|config| config.reset_on_disconnect = true),
        &format!("{LOGON}\n lost\n ! logged out\n ! reset\n = 1 1"),
    );
    let mut initiator = config(Role::Initiator, BeginString::Fix44);
    initiator.reset_on_logout = true;
    play(initiator, "connect\n > 35=A|34=1|98=0|108=30|141=Y\n lost\n = 1 2");
}

#[test]
fn an_operator_restarts_the_numbers_of_a_session_that_is_logged_on() {
    play_acceptor(&format!(
        "{LOGON}
        restart
        > 35=A|34=1|98=0|108=30|141=Y
        < 35=8|34=2|11=a
        ! message 2 8
        < 35=A|34=1|98=0|108=30|141=Y
        ! reset
        = 2 2
        send 8 b
        > 35=8|34=2|11=b
        "
    ));
    play_acceptor(&format!(
        "{LOGON}
        restart
        > 35=A|34=1|98=0|108=30|141=Y
        wait 10
        > 35=5|34=2|58=no answer to the Logon with ResetSeqNumFlag (141)
        ! logged out
        ! end LogonTimeout
        "
    ));
}

#[test]
fn a_restart_without_a_connection_is_announced_by_the_next_logon() {
    play_with_numbers(
        acceptor(|_| {}),
        7,
        9,
        "
        restart
        ! reset
        connect
        < 35=A|34=7|98=0|108=30
        > 35=A|34=1|98=0|108=30|141=Y
        ! reset
        ! logged on, heartbeat 30
        = 2 2
        ",
    );
    play_with_numbers(
        config(Role::Initiator, BeginString::Fix44),
        7,
        9,
        "
        restart
        ! reset
        connect
        > 35=A|34=1|98=0|108=30|141=Y
        lost
        connect
        > 35=A|34=1|98=0|108=30|141=Y
        ! reset
        < 35=A|34=1|98=0|108=30|141=Y
        ! logged on, heartbeat 30
        lost
        ! logged out
        connect
        > 35=A|34=2|98=0|108=30
        ",
    );
}

#[test]
fn a_second_logon_without_a_reset_ends_the_session() {
    play_acceptor(&format!(
        "{LOGON}
        < 35=A|34=1|43=Y|122=-1|98=0|108=30
        < 35=A|34=2|98=0|108=30
        > 35=5|34=2|58=a Logon in a session that is logged on needs ResetSeqNumFlag (141)
        ! logged out
        ! end SecondLogon
        "
    ));
}

#[test]
fn both_sides_resend_by_the_expected_numbers_of_the_logons() {
    play_with_numbers(
        acceptor(|config| config.next_expected = true),
        5,
        8,
        "
        connect
        < 35=A|34=7|98=0|108=30|789=6
        > 35=A|34=8|98=0|108=30|789=5
        ! logged on, heartbeat 30
        > 35=4|34=6|43=Y|36=9|123=Y
        = 5 9
        < 35=4|34=5|43=Y|122=-1|36=8|123=Y
        ! skipped 5 to 8
        = 8 9
        ",
    );
    play_with_numbers(
        acceptor(|config| config.next_expected = true),
        5,
        8,
        "
        connect
        < 35=A|34=5|98=0|108=30|789=99
        > 35=5|34=8|58=Tag 789 (NextExpectedMsgSeqNum) is higher than expected. Expected 8, Received 99
        ! end LogonNumbers
        = 5 9
        ",
    );
}

#[test]
fn a_reset_with_expected_numbers_expects_2() {
    play_with_numbers(
        acceptor(|config| config.next_expected = true),
        2_000,
        2_000,
        "
        connect
        < 35=A|34=1|98=0|108=30|141=Y|789=1
        > 35=A|34=1|98=0|108=30|141=Y|789=2
        ! reset
        ! logged on, heartbeat 30
        ",
    );
}

#[test]
fn a_peer_without_expected_numbers_is_asked_for_a_resend() {
    play_with_numbers(
        acceptor(|config| config.next_expected = true),
        5,
        8,
        "
        connect
        < 35=A|34=7|98=0|108=30
        > 35=A|34=8|98=0|108=30|789=5
        ! logged on, heartbeat 30
        > 35=2|34=9|7=5|16=0
        ",
    );
}

#[test]
fn fixt_sessions_exchange_the_applications_version() {
    let fixt = || config(Role::Acceptor, BeginString::Fixt11);
    play(fixt(), "connect\n < 35=A|34=1|98=0|108=30\n ! end InvalidLogon");
    play(
        fixt(),
        "
        connect
        < 35=A|34=1|98=0|108=30|1137=9
        > 35=A|34=1|98=0|108=30|1137=9
        ! logged on, heartbeat 30
        < 35=D|34=2|1128=9|11=a
        ! message 2 D
        < 35=D|34=3|1128=7|11=a
        > 35=3|34=2|45=3|58=Unsupported ApplVerID|371=1128|372=D|373=99
        = 4 3
        ",
    );
    let mut own = config(Role::Initiator, BeginString::Fixt11);
    own.default_appl_ver_id = Some("9".to_owned());
    own.appl_ver_id = Some("9".to_owned());
    play(
        own,
        "
        connect
        > 35=A|34=1|98=0|108=30|1137=9
        < 35=A|34=1|98=0|108=30|1137=9
        ! logged on, heartbeat 30
        send D a
        > 35=D|34=2|1128=9|11=a
        ",
    );
}

#[test]
fn credentials_are_in_the_logon_and_not_in_the_store() {
    let mut config = config(Role::Initiator, BeginString::Fix44);
    config.logon_fields = vec![(554, b"secret".to_vec())];
    let mut end = End::new(config);
    end.connect(BEGIN_NS);
    assert_eq!(shown(&end.out), ["35=A|34=1|98=0|108=30|554=secret|"]);
    let is_stored = end.store.read(1, &mut |_: &[u8]| {}).expect("a store in memory does not fail");
    assert!(!is_stored, "the Logon must not be in the store");
    assert_eq!(end.store.numbers().next_out, 2);
}

#[test]
fn a_signer_writes_its_fields_into_each_logon() {
    let mut end = End::new(config(Role::Initiator, BeginString::Fix44));
    let recipe = LogonRecipe::Password { username: "desk".to_owned(), password: LogonSecret::from("secret") };
    end.session.set_signer(LogonSigner::new(recipe).expect("the recipe is right"));
    for number in [1, 2] {
        end.connect(BEGIN_NS);
        let logon = format!("35=A|34={number}|98=0|108=30|553=desk|554=secret|");
        assert_eq!(shown(&end.out), [logon]);
        end.disconnect(BEGIN_NS);
    }
}
