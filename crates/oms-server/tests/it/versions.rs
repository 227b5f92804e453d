//! Clients of other versions: an older client works as before, a later one gets our version, and none is refused.

use tickpath_oms_protocol::{ClientLogon, FrameKind as Word, VERSION};
use tickpath_oms_server::ServerEvent;

use super::raw_client::RawClient;
use super::sessions::OmsFixture;
use super::*;

/// A logon of version 1: session 0, ten seconds, all reports of the day.
const LOGON: [u8; 40] = [
    b'T', b'I', b'C', b'K', b'P', b'A', b'T', b'H', // magic
    1, 0, // version
    0, 0, // session
    0x10, 0x27, 0, 0, // heartbeat
    0, 0, 0, 0, 0, 0, 0, 0, // journal
    0, 0, 0, 0, 0, 0, 0, 0, // next report
    0, 0, 0, 0, // last sum
    0, 0, 0, 0, // reserved
];
/// A new order of version 1: buy 1 at 101 until the end of the day, for account 1.
const ORDER: [u8; 48] = [
    1, 0, 0, 0, 0, 0, 0, 0, // client order id
    0, 0xc5, 1, 0x5a, 2, 0, 0, 0, // price
    0, 0xe1, 0xf5, 5, 0, 0, 0, 0, // quantity
    0, 0, 0, 0, 0, 0, 0, 0, // cause
    0, 0, 0, 0, // symbol
    1, 0, 0, 0, // account
    1, 2, 0, 0, // side, type, time in force, position effect
    0, 0, 0, 0, // reserved
];
/// Kinds of that order and of a report.
const ORDER_KIND: u8 = 32;
const ORDER_REPORT: u8 = 48;

/// Bytes of a welcome in version 1.
const WELCOME_BYTES: usize = 48;

/// Logs in with these bytes; returns the welcome, or the kind of the refusal and its sentence.
fn log_in(raw: &mut RawClient, logon: &[u8]) -> Result<Vec<u8>, (u8, String)> {
    let (mut scram, first) = ClientLogon::new("anna", "anna's password", None).expect("a good name");
    raw.say(112, 0, logon, &first);
    let (kind, _, text) = raw.hear().expect("an answer");
    if kind != 113 {
        return Err((kind, String::from_utf8(text).expect("a sentence")));
    }
    raw.say(114, 0, &[], &scram.answer(&text).expect("a good challenge"));
    let (kind, message, text) = raw.hear().expect("a welcome");
    assert_eq!(kind, 115);
    scram.check(&text).expect("it is the OMS");
    Ok(message)
}

fn of_version(version: u16) -> [u8; 40] {
    let mut logon = LOGON;
    logon[8..10].copy_from_slice(&version.to_le_bytes());
    logon
}

#[test]
fn a_client_of_version_1_still_trades() {
    for layout in [Layout::Inline, Layout::Split] {
        let oms = OmsFixture::new(layout);
        let mut raw = RawClient::new(&oms);
        let welcome = log_in(&mut raw, &LOGON).expect("it is let in");
        assert!(welcome.len() >= WELCOME_BYTES, "{}", welcome.len());
        assert_eq!(welcome[..4], [1, 0, 0, 0], "version 1, session 0");
        assert_eq!(welcome[16..24], [0; 8], "no request was taken yet");
        assert!(welcome[WELCOME_BYTES..].iter().all(|&byte| byte == 0), "nothing that it would have to know");
        raw.say(ORDER_KIND, 0, &ORDER, &[]);
        let mut sentence = Vec::new();
        while sentence.len() < 3 {
            let (kind, message, _) = raw.hear().expect("a report");
            if kind == ORDER_REPORT {
                sentence.push(message);
            }
        }
        for report in &sentence {
            assert_eq!(report[8..16], 1u64.to_le_bytes(), "its own id");
        }
        raw.say(117, 3, &[], &[]);
        raw.say(118, 0, &[], b"the client has closed");
        oms.event(
            "it is gone",
            |event| matches!(event, ServerEvent::Disconnected { why, .. } if why == "the client logged out"),
        );
        oms.trades(2);
    }
}

#[test]
fn a_later_version_gets_the_servers_and_version_0_is_refused() {
    let oms = OmsFixture::new(Layout::Split);
    for version in [VERSION, VERSION + 1, u16::MAX] {
        let mut raw = RawClient::new(&oms);
        // The additional fields of a later version are ignored.
        let logon = [&of_version(version)[..], &[0; 16], &[0xff; 100]].concat();
        let welcome = log_in(&mut raw, &logon).expect("it is let in");
        assert_eq!(welcome[..2], VERSION.to_le_bytes());
        raw.say(Word::Logout.code(), 0, &[], &[]);
        oms.event("it is gone", |event| matches!(event, ServerEvent::Disconnected { .. }));
    }
    let mut raw = RawClient::new(&oms);
    let (kind, why) = log_in(&mut raw, &of_version(0)).expect_err("there is no version 0");
    assert_eq!(kind, 116);
    assert!(why.contains("no logon of this protocol"), "{why}");
    assert!(raw.hear().is_none(), "and the connection ends");
}

#[test]
fn an_older_client_gets_no_lanes() {
    let oms = OmsFixture::new(Layout::Split);
    let mut raw = RawClient::new(&oms);
    let logon = [&LOGON[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let welcome = log_in(&mut raw, &logon).expect("it is let in");
    assert!(welcome[WELCOME_BYTES..].iter().all(|&byte| byte == 0));
    raw.say(ORDER_KIND, 0, &ORDER, &[]);
    while raw.hear().expect("it is heard by the socket").0 != ORDER_REPORT {}
}
