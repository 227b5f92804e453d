//! Requests without effect: a request beyond the role is refused before the journal, all others have a budget, and
//! connections wait while descriptors run short.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tickpath_clock::{HostClock, sleep_ns};
use tickpath_market::CancelOrder;
use tickpath_oms_client::{Client, ClientEvent, Config as ClientConfig, Since, UNNUMBERED};
use tickpath_oms_core::{Core, Denial, Input};
use tickpath_oms_runtime::journal;

use super::sessions::{OmsFixture, RecordingClient};
use super::trader::{ASK, Process, ProcessFixture, Trader};
use super::*;

const LAYOUTS: [Layout; 2] = [Layout::Inline, Layout::Split];
/// Max time to wait for a condition, in nanoseconds.
const PATIENCE_NS: i64 = 60_000_000_000;

/// Returns a cancel of an order that was never sent.
fn unknown(id: u64) -> Request {
    let original = ClientOrderId(1_000_000_000 + id);
    let client_order_id = ClientOrderId(id);
    Request::Cancel(CancelOrder { client_order_id, original, account: AccountId(1), ..CancelOrder::default() })
}

/// Returns whether an event reports a request as lost or in doubt.
fn is_loss(event: &ClientEvent) -> bool {
    matches!(event, ClientEvent::NotTaken { .. } | ClientEvent::InDoubt { .. } | ClientEvent::Forgotten { .. })
}

#[test]
fn requests_of_a_reader_are_refused_before_the_journal() {
    const CANCELS: u64 = 2_000;
    for (layout, scheme) in LAYOUTS.into_iter().zip(["unix", "shm+unix"]) {
        let mut fixture = OmsFixture::new(layout);
        let url = format!("{scheme}://{}", fixture.socket().display());
        let mut eve = fixture.remote_at(url, "eve", Since::Start);
        let mut boss = fixture.remote("boss", Since::Now);
        let before = boss.status().journal_records;
        for id in 1..=CANCELS {
            while eve.client.send(&unknown(id)).is_err() {
                eve.poll();
            }
        }
        eve.send(limit(Side::Buy, CANCELS + 1, 101, 1));
        eve.until("each is answered", |eve| eve.heard.len() as u64 == CANCELS + 1);
        let answered = |eve: &RecordingClient| {
            eve.heard.iter().zip(1..).all(|(heard, id)| match heard {
                (UNNUMBERED, ReceivedMessage::Denied(denied)) => {
                    denied.code == Denial::NotPermitted.code() && denied.client_order_id.0 == id
                }
                _ => false,
            })
        };
        assert!(answered(&eve), "{eve:?}");
        let records = boss.status().journal_records - before;
        assert!(records < CANCELS / 20, "{records} records for {CANCELS} requests that were refused, {layout:?}");
        boss.client.close();

        // A start does not count the refused requests, and the client reports none as lost.
        fixture.stop();
        fixture.start();
        eve.connects(2);
        eve.send(unknown(CANCELS + 2));
        eve.until("it goes on", |eve| eve.heard.len() as u64 == CANCELS + 2);
        assert!(answered(&eve) && !eve.events.iter().any(is_loss), "{eve:?}");
    }
}

/// Connects a client of the trader's second session.
fn second(desk: &ProcessFixture) -> Client {
    let url = format!("unix://{}", desk.folder.path().join("oms.sock").display());
    let config =
        ClientConfig { session: Some(1), since: Since::Start, ..ClientConfig::new(url, "trader", "a password") };
    Client::connect(config).expect("it gets in")
}

/// Waits until a log file contains this text.
fn await_line(log: &Path, what: &str) {
    let clock = HostClock::get().expect("a clock");
    let began = clock.ticks();
    while !fs::read_to_string(log).is_ok_and(|text| text.contains(what)) {
        assert!(clock.ns_between(began, clock.ticks()) < PATIENCE_NS, "never told: {what}");
        sleep_ns(5_000_000);
    }
}

/// Returns the number of cancels of the second session in a desk's journal.
fn journaled_cancels(desk: &ProcessFixture) -> u64 {
    let mut core = Core::new(tickpath_oms_core::Config { expected_orders: 0, key: 0 });
    let (place, mut cancels) = (LogPath::folder(desk.folder.path().join("journal")), 0);
    let replayed = journal::replay(&place, &mut core, |input, _| {
        if let Input::Request { envelope, request: Request::Cancel(_) } = input {
            cancels += u64::from(envelope.session == 1);
        }
    });
    replayed.expect("it is whole");
    cancels
}

/// Starts a desk whose OMS has a budget of 50 denied requests per session and day.
fn desk_with_budget(
    changes: &[(&str, &str)],
    sentence: &str,
) -> (ProcessFixture, Process, Process, std::path::PathBuf) {
    let desk = ProcessFixture::new(1, "", true);
    desk.lay_out("inline");
    for (from, to) in changes {
        desk.change("oms.toml", from, to);
    }
    let exchange = desk.start("exchange");
    let file = desk.folder.path().join("told");
    let oms = desk.start_limited("-n 512", &file);
    await_line(&file, sentence);
    (desk, exchange, oms, file)
}

#[test]
fn a_session_over_its_denial_budget_is_throttled_alone() {
    const CANCELS: u64 = 5_000;
    let small = ("#max_denied_a_day = 100000", "max_denied_a_day = 50");
    let hundredth = ("#max_denied_a_day = 100000", "max_denied_a_day = 5000");
    // More than any disk has.
    let reserve = ("#disk_reserve_mb = 256", "disk_reserve_mb = 4000000000");
    for (changes, sentence) in
        [(vec![small], "listening on unix"), (vec![hundredth, reserve], "disk_reserve_mb keeps 4000000000")]
    {
        let (desk, exchange, oms, _) = desk_with_budget(&changes, sentence);
        let clock = HostClock::get().expect("a clock");
        let mut other = Trader::new(&desk);
        let mut client = second(&desk);
        let (mut ends, mut connected, mut denied, mut next) = (Vec::new(), 0, 0_u64, 1);
        let began = clock.ticks();
        while connected < 2 {
            while next <= CANCELS && client.send(&unknown(next)).is_ok() {
                next += 1;
            }
            client.wait(1_000_000);
            let polled = client.poll(|event| match event {
                ClientEvent::Disconnected { why } => ends.push(why.to_string()),
                ClientEvent::Connected(_) => connected += 1,
                ClientEvent::Denied { .. } => denied += 1,
                _ => {}
            });
            polled.expect("it comes back");
            let waited = clock.ns_between(began, clock.ticks());
            assert!(waited < PATIENCE_NS, "{denied} requests were denied, and nothing came of it");
        }
        assert!(ends.len() == 1 && ends[0].contains("max_denied_a_day"), "{ends:?}");
        // The client is connected again and may send more, at a slow rate.
        for id in CANCELS + 1..2 * CANCELS {
            if client.send(&unknown(id)).is_err() {
                break;
            }
        }
        other.trade("others trade", |other| other.fills.len() >= 20);
        drop((oms, exchange, client));
        let cancels = journaled_cancels(&desk);
        assert!((51..1_000).contains(&cancels), "{cancels} denied requests are in the journal");
    }
}

#[test]
fn connections_without_a_descriptor_wait_and_warn_the_operator_once() {
    const CROWD: usize = 120;
    const SHORT: &str = "no connection can be accepted";
    let desk = ProcessFixture::new(1, "", true);
    let log = desk.folder.path().join("told");
    let _exchange = desk.start("exchange");
    let _oms = desk.start_limited("-n 64", &log);
    let mut trader = Trader::new(&desk);
    // `--check` prints this warning, too.
    await_line(&log, "the limit is 64 open files, and this configuration needs up to");
    let socket = desk.folder.path().join("oms.sock");
    let crowd: Vec<UnixStream> =
        (0..CROWD).map(|_| UnixStream::connect(&socket).expect("the kernel takes it")).collect();
    await_line(&log, SHORT);
    trader.trade("who is in trades on", |trader| trader.fills.len() >= 20);
    drop(crowd);
    let mut late = Trader::of(&format!("unix://{}", socket.display()), 1);
    late.send_new(ASK);
    late.until("it is let in when there is room", |late| !late.fills.is_empty());
    let text = fs::read_to_string(&log).expect("it is ours");
    assert_eq!(text.matches(SHORT).count(), 1, "{text}");
    assert!(text.contains("LimitNOFILE="), "{text}");
}
