//! Clients that are away while several days end: they resume in the archived days, as far as those are kept.

use tickpath_oms_client::{ClientEvent, Since};
use tickpath_oms_core::{DayEnd, RecordKind};

use super::sessions::{OmsFixture, RecordingClient};
use super::*;

/// Reports of an order that is filled at once.
const REPORTS: u64 = 3;

/// Sends an order that is filled, and waits for its reports.
fn fill(client: &mut RecordingClient, id: u64) {
    let before = client.heard.len();
    client.send(limit(Side::Buy, id, 101, 1));
    client.until("a fill", |client| client.heard.len() == before + REPORTS as usize);
}

/// Ends the day as an admin does.
fn end_day(oms: &OmsFixture) {
    let mut boss = oms.remote("boss", Since::Now);
    boss.client.admin_command(RecordKind::DayEnd.code(), DayEnd::default().as_bytes()).expect("it is connected");
    boss.until("the day's end", |boss| {
        boss.events.iter().any(|event| matches!(event, ClientEvent::CommandAnswered(Ok(_))))
    });
    boss.client.close();
}

/// Fills an order of a client that then disconnects, another order on each of this many days, and one on the current
/// day. Returns the position at which the client stopped.
fn days_without_a_client(oms: &OmsFixture, days: u64) -> Since {
    let mut client = oms.remote("anna", Since::Start);
    fill(&mut client, 1);
    let since = client.client.since();
    client.client.close();
    let mut other = oms.remote("anna", since);
    for day in 0..days {
        fill(&mut other, 10 + day);
        end_day(oms);
    }
    fill(&mut other, 2);
    other.client.close();
    since
}

/// Returns the report numbers after the first fill, over the ended days and the current one.
fn numbers(from: u64, days: u64) -> Vec<u64> {
    (from..REPORTS * (days + 2)).collect()
}

#[test]
fn a_client_away_for_several_days_receives_each_report_once() {
    for layout in [Layout::Inline, Layout::Split] {
        for days in [2, 5] {
            let mut oms = OmsFixture::new(layout);
            let since = days_without_a_client(&oms, days);
            let all = numbers(REPORTS, days);
            for start in ["as they ended", "behind a start"] {
                let mut client = oms.remote("anna", since);
                client.until("each report", |client| client.heard.len() >= all.len());
                assert_eq!(client.numbers(), all, "{layout:?}, {days} days, {start}");
                let counts = client.client.counts();
                assert_eq!((counts.gaps, counts.duplicates), (0, 0), "{layout:?}, {days} days, {start}");
                client.client.close();
                oms.stop();
                oms.start();
            }
        }
    }
}

#[test]
fn reports_of_dropped_days_are_a_gap() {
    const DAYS: u64 = 4;
    for layout in [Layout::Inline, Layout::Split] {
        let mut oms = OmsFixture::new(layout);
        let since = days_without_a_client(&oms, DAYS);
        // The last two of the four archived days begin with report 9.
        for (keep_days, first) in [(2, 9), (1, 12), (3, 6), (0, REPORTS)] {
            oms.stop();
            oms.keep_days = keep_days;
            oms.start();
            let mut client = oms.remote("anna", since);
            let all = numbers(first, DAYS);
            client.until("each report", |client| client.heard.len() >= all.len());
            assert_eq!(client.numbers(), all, "{layout:?}, {keep_days} days are kept");
            let gaps: Vec<(u64, u64)> = client.events.iter().filter_map(gap).collect();
            let expected = if first == REPORTS { Vec::new() } else { vec![(REPORTS, first)] };
            assert_eq!(gaps, expected, "{layout:?}, {keep_days} days are kept");
            client.client.close();
        }
    }
}

fn gap(event: &ClientEvent) -> Option<(u64, u64)> {
    match event {
        ClientEvent::Gap { from, to } => Some((*from, *to)),
        _ => None,
    }
}
