//! Messages over a connection that holds.

use tickpath_clock::{Clock, HostClock};
use tickpath_market::{Kind as Message, NewOrder, OrderDenied, Request};
use tickpath_oms_client::{Client, ClientEvent, ClientSendError, Since};
use tickpath_oms_protocol::{FrameHeader, FrameKind, Query, Status, Welcome, write_frame_with_text};
use zerocopy::IntoBytes;

use crate::fake_oms::{FakeOms, FakePeer, JOURNAL, back, event_keys, lost, order, report, reports, until, welcome};

#[test]
fn requests_and_reports_pass_over_unix_and_tcp() {
    for oms in [FakeOms::unix(), FakeOms::tcp()] {
        let (mut client, mut peer) = oms.meet(oms.config(), welcome(5, 9));
        assert!(client.is_connected());
        assert_eq!((client.welcome().session, client.welcome().journal), (3, JOURNAL));
        let clock = HostClock::get().unwrap();
        let before = clock.ticks();
        assert_eq!(client.send(&order(1)), Ok(5));
        let after = clock.ticks();
        assert_eq!(client.send_at(&order(2), 42), Ok(6));
        let (first, second) = (peer.hear().unwrap(), peer.hear().unwrap());
        assert_eq!(Request::read(first.kind, &first.payload), Ok(order(1)));
        assert_eq!((first.number, (before..=after).contains(&first.stamp)), (5, true));
        assert_eq!((second.number, second.stamp, second.payload.as_slice()), (6, 42, order(2).as_bytes()));

        peer.report([9, 10]);
        let denied = OrderDenied { code: 7, ..OrderDenied::default() };
        peer.say(Message::OrderDenied.code(), 11, 99, denied.as_bytes());
        let events = until(&mut client, "a denial", |events| matches!(events.last(), Some(ClientEvent::Denied { .. })));
        assert_eq!(event_keys(&events), ["connected", "report 9", "report 10", "denied 11"]);
        assert!(matches!(events[3], ClientEvent::Denied { stamp: 99, denial, .. } if denial == denied));
        assert_eq!(client.counts().reports, 3);
        let Since::Report { journal, number, last_sum } = client.since() else { panic!("{:?}", client.since()) };
        assert_eq!((journal, number, last_sum), (JOURNAL, 12, crc32c::crc32c(denied.as_bytes())));
    }
}

#[test]
fn queued_requests_are_sent_together() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    for id in 0..100 {
        assert_eq!(client.enqueue(&order(id), id), Ok(id));
    }
    client.flush();
    assert_eq!(peer.requests(100), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_logon_carries_the_programs_configuration() {
    let oms = FakeOms::unix();
    let known = Since::Report { journal: 5, number: 6, last_sum: 7 };
    for (since, asked) in [(Since::Start, (0, 0, 0)), (Since::Now, (0, u64::MAX, 0)), (known, (5, 6, 7))] {
        for session in [None, Some(8)] {
            let mut config = oms.config();
            (config.since, config.session, config.heartbeat_ms) = (since, session, 250);
            let (client, logon) = oms.beside(config, |mut peer| peer.let_in(welcome(0, 0)));
            client.unwrap();
            assert_eq!((logon.journal, logon.next_report, logon.last_sum), asked);
            assert_eq!((logon.session, logon.heartbeat_ms), (session.unwrap_or(u16::MAX), 250));
        }
    }
}

#[test]
fn gaps_and_duplicates_are_reported_and_counted() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 3));
    peer.report([3, 4, 4, 7, 3, 8]);
    let keys = event_keys(&reports(&mut client, 4));
    assert_eq!(keys, ["connected", "report 3", "report 4", "double 4", "gap 5 7", "report 7", "double 3", "report 8"]);
    let counts = client.counts();
    assert_eq!((counts.reports, counts.gaps, counts.missing, counts.duplicates), (4, 1, 2, 2));
}

#[test]
fn reports_are_read_byte_by_byte_and_from_another_version() {
    let oms = FakeOms::tcp();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    let mut longer = report(0).as_bytes().to_vec();
    longer.extend_from_slice(&[9; 16]);
    let head = FrameHeader {
        length: longer.len() as u32,
        kind: Message::ExecutionReport.code(),
        fixed: longer.len() as u16,
        ..FrameHeader::default()
    };
    for byte in [head.as_bytes(), &longer].concat() {
        peer.say_bytes(&[byte]);
    }
    peer.say(200, 0, 0, b"what nobody knows yet");
    peer.say(Message::ExecutionReport.code(), 1, 0, &report(1).as_bytes()[..56]);
    let events = until(&mut client, "two reports", |events| events.len() == 3);
    assert!(matches!(events[1], ClientEvent::Report { report: whole, .. } if whole == report(0)));
    assert!(
        matches!(events[2], ClientEvent::Report { report: short, .. } if short == report(1)),
        "the rest of it is zero"
    );
    assert_eq!(client.counts().unknown_frames, 1);
}

#[test]
fn queries_and_admin_commands_have_no_number() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    client.query(Query { what: Query::ORDERS, ..Query::default() }).unwrap();
    client.admin_command(77, b"an operator's word").unwrap();
    assert_eq!(client.send(&order(1)), Ok(0));
    let (query, word, request) = (peer.hear().unwrap(), peer.hear().unwrap(), peer.hear().unwrap());
    assert_eq!((query.kind, query.payload.len()), (FrameKind::Query.code(), size_of::<Query>()));
    assert_eq!((word.kind, word.payload.as_slice()), (77, &b"an operator's word"[..]));
    assert_eq!(request.number, 0);

    peer.say(FrameKind::OrderRow.code(), 0, 4, report(0).as_bytes());
    peer.say(FrameKind::Answer.code(), 0, 0, &[]);
    peer.say(FrameKind::Answer.code(), 0, 0, Status { pid: 123, ..Status::default() }.as_bytes());
    let events = until(&mut client, "answers", |events| events.len() == 4);
    assert_eq!(event_keys(&events), ["connected", "row 4", "answered 0", "answered 123"]);
}

#[test]
fn an_invalid_request_is_not_sent() {
    let oms = FakeOms::unix();
    let (mut client, _peer) = oms.meet(oms.config(), welcome(0, 0));
    let sideless = Request::New(NewOrder::default());
    let refused = client.send(&sideless).unwrap_err();
    assert!(matches!(refused, ClientSendError::Malformed { given, .. } if given == sideless));
    assert!(refused.to_string().contains("side"), "{refused}");
    assert_eq!(client.send(&order(1)), Ok(0), "it has used no number");
}

#[test]
fn a_deaf_oms_blocks_no_send_and_gets_each_request_once() {
    for oms in [FakeOms::unix(), FakeOms::tcp()] {
        let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
        let mut sent = 0;
        let full = loop {
            match client.send(&order(sent)) {
                Ok(number) => assert_eq!(number, sent),
                Err(full) => break full,
            }
            sent += 1;
        };
        assert_eq!(full, ClientSendError::Full(order(sent)));
        assert_eq!(full.into_inner(), order(sent));
        let all = sent + 1000;
        let reading = std::thread::spawn(move || (peer.requests(all as usize), peer));
        while sent < all {
            match client.send(&order(sent)) {
                Ok(_) => sent += 1,
                Err(_) => client.wait(1_000_000_000),
            }
        }
        while !reading.is_finished() {
            client.wait(1_000_000);
            client.poll(drop).unwrap();
        }
        assert_eq!(reading.join().unwrap().0, (0..all).collect::<Vec<_>>());
    }
}

#[test]
fn both_sides_send_heartbeats() {
    let oms = FakeOms::unix();
    let quick = |next_request, next_report| tickpath_oms_protocol::Welcome {
        heartbeat_ms: 1_000,
        ..welcome(next_request, next_report)
    };
    let (mut client, mut peer) = oms.meet(oms.config(), quick(0, 0));
    // For longer than the heartbeat time, heartbeats alone keep the connection alive.
    let living = std::thread::spawn(move || {
        for turn in 0..4 {
            let beat = peer.hear_all().unwrap();
            assert_eq!((beat.kind, beat.number), (FrameKind::Heartbeat.code(), u64::from(turn > 0)), "the next report");
            if turn == 0 {
                peer.report([0]);
            }
            peer.beat(0);
        }
        peer
    });
    while !living.is_finished() {
        client.wait(50_000_000);
        client.poll(|event| assert!(!matches!(event, ClientEvent::Disconnected { .. }), "{event:?}")).unwrap();
    }
    // From here on the OMS is silent.
    let _peer = living.join().unwrap();
    let events = lost(&mut client);
    let Some(ClientEvent::Disconnected { why }) = events.last() else { panic!("{events:?}") };
    assert!(why.to_string().contains("1000 ms"), "{why}");
    oms.accept().let_in(quick(0, 1));
    back(&mut client);
}

#[test]
fn a_closing_client_sends_its_queued_requests() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(oms.config(), welcome(0, 0));
    for id in 0..10 {
        client.enqueue(&order(id), 0).unwrap();
    }
    client.close();
    assert_eq!(peer.requests(10), (0..10).collect::<Vec<_>>());
    assert_eq!(peer.hear().unwrap().kind, FrameKind::Logout.code());
    assert_eq!(peer.hear(), None);
}

/// Keeps a client alive for the time of four heartbeats, twice the time after which its OMS ends a session. Each
/// heartbeat names the report that the client still expects.
fn keep_alive(client: &mut Client, mut peer: FakePeer, next_report: u64) -> FakePeer {
    let hearing = std::thread::spawn(move || {
        for _ in 0..4 {
            let beat = peer.hear_all().expect("the connection holds");
            assert_eq!((beat.kind, beat.number), (FrameKind::Heartbeat.code(), next_report), "nothing was read");
        }
        peer
    });
    while !hearing.is_finished() {
        client.keep_alive();
        tickpath_clock::sleep_ns(1_000_000);
    }
    hearing.join().unwrap()
}

#[test]
fn keep_alive_holds_the_session_and_loses_no_event() {
    let quick = Welcome { heartbeat_ms: 500, ..welcome(0, 0) };
    for oms in [FakeOms::unix(), FakeOms::tcp()] {
        let (mut client, mut peer) = oms.meet(oms.config(), quick);
        peer.report(0..3);
        let peer = keep_alive(&mut client, peer, 0);
        assert_eq!(event_keys(&reports(&mut client, 3)), ["connected", "report 0", "report 1", "report 2"]);
        // The same after a reconnect.
        drop(peer);
        lost(&mut client);
        let mut peer = oms.accept();
        peer.let_in(Welcome { next_report: 3, live_report: 3, ..quick });
        peer.report([3]);
        let _peer = keep_alive(&mut client, peer, 3);
        assert_eq!(event_keys(&reports(&mut client, 1)), ["connected", "report 3"]);
    }
}

#[test]
fn a_client_detects_whether_stamps_are_of_its_clock() {
    let (oms, clock) = (FakeOms::unix(), HostClock::get().unwrap());
    for (stamp, is_shared) in [(None, true), (Some(0), false), (Some(u64::MAX), false)] {
        let (client, _peer) = oms.beside(oms.config(), |mut peer| {
            let (_, server_final) = peer.prove_right();
            let (stamp, mut out) = (stamp.unwrap_or_else(|| clock.ticks()), Vec::new());
            write_frame_with_text(
                &mut out,
                FrameKind::Welcome.code(),
                0,
                stamp,
                welcome(0, 0).as_bytes(),
                &server_final,
            );
            peer.say_bytes(&out);
            peer
        });
        assert_eq!(client.unwrap().shares_clock(), is_shared, "{stamp:?}");
    }
}
