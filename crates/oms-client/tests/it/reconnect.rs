//! The events of a program when its connection is lost and made again.

use tickpath_market::{ClientOrderId, ExecId, ExecutionReport, Kind as Message, ReportDetail};
use tickpath_oms_client::{ClientError, ClientEvent, ClientSendError, Config, Since};
use tickpath_oms_protocol::{DETAILS_VERSION, FrameKind, Logon, LogonRejectReason, Welcome};
use zerocopy::IntoBytes;

use crate::fake_oms::{
    FakeOms, FakePeer, JOURNAL, back, event_keys, lost, order, report, reports, until, until_over, welcome,
};

#[test]
fn a_client_resumes_after_a_disconnect() {
    for oms in [FakeOms::unix(), FakeOms::tcp()] {
        let (mut client, mut peer) = oms.meet(oms.config(), welcome(10, 100));
        for id in 0..5 {
            client.send(&order(id)).unwrap();
        }
        assert_eq!(peer.requests(5), [10, 11, 12, 13, 14]);
        peer.report(100..103);
        // Reports from before the cut are passed on before the loss is reported.
        drop(peer);
        let mut events = lost(&mut client);
        assert_eq!(event_keys(&events), ["connected", "report 100", "report 101", "report 102", "disconnected"]);
        assert!(!client.is_connected());
        assert_eq!(client.send(&order(9)), Err(ClientSendError::Disconnected(order(9))));

        let mut peer = oms.accept();
        let logon = peer.let_in(welcome(13, 103));
        assert_eq!((logon.session, logon.journal, logon.next_report), (3, JOURNAL, 103));
        assert_eq!(logon.last_sum, crc32c::crc32c(report(102).as_bytes()));
        peer.report([103]);
        events = reports(&mut client, 1);
        assert_eq!(event_keys(&events), ["connected", "not taken 13 3", "not taken 14 4", "report 103"]);
        assert_eq!(client.send(&order(9)), Ok(13));
        assert_eq!(peer.requests(1), [13], "and nothing was sent by itself");
        let counts = client.counts();
        assert_eq!((counts.reports, counts.gaps, counts.duplicates, counts.losses), (4, 0, 0, 1));
    }
}

#[test]
fn confirmed_requests_are_not_returned() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    for id in 0..5 {
        client.send(&order(id)).unwrap();
    }
    peer.requests(5);
    peer.beat(4);
    peer.report([0]);
    reports(&mut client, 1);
    drop(peer);
    lost(&mut client);
    // A journal that has lost its end forgets requests that it took, and sends reports again.
    oms.accept().let_in(welcome(2, 0));
    assert_eq!(event_keys(&back(&mut client)), ["connected", "again 0 1", "forgotten 2 4", "not taken 4 4"]);
    assert_eq!(client.since(), Since::Report { journal: JOURNAL, number: 0, last_sum: 0 });
}

#[test]
fn another_journal_is_reported_and_open_requests_are_in_doubt() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 50));
    client.send(&order(1)).unwrap();
    peer.report([50]);
    reports(&mut client, 1);
    drop(peer);
    lost(&mut client);
    let mut peer = oms.accept();
    peer.let_in(Welcome { journal: 88, ..welcome(0, 0) });
    peer.report([0]);
    let keys = event_keys(&reports(&mut client, 1));
    assert_eq!(keys, ["connected", "journal 77 88", "in doubt 0 1", "report 0"]);
    assert_eq!(client.send(&order(2)), Ok(0));
}

#[test]
fn numbers_used_by_another_client_leave_requests_in_doubt() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    client.send(&order(1)).unwrap();
    drop(peer);
    lost(&mut client);
    oms.accept().let_in(welcome(5, 7));
    assert_eq!(event_keys(&back(&mut client)), ["connected", "gap 0 7", "in doubt 0 1"]);
    assert_eq!(client.send(&order(2)), Ok(5));
}

#[test]
fn a_restarted_program_resumes_from_its_last_report() {
    let oms = FakeOms::unix();
    let since = Since::Report { journal: JOURNAL, number: 5, last_sum: 1 };
    for (expected, welcome) in [
        (vec!["connected"], welcome(0, 5)),
        (vec!["connected", "gap 5 8"], welcome(0, 8)),
        (vec!["connected", "again 2 5"], welcome(0, 2)),
        (vec!["connected", "journal 77 9"], Welcome { journal: 9, ..welcome(0, 0) }),
    ] {
        let (mut client, _peer) = oms.meet(Config { since, ..oms.config() }, welcome);
        assert_eq!(event_keys(&back(&mut client)), expected);
    }
    let (mut client, _peer) = oms.meet(Config { since: Since::Start, ..oms.config() }, welcome(0, 30));
    assert_eq!(
        event_keys(&back(&mut client)),
        ["connected"],
        "the day's first report is the first, whatever its number"
    );
}

#[test]
fn a_repeated_failure_is_reported_once() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    drop(peer);
    lost(&mut client);
    for refusal in
        [LogonRejectReason::Full, LogonRejectReason::Full, LogonRejectReason::Stopping, LogonRejectReason::Full]
    {
        let mut peer = oms.accept();
        peer.logon();
        peer.refuse(refusal, &format!("{refusal:?}"));
    }
    oms.accept().let_in(welcome(0, 0));
    let events = back(&mut client);
    assert_eq!(event_keys(&events), ["failed", "failed", "failed", "connected"]);
    assert!(matches!(&events[1], ClientEvent::Failed { why } if why.to_string().contains("Stopping")), "{events:?}");
}

#[test]
fn a_changed_password_ends_the_client() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    client.send(&order(1)).unwrap();
    peer.requests(1);
    drop(peer);
    lost(&mut client);
    let mut peer = oms.accept();
    peer.logon();
    peer.refuse(LogonRejectReason::Password, "the user is disabled");
    let (events, why) = until_over(&mut client);
    assert_eq!(event_keys(&events), ["in doubt 0 1"]);
    assert!(matches!(why, ClientError::Refused { refusal: Some(LogonRejectReason::Password), .. }), "{why}");
    assert_eq!(client.send(&order(2)), Err(ClientSendError::Disconnected(order(2))));
    assert_eq!(peer.hear(), None);
}

#[test]
fn a_client_does_not_retake_a_session_taken_over() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    peer.refuse(LogonRejectReason::InUse, "another logon has taken the session over");
    let (events, why) = until_over(&mut client);
    assert_eq!(event_keys(&events), ["connected", "disconnected"]);
    assert!(why.to_string().contains("taken the session over"), "{why}");
}

#[test]
fn a_reconnect_leaves_a_session_to_the_client_that_holds_it() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    client.send(&order(1)).unwrap();
    drop(peer);
    lost(&mut client);
    let mut peer = oms.accept();
    assert_eq!(peer.logon().0.features & Logon::RECONNECT, Logon::RECONNECT);
    peer.refuse(LogonRejectReason::InUse, "another client has taken session 3 meanwhile");
    let (events, why) = until_over(&mut client);
    assert_eq!(event_keys(&events), ["in doubt 0 1"]);
    assert!(why.to_string().contains("another client"), "{why}");
}

#[test]
fn another_clients_requests_leave_own_requests_in_doubt() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    client.send(&order(1)).unwrap();
    drop(peer);
    lost(&mut client);
    // The other client has sent as many requests as this one.
    oms.accept().let_in(Welcome { others: 1, ..welcome(1, 0) });
    assert_eq!(event_keys(&back(&mut client)), ["connected", "in doubt 0 1"]);
    assert_eq!(client.send(&order(2)), Ok(1));
}

#[test]
fn a_client_reconnects_after_a_logout_of_the_oms() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    peer.report([0]);
    peer.say_text(FrameKind::Logout, &[], b"the OMS stops");
    let events = lost(&mut client);
    assert_eq!(event_keys(&events), ["connected", "report 0", "disconnected"]);
    assert!(matches!(&events[2], ClientEvent::Disconnected { why } if why.to_string().contains("the OMS stops")));
    oms.accept().let_in(welcome(0, 1));
    back(&mut client);
}

#[test]
fn without_reconnects_a_loss_ends_the_client() {
    let oms = FakeOms::tcp();
    let (mut client, mut peer) = oms.meet(Config { reconnect: false, ..oms.config() }, welcome(0, 0));
    client.send(&order(1)).unwrap();
    client.send(&order(2)).unwrap();
    peer.requests(2);
    peer.beat(1);
    peer.report([0]);
    drop(peer);
    let (events, why) = until_over(&mut client);
    assert_eq!(event_keys(&events), ["connected", "report 0", "disconnected", "in doubt 1 2"]);
    assert!(matches!(why, ClientError::Closed | ClientError::Lost(_)), "{why}");
}

#[test]
fn answered_requests_are_not_in_doubt() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    for id in 1..4 {
        client.send(&order(id)).unwrap();
    }
    peer.requests(3);
    // Also a report that answers no request, and a report of an order that was answered before.
    for (number, id) in [(0, 1), (1, 0), (2, 1), (3, 2)] {
        let report = ExecutionReport { client_order_id: ClientOrderId(id), ..report(number) };
        peer.say(Message::ExecutionReport.code(), number, 0, report.as_bytes());
    }
    reports(&mut client, 4);
    peer.refuse(LogonRejectReason::InUse, "another logon has taken the session over");
    let (events, _) = until_over(&mut client);
    assert_eq!(event_keys(&events), ["disconnected", "in doubt 2 3"]);
}

#[test]
fn a_dropped_client_stops_reconnecting() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    drop(peer);
    lost(&mut client);
    // The pause before the next attempt grows.
    for _ in 0..5 {
        drop(oms.accept());
    }
    drop(client);
    tickpath_clock::sleep_ns(1_000_000_000);
    assert!(!oms.is_called(), "a logon of a client that is gone would take its successor's session");
}

#[test]
fn repeated_losses_slow_the_reconnects() {
    let oms = FakeOms::unix();
    let (mut client, peer) = oms.meet(oms.config(), welcome(0, 0));
    drop(peer);
    let clock = tickpath_clock::HostClock::get().unwrap();
    let from = tickpath_clock::Clock::ticks(&clock);
    for _ in 0..5 {
        lost(&mut client);
        oms.accept().let_in(welcome(0, 0));
    }
    let passed = tickpath_clock::Clock::ns_between(&clock, from, tickpath_clock::Clock::ticks(&clock));
    assert!(passed > 10_000_000 * (1 + 2 + 4 + 8 + 16), "five connections within {passed} ns");
}

#[test]
fn reports_behind_the_welcome_are_delivered_before_a_sleep() {
    let oms = FakeOms::unix();
    let (client, _peer) = oms.beside(oms.config(), |mut peer| {
        let (_, server_final) = peer.prove_right();
        let mut out = Vec::new();
        tickpath_oms_protocol::write_frame_with_text(
            &mut out,
            FrameKind::Welcome.code(),
            0,
            0,
            welcome(0, 0).as_bytes(),
            &server_final,
        );
        let kind = tickpath_market::Kind::ExecutionReport.code();
        for number in 0..3 {
            tickpath_oms_protocol::write_frame(&mut out, kind, number, 0, report(number).as_bytes());
        }
        peer.say_bytes(&out);
        peer
    });
    let mut client = client.unwrap();
    // A client that starts again before these events were reported asks for them.
    assert!(matches!(client.since(), Since::Report { number: 0, .. }), "{:?}", client.since());
    let events = until(&mut client, "what is there", |events| !events.is_empty());
    assert_eq!(event_keys(&events), ["connected", "report 0", "report 1", "report 2"]);
    assert!(matches!(client.since(), Since::Report { number: 3, .. }), "{:?}", client.since());
}

/// Returns the detail with this number.
fn detail(number: u64) -> ReportDetail {
    ReportDetail { exec_id: ExecId(number), ..ReportDetail::default() }
}

fn send_details(peer: &mut FakePeer, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        peer.say(Message::ReportDetail.code(), number, 0, detail(number).as_bytes());
    }
}

#[test]
fn details_resume_by_numbers_of_their_own() {
    let oms = FakeOms::unix();
    let newer = |next_report, next_detail| Welcome { version: DETAILS_VERSION, next_detail, ..welcome(0, next_report) };
    let (mut client, mut peer) = oms.meet(oms.config(), newer(5, 2));
    peer.report([5]);
    send_details(&mut peer, [2, 3]);
    peer.report([6]);
    let events = reports(&mut client, 2);
    assert_eq!(event_keys(&events), ["connected", "report 5", "detail 2", "detail 3", "report 6"]);
    drop(peer);
    lost(&mut client);

    let mut peer = oms.accept();
    let logon = peer.let_in(newer(7, 4));
    assert_eq!((logon.next_report, logon.next_detail), (7, 4));
    assert_eq!(logon.last_detail_sum, crc32c::crc32c(detail(3).as_bytes()));
    // A duplicate is dropped, and a hole is counted.
    send_details(&mut peer, [3, 4, 6]);
    peer.report([7]);
    assert_eq!(event_keys(&reports(&mut client, 1)), ["connected", "detail 4", "detail 6", "report 7"]);
    let counts = client.counts();
    assert_eq!((counts.details, counts.missing_details, counts.duplicates, counts.gaps), (4, 1, 1, 0));
    drop(peer);
    lost(&mut client);

    // An older OMS sends none, and the numbers of the next one are not known.
    let mut peer = oms.accept();
    peer.let_in(welcome(0, 8));
    back(&mut client);
    drop(peer);
    lost(&mut client);
    let logon = oms.accept().let_in(newer(8, Logon::DETAILS_BEHIND));
    assert_eq!((logon.next_detail, logon.last_detail_sum), (Logon::DETAILS_BEHIND, 0));
}
