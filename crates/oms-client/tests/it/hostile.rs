//! Arbitrary bytes from the other side: a client ends the connection with an error message.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_market::Kind as Message;
use tickpath_oms_client::{Client, ClientEvent, Config};
use tickpath_oms_protocol::{FrameHeader, FrameKind, MAX_PAYLOAD};
use zerocopy::IntoBytes;

use crate::fake_oms::{FakeOms, welcome};

/// Draws frames with any content, and bytes that are no frame.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let kinds = [48, 49, 50, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 200, 0];
    let number = prop_oneof![0u64..5, any::<u64>()];
    let frame = (proptest::sample::select(kinds.to_vec()), number, vec(any::<u8>(), 0..300), any::<u16>());
    let frame = frame.prop_map(|(kind, sequence, payload, fixed)| {
        let (length, fixed) = (payload.len() as u32, fixed % (payload.len() as u16 + 2));
        let head = FrameHeader { length, kind, fixed, sequence, ..FrameHeader::default() };
        [head.as_bytes(), &payload].concat()
    });
    prop_oneof![4 => frame, 1 => vec(any::<u8>(), 0..100)]
}

/// Polls until the connection is over.
fn drain(client: &mut Client) -> Vec<ClientEvent> {
    let mut events = Vec::new();
    while client.poll(|event| events.push(event)).is_ok() {
        client.wait(1_000_000_000);
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_of_a_session(output in vec(bytes(), 0..20)) {
        let oms = FakeOms::unix();
        let (mut client, mut peer) = oms.meet(Config { reconnect: false, ..oms.config() }, welcome(2, 2));
        peer.try_say(&output.concat());
        drop(peer);
        let events = drain(&mut client);
        prop_assert!(matches!(events.last(), Some(ClientEvent::Disconnected { .. })), "{:?}", events);
        let reports = events.iter().filter(|event| matches!(event, ClientEvent::Report { .. } | ClientEvent::Denied { .. }));
        prop_assert_eq!(reports.count() as u64, client.counts().reports);
    }

    #[test]
    fn any_bytes_of_a_logon(output in vec(bytes(), 1..5), answers in any::<bool>()) {
        let oms = FakeOms::unix();
        let (client, ()) = oms.beside(oms.config(), |mut peer| {
            if answers {
                peer.logon();
            }
            peer.try_say(&output.concat());
        });
        prop_assert!(!client.unwrap_err().to_string().is_empty());
    }
}

#[test]
fn a_wrong_header_ends_the_connection() {
    let report = Message::ExecutionReport.code();
    for head in [
        FrameHeader { length: MAX_PAYLOAD as u32 + 1, kind: report, ..FrameHeader::default() },
        FrameHeader { length: 8, fixed: 9, kind: report, ..FrameHeader::default() },
        // The OMS expects a request that was never sent.
        FrameHeader { kind: FrameKind::Heartbeat.code(), sequence: 3, ..FrameHeader::default() },
    ] {
        let oms = FakeOms::unix();
        let (mut client, mut peer) = oms.meet(Config { reconnect: false, ..oms.config() }, welcome(2, 2));
        peer.say_bytes(&[head.as_bytes(), &[0; 8]].concat());
        let events = drain(&mut client);
        assert!(matches!(&events[..], [ClientEvent::Connected(_), ClientEvent::Disconnected { .. }]), "{events:?}");
    }
}

#[test]
fn the_highest_sequence_number_does_not_overflow() {
    let oms = FakeOms::unix();
    let (mut client, mut peer) = oms.meet(Config { reconnect: false, ..oms.config() }, welcome(u64::MAX - 1, u64::MAX));
    peer.report_raw(u64::MAX);
    peer.report_raw(u64::MAX);
    drop(peer);
    drain(&mut client);
    assert_eq!(client.counts().reports, 2);
}
