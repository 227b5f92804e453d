//! Drop copies over a socket: a copy receives the reports of other sessions, and resumes after either end has
//! restarted.

use std::fs;

use tickpath_clock::Clock;
use tickpath_market::{ClientOrderId, ExecType, NewOrder, Side};
use tickpath_oms_client::{Client, ClientError, ClientEvent, Config, CopiedReport, Since};
use tickpath_oms_core::{DayEnd, RecordKind};
use tickpath_oms_protocol::LogonRejectReason;
use tickpath_oms_runtime::Layout;
use tickpath_oms_server::ServerEvent;
use zerocopy::IntoBytes;

use crate::limit;
use crate::sessions::{OmsFixture, RecordingClient};

/// Returns a house in which eve receives a drop copy, with these additional lines for that user.
pub(crate) fn oms_with_copies(layout: Layout, lines: &str) -> OmsFixture {
    let mut oms = OmsFixture::new(layout);
    oms.stop();
    let file = oms.folder().join("users.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let eve = "name = \"eve\"\nrole = \"read\"\n";
    assert!(text.contains(eve), "{text}");
    fs::write(&file, text.replace(eve, &format!("{eve}drop_copy = true\n{lines}"))).expect("the folder is ours");
    oms.start();
    oms
}

/// Returns the copied reports: place, session, number in the session, and the answered client order id.
fn copied(eve: &RecordingClient) -> Vec<(u64, u16, u64, u64)> {
    let copied = eve.events.iter().filter_map(|event| match event {
        ClientEvent::Copied { number, session, session_number, report, .. } => {
            let client = match report {
                CopiedReport::Report(report) => report.client_order_id,
                CopiedReport::Denied(denied) => denied.client_order_id,
                CopiedReport::Detail(_) => panic!("the exchange gives no details"),
            };
            Some((*number, *session, *session_number, client.0))
        }
        ClientEvent::Gap { .. } | ClientEvent::Duplicate { .. } | ClientEvent::Resent { .. } => panic!("{event:?}"),
        _ => None,
    });
    copied.collect()
}

/// Fills an order, which gives three reports.
fn trade(anna: &mut RecordingClient, id: u64) {
    let heard = anna.heard.len();
    anna.send(NewOrder { client_order_id: ClientOrderId(id), ..limit(Side::Buy, 0, 101, 1) });
    anna.until("it is filled", |anna| anna.heard.len() == heard + 3);
}

#[test]
fn a_drop_copy_resumes_over_day_ends_and_restarts() {
    for layout in [Layout::Inline, Layout::Split] {
        let mut oms = oms_with_copies(layout, "");
        let mut anna = oms.remote("anna", Since::Now);
        let session = anna.client.welcome().session;
        trade(&mut anna, 1);
        let mut eve = oms.remote("eve", Since::Start);
        trade(&mut anna, 2);
        eve.until("six reports", |eve| copied(eve).len() == 6);
        // Eve is disconnected while a day ends.
        let since = eve.client.since();
        let mut list = copied(&eve);
        eve.client.close();
        trade(&mut anna, 3);
        let mut boss = oms.remote("boss", Since::Now);
        boss.client.admin_command(RecordKind::DayEnd.code(), DayEnd::default().as_bytes()).expect("it is connected");
        boss.until("the day's end", |boss| {
            boss.events.iter().any(|event| matches!(event, ClientEvent::CommandAnswered(Ok(_))))
        });
        trade(&mut anna, 4);
        let mut eve = oms.remote("eve", since);
        eve.until("six more", |eve| copied(eve).len() == 6);
        // Another day ends while she is connected; then the OMS restarts.
        boss.client.admin_command(RecordKind::DayEnd.code(), DayEnd::default().as_bytes()).expect("it is connected");
        let is_end = |event: &&ClientEvent| matches!(event, ClientEvent::CommandAnswered(Ok(_)));
        boss.until("its end, too", |boss| boss.events.iter().filter(is_end).count() == 2);
        trade(&mut anna, 5);
        eve.until("three more", |eve| copied(eve).len() == 9);
        list.extend(copied(&eve));
        let since = eve.client.since();
        for client in [eve, boss, anna] {
            client.client.close();
        }
        oms.stop();
        oms.start();
        let mut anna = oms.remote("anna", Since::Now);
        trade(&mut anna, 6);
        let mut eve = oms.remote("eve", since);
        eve.until("three more", |eve| copied(eve).len() == 3);
        list.extend(copied(&eve));
        assert!(list.windows(2).all(|pair| pair[0].0 < pair[1].0), "{list:?}");
        let numbers: Vec<(u16, u64)> = list.iter().map(|&(_, session, number, _)| (session, number)).collect();
        assert_eq!(numbers, (0..18).map(|number| (session, number)).collect::<Vec<_>>(), "{layout}");
    }
}

#[test]
fn a_drop_copy_begins_with_the_oldest_kept_day_and_has_report_times() {
    let mut oms = oms_with_copies(Layout::Split, "");
    let (mut anna, mut boss) = (oms.remote("anna", Since::Now), oms.remote("boss", Since::Now));
    for id in 1..=4 {
        trade(&mut anna, id);
        boss.events.clear();
        boss.client.admin_command(RecordKind::DayEnd.code(), DayEnd::default().as_bytes()).expect("it is connected");
        boss.until("the day's end", |boss| {
            boss.events.iter().any(|event| matches!(event, ClientEvent::CommandAnswered(Ok(_))))
        });
    }
    let journal = boss.client.welcome().journal;
    for client in [anna, boss] {
        client.client.close();
    }
    oms.stop();
    let archive = oms.config.journal.path.dir().join("reports/archive");
    let mut days: Vec<_> =
        fs::read_dir(archive).expect("it is there").map(|day| day.expect("a folder").path()).collect();
    days.sort();
    assert_eq!(days.len(), 4, "{days:?}");
    days[..2].iter().for_each(|day| fs::remove_dir_all(day).expect("it is ours"));
    oms.start();
    let mut eve = oms.remote("eve", Since::Report { journal, number: 1, last_sum: 0 });
    // Each day has a base frame before its three reports.
    eve.until("the last day's reports", |eve| eve.events.iter().any(|event| place(event) == Some(15)));
    assert_eq!(eve.events.iter().filter_map(place).collect::<Vec<_>>(), [9, 10, 11, 13, 14, 15]);
    assert!(eve.events.iter().any(|event| matches!(event, ClientEvent::Gap { from: 1, to: 8 })), "{eve:?}");
    for event in &eve.events {
        if let ClientEvent::Copied { stamp, utc_ns, .. } = event {
            assert_eq!(*utc_ns, Some(oms.clock.calibration().utc_ns_of(*stamp)));
        }
    }
}

/// Returns the place of a copied report.
fn place(event: &ClientEvent) -> Option<u64> {
    match event {
        ClientEvent::Copied { number, .. } => Some(*number),
        _ => None,
    }
}

#[test]
fn reports_outside_the_filter_are_no_gap() {
    let oms = oms_with_copies(Layout::Split, "fills_only = true\ncopy_users = [\"anna\"]\n");
    let mut eve = oms.remote("eve", Since::Now);
    let mut anna = oms.remote("anna", Since::Now);
    for id in 1..=3 {
        trade(&mut anna, id);
    }
    eve.until("three fills", |eve| copied(eve).len() == 3);
    let fills = eve.events.iter().filter_map(|event| match event {
        ClientEvent::Copied { report: CopiedReport::Report(report), .. } => {
            Some((report.client_order_id.0, report.exec_type))
        }
        _ => None,
    });
    let trade = ExecType::Trade.code();
    assert_eq!(fills.collect::<Vec<_>>(), [(1, trade), (2, trade), (3, trade)]);
    assert_eq!(eve.client.counts().gaps, 0);
    // A drop copy session may send no orders.
    eve.send(limit(Side::Buy, 9, 101, 1));
    eve.until("she is sent away", |eve| {
        eve.events.iter().any(|event| matches!(event, ClientEvent::Disconnected { .. }))
    });
}

#[test]
fn drop_copies_of_one_user_resume_independently() {
    for layout in [Layout::Inline, Layout::Split] {
        let mut oms = oms_with_copies(layout, "");
        let mut anna = oms.remote("anna", Since::Now);
        let mut first = oms.remote("eve", Since::Start);
        let mut second = oms.remote("eve", Since::Now);
        trade(&mut anna, 1);
        for eve in [&mut first, &mut second] {
            eve.until("three reports", |eve| copied(eve).len() == 3);
        }
        // One copy disconnects, and resumes in the session of the other.
        let since = first.client.since();
        first.client.close();
        trade(&mut anna, 2);
        let mut first = oms.remote("eve", since);
        assert_eq!(first.client.welcome().session, second.client.welcome().session);
        first.until("three more", |eve| copied(eve).len() == 3);
        second.until("six reports", |eve| copied(eve).len() == 6);
        // Both reconnect by themselves.
        anna.client.close();
        oms.stop();
        oms.start();
        for eve in [&mut first, &mut second] {
            eve.connects(2);
        }
        let mut anna = oms.remote("anna", Since::Now);
        trade(&mut anna, 3);
        first.until("six reports", |eve| copied(eve).len() == 6);
        second.until("nine reports", |eve| copied(eve).len() == 9);
        assert_eq!(copied(&first), copied(&second)[3..], "{layout}");
    }
}

#[test]
fn a_drop_copy_over_the_users_limit_is_refused() {
    let oms = oms_with_copies(Layout::Split, "");
    let mut list: Vec<RecordingClient> = (0..16).map(|_| oms.remote("eve", Since::Now)).collect();
    let config = Config::new(format!("unix://{}", oms.socket().display()), "eve", "eve's password");
    let Err(why) = Client::connect(config) else { panic!("there is no room for one more") };
    let is_full = matches!(&why, ClientError::Refused { refusal: Some(LogonRejectReason::Full), sentence } if sentence.contains("16 drop copies"));
    assert!(is_full, "{why}");
    oms.event("it is told", |event| matches!(event, ServerEvent::Refused { why, .. } if why.starts_with("eve: ")));
    // Drop copies take no slot of a trading client.
    let mut anna = oms.remote("anna", Since::Now);
    trade(&mut anna, 1);
    for eve in &mut list {
        eve.until("three reports", |eve| copied(eve).len() == 3);
    }
    list.pop();
    oms.event("it is gone", |event| matches!(event, ServerEvent::Disconnected { user, .. } if user == "eve"));
    oms.remote("eve", Since::Now);
}

#[test]
fn a_welcome_shows_whether_the_session_is_a_drop_copy() {
    let oms = oms_with_copies(Layout::Split, "");
    for (user, hears) in [("eve", true), ("anna", false), ("boss", false)] {
        let client = oms.remote(user, Since::Now).client;
        assert_eq!(client.welcome().has_drop_copy(), Some(hears), "{user}");
    }
}

#[test]
fn a_refused_drop_copy_logon_takes_no_session() {
    let oms = oms_with_copies(Layout::Split, "");
    let mut anna = oms.remote("anna", Since::Now);
    let session = Some(anna.client.welcome().session);
    for session in [None, session] {
        let url = format!("unix://{}", oms.socket().display());
        let config = Config { session, drop_copy: true, ..Config::new(url, "anna", "anna's password") };
        let Err(why) = Client::connect(config) else { panic!("she has none, and took a session: {session:?}") };
        let is_hers = |sentence: &str| sentence.starts_with("'anna' has no drop copy;");
        let is_told = matches!(&why, ClientError::Refused { refusal: Some(LogonRejectReason::NotPermitted), sentence } if is_hers(sentence));
        assert!(is_told, "{why}");
    }
    // Her session was not taken over meanwhile.
    trade(&mut anna, 1);
    assert!(!anna.events.iter().any(|event| matches!(event, ClientEvent::Disconnected { .. })), "{:?}", anna.events);
}
