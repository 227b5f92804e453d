//! Messages that a session or its application rejects.

use tickpath_fix::{AppAnswer, BeginString, FaultDetail, Rejection, Role, SessionRejectReason, ValidationRules};

use super::end::{BEGIN_NS, End, config, frame};
use super::script::{play, play_with};
use super::{LOGON, after_logon};

#[track_caller]
fn after_logon_in_full(script: &str) {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.fault_detail = FaultDetail::Full;
    play(config, &format!("{LOGON}{script}"));
}

#[track_caller]
fn with_answer(answer: AppAnswer, begin_string: BeginString, script: &str) {
    let mut end = End::new(config(Role::Acceptor, begin_string));
    end.answer = answer;
    play_with(end, begin_string, &format!("{LOGON}{script}"));
}

#[test]
fn a_wrong_comp_id_is_rejected_and_logged_out() {
    for ids in ["49=WT", "56=DLSI", "49=WT|56=DLSI"] {
        after_logon(&format!(
            "
            < 35=D|34=2|{ids}|11=a
            > 35=3|34=2|45=2|58=CompID problem|372=D|373=9
            > 35=5|34=3
            < 35=5|34=3
            ! logged out
            ! end LogoutComplete
            "
        ));
        after_logon_in_full(&format!(
            "
            < 35=D|34=2|{ids}|11=a
            > 35=3|34=2|45=2|58=CompID problem|372=D|373=9
            > 35=5|34=3|58=CompID problem
            "
        ));
    }
}

#[test]
fn a_time_that_is_far_from_now_is_rejected_and_logged_out() {
    for time in ["-121", "+121"] {
        after_logon(&format!(
            "
            < 35=0|34=2|52={time}
            > 35=3|34=2|45=2|58=SendingTime accuracy problem|372=0|373=10
            > 35=5|34=3
            < 35=5|34=3
            ! logged out
            ! end LogoutComplete
            "
        ));
        after_logon_in_full(&format!(
            "
            < 35=0|34=2|52={time}
            > 35=3|34=2|45=2|58=SendingTime accuracy problem|371=52|372=0|373=10
            > 35=5|34=3|58=SendingTime accuracy problem, field=52
            "
        ));
    }
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.max_latency_s = None;
    play(config, &format!("{LOGON}\n < 35=1|34=2|52=-1000000|112=x\n > 35=0|34=2|112=x"));
}

#[test]
fn another_version_is_logged_out_and_may_still_answer() {
    after_logon(
        "
        < 35=1|8=FIX.4.1|34=2|112=x
        > 35=5|34=2|58=Incorrect BeginString
        < 35=5|34=3
        ! logged out
        ! end LogoutComplete
        ",
    );
    after_logon(
        "
        < 35=1|8=FIX.4.1|34=2|112=x
        > 35=5|34=2|58=Incorrect BeginString
        wait 2
        ! logged out
        ! end LogoutTimeout
        ",
    );
}

#[test]
fn full_detail_names_the_tag() {
    after_logon_in_full(
        "
        < 35=*|34=2
        > 35=3|34=2|45=2|58=Invalid MsgType|371=35|372=*|373=11
        < 35=4|34=0|36=1
        > 35=3|34=3|45=0|58=Value is incorrect (out of range) for this tag|371=36|372=4|373=5
        < 35=D|34=2|43=Y|122=+10|11=a
        > 35=3|34=4|45=2|58=SendingTime accuracy problem|371=122|372=D|373=10
        > 35=5|34=5|58=SendingTime accuracy problem, field=122
        ",
    );
}

#[test]
fn missing_fields_empty_values_and_unknown_types_are_rejected() {
    after_logon(
        "
        < 35=0|34=2|56=
        > 35=3|34=2|45=2|58=Required tag missing|371=56|372=0|373=1
        < 35=D|34=3|11=a|58=
        > 35=3|34=3|45=3|58=Tag specified without a value|371=58|372=D|373=4
        < 35=*|34=4
        > 35=3|34=4|45=4|58=Invalid MsgType|372=*|373=11
        = 5 5
        ",
    );
}

#[test]
fn lenient_rules_accept_an_empty_value_but_no_empty_comp_id() {
    let mut config = config(Role::Acceptor, BeginString::Fix44);
    config.rules = ValidationRules::LENIENT;
    let mut end = End::new(config);
    end.connect(BEGIN_NS);
    let message = |fields: &str| frame("FIX.4.4", fields);
    end.receive(&message("35=A|34=1|49=THEM|56=US|52=20261130-09:00:00|98=0|108=30|"), BEGIN_NS);
    end.receive(&message("35=D|34=2|49=THEM|56=US|52=20261130-09:00:00|11=a|58=|"), BEGIN_NS);
    assert_eq!(end.delivered, ["a"]);
    end.receive(&message("35=D|34=3|49=|56=US|52=20261130-09:00:00|11=b|"), BEGIN_NS);
    assert_eq!(end.delivered, ["a"]);
}

#[test]
fn the_application_rejects_messages() {
    with_answer(
        AppAnswer::UnsupportedType,
        BeginString::Fix44,
        "
        < 35=D|34=2|11=a
        > 35=j|34=2|45=2|58=Unsupported Message Type|372=D|380=3
        ! message 2 D
        = 3 3
        ",
    );
    with_answer(
        AppAnswer::BusinessReject { reason: 4, text: "the desk is closed".into() },
        BeginString::Fix44,
        "
        < 35=D|34=2|11=a
        > 35=j|34=2|45=2|58=the desk is closed|372=D|380=4
        ! message 2 D
        ",
    );
    with_answer(
        AppAnswer::Reject(Rejection::new(SessionRejectReason::ValueIncorrect, Some(11))),
        BeginString::Fix44,
        "
        < 35=D|34=2|11=a
        > 35=3|34=2|45=2|58=Value is incorrect (out of range) for this tag|371=11|372=D|373=5
        ! message 2 D
        ",
    );
}

#[test]
fn versions_before_4_2_have_the_sessions_reject_alone() {
    with_answer(
        AppAnswer::UnsupportedType,
        BeginString::Fix41,
        "
        < 35=D|34=2|11=a
        > 35=3|34=2|45=2|58=Unsupported Message Type
        ! message 2 D
        ",
    );
}

#[test]
fn a_reject_of_the_peer_is_reported() {
    after_logon(
        "
        < 35=3|34=2|45=1|58=no
        ! rejected 1: no
        = 3 2
        ",
    );
}
