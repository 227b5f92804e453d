//! Details of reports, from a line to clients: each once, behind its report, over reconnects and restarts.

use tickpath_market::{Liquidity, ReportDetail};
use tickpath_oms_client::{ClientEvent, CopiedReport, Since};
use tickpath_oms_protocol::{DETAILS_VERSION, FrameKind, Logon, VERSION};
use tickpath_oms_server::ServerEvent;

use super::detail_line::{DetailLine, FEE, FEE_CURRENCY, REASON, RECEIVED_NS, SENT_NS};
use super::drop_copies::oms_with_copies;
use super::raw_client::RawClient;
use super::sessions::{OmsFixture, RecordingClient};
use super::*;

/// Gives the venue of an OMS a line with details instead of lanes.
fn use_detail_line(oms: &mut OmsFixture) {
    oms.stop();
    let _ = oms.config.lanes.remove();
    oms.config.lanes.venues.clear();
    oms.config.lanes.lines = vec![DetailLine::default().config()];
    oms.start();
}

fn oms_with_details(layout: Layout) -> OmsFixture {
    let mut oms = OmsFixture::new(layout);
    use_detail_line(&mut oms);
    oms
}

fn details(client: &RecordingClient) -> Vec<(u64, ReportDetail)> {
    let detail = |event: &ClientEvent| match event {
        ClientEvent::Detail { number, detail, .. } => Some((*number, *detail)),
        _ => None,
    };
    client.events.iter().filter_map(detail).collect()
}

/// Waits until a client has this many details, and checks that they have all numbers from the first one on.
fn await_details(client: &mut RecordingClient, first: u64, count: usize) {
    client.until(&format!("{count} details"), |client| details(client).len() >= count);
    let numbers: Vec<u64> = details(client).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (first..first + count as u64).collect::<Vec<_>>());
    let counts = client.client.counts();
    assert_eq!((counts.missing_details, counts.duplicates, counts.gaps, counts.unknown_frames), (0, 0, 0, 0));
}

/// Fills an order of this id, which gives three reports, the last one with a detail.
fn trade(client: &mut RecordingClient, id: u64) {
    let reports = client.heard.len();
    client.send(limit(Side::Buy, id, 101, 1));
    client.until("it is filled", |client| client.heard.len() >= reports + 3);
}

/// Logs out, and waits until the session is free.
fn leave(oms: &OmsFixture, client: RecordingClient) {
    client.client.close();
    oms.event("it is gone", |event| matches!(event, ServerEvent::Disconnected { .. }));
}

#[test]
fn a_detail_brings_fee_liquidity_times_and_text() {
    let oms = oms_with_details(Layout::Split);
    let tcp = oms.tcp();
    let urls = ["unix", "shm+unix"].map(|scheme| format!("{scheme}://{}", oms.socket().display()));
    for (url, turn) in urls.into_iter().chain([tcp]).zip(0..) {
        let mut anna = oms.remote_at(url, "anna", Since::Now);
        trade(&mut anna, 10 * turn + 1);
        await_details(&mut anna, 2 * turn, 1);
        let (_, fill) = details(&anna)[0];
        let (_, ReceivedMessage::Report(report)) = anna.heard[2] else { panic!("{anna:?}") };
        assert_eq!((fill.order_id, fill.exec_id), (report.order_id, report.exec_id));
        assert_eq!((fill.fee(), fill.fee_currency.as_str()), (FEE, FEE_CURRENCY));
        assert_eq!(fill.liquidity(), Some(Liquidity::Taker));
        assert_eq!((fill.venue_received_ns, fill.venue_sent_ns, &*fill.text()), (RECEIVED_NS, SENT_NS, ""));
        anna.send(limit(Side::Sell, 10 * turn + 2, 99, 1));
        await_details(&mut anna, 2 * turn, 2);
        let (_, rejection) = details(&anna)[1];
        assert_eq!((rejection.exec_id.0, rejection.fee(), &*rejection.text()), (0, 0, REASON));
        leave(&oms, anna);
    }
}

#[test]
fn each_detail_comes_once_over_restarts_and_repeated_fills() {
    for layout in [Layout::Inline, Layout::Split] {
        let mut oms = oms_with_details(layout);
        let mut anna = oms.remote("anna", Since::Start);
        trade(&mut anna, 1);
        await_details(&mut anna, 0, 1);
        for turn in 1..4 {
            // The line reports all fills again, with their details.
            oms.stop();
            oms.start();
            anna.connects(1 + turn);
            trade(&mut anna, 1 + turn as u64);
            await_details(&mut anna, 0, 1 + turn);
        }
        let all = details(&anna);
        // The fill of the third order is report 8.
        let behind_third = Since::Report { journal: anna.client.welcome().journal, number: 9, last_sum: 0 };
        leave(&oms, anna);
        for (since, first) in [(Since::Start, 0), (behind_third, 2)] {
            let mut again = oms.remote("anna", since);
            await_details(&mut again, first, 4 - first as usize);
            assert_eq!(details(&again), all[first as usize..]);
            leave(&oms, again);
        }
        // Live details follow those that were missed.
        let mut last = oms.remote("anna", behind_third);
        trade(&mut last, 5);
        await_details(&mut last, 2, 3);
    }
}

#[test]
fn a_client_with_a_detail_that_the_oms_lost_is_sent_the_details_alone() {
    let oms = oms_with_details(Layout::Split);
    let mut anna = oms.remote("anna", Since::Start);
    trade(&mut anna, 1);
    trade(&mut anna, 2);
    await_details(&mut anna, 0, 2);
    let journal = anna.client.welcome().journal;
    leave(&oms, anna);
    let logon = Logon { journal, next_report: 6, next_detail: 3, ..RawClient::logon(0, 10_000, VERSION) };
    let mut raw = RawClient::login_with(&oms, "anna", &logon);
    assert_eq!((raw.welcome.next_report, raw.welcome.next_detail), (6, 0));
    let mut details = 0;
    while details < 2 {
        let (kind, _, _) = raw.hear().expect("a detail");
        assert!([Kind::ReportDetail.code(), FrameKind::Heartbeat.code()].contains(&kind), "kind {kind}");
        details += u64::from(kind == Kind::ReportDetail.code());
    }
}

#[test]
fn a_client_of_version_6_is_sent_reports_alone() {
    let oms = oms_with_details(Layout::Split);
    let mut raw = RawClient::login_at(&oms, "anna", 0, 10_000, DETAILS_VERSION - 1);
    let mut reports = 0;
    for id in 1..=3 {
        raw.say(Kind::NewOrder.code(), id - 1, limit(Side::Buy, id, 101, 1).as_bytes(), &[]);
        while reports < 3 * id {
            let (kind, _, _) = raw.hear().expect("a report");
            assert!([Kind::ExecutionReport.code(), FrameKind::Heartbeat.code()].contains(&kind), "kind {kind}");
            reports += u64::from(kind == Kind::ExecutionReport.code());
        }
    }
    raw.say(FrameKind::Logout.code(), 0, &[], &[]);
    // The same session in the present version is sent those of the day.
    oms.event("it is gone", |event| matches!(event, ServerEvent::Disconnected { .. }));
    let mut anna = oms.remote("anna", Since::Start);
    await_details(&mut anna, 0, 3);
}

#[test]
fn a_drop_copy_has_the_details_of_the_fills_that_it_copies() {
    let mut oms = oms_with_copies(Layout::Split, "fills_only = true\n");
    use_detail_line(&mut oms);
    let mut anna = oms.remote("anna", Since::Now);
    let mut eve = oms.remote("eve", Since::Start);
    trade(&mut anna, 1);
    anna.send(limit(Side::Sell, 2, 99, 1));
    await_details(&mut anna, 0, 2);
    trade(&mut anna, 3);
    let copied = |eve: &RecordingClient| {
        let copied = eve.events.iter().filter_map(|event| match event {
            ClientEvent::Copied { session_number, report, .. } => Some((*session_number, *report)),
            _ => None,
        });
        copied.collect::<Vec<_>>()
    };
    eve.until("two fills with their details", |eve| copied(eve).len() >= 4);
    let copied = copied(&eve);
    let [(_, fill), (0, detail), (_, other), (2, last)] = &copied[..] else { panic!("{copied:?}") };
    for (report, detail) in [(fill, detail), (other, last)] {
        let (CopiedReport::Report(report), CopiedReport::Detail(detail)) = (report, detail) else {
            panic!("{copied:?}")
        };
        assert_eq!((report.exec_id, detail.fee()), (detail.exec_id, FEE));
    }
}
