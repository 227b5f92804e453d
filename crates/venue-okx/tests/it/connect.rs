//! The connect: OKX's clock, login, subscription and lists, and only then the line is up. It never shows a secret.

use serde_json::Value;
use tickpath_clock::{Clock, HostClock, utc_ns};
use tickpath_market::{ExecType, Liquidity, Request, SymbolId};
use tickpath_venue::{Line, LineSendError};
use tickpath_venue_okx::{OkxLine, OkxLineConfig, OkxLineError, signature};

use crate::exchange::{OkxScript, ScriptedOkx, TIME};
use crate::harness::{LineUnderTest, OwnedLineEvent, VENUE, config, credentials, essence, new_order};
use crate::rows::{OrderRow, fill_row, name, rest_rows};

#[test]
fn a_line_is_up_after_the_login_the_subscription_and_the_lists() {
    let mut test = LineUnderTest::new(|_| {});
    test.okx.script().acknowledges = false;
    test.begin_connect(0);
    test.wait_until("the subscription is sent", |test| test.okx.texts().len() >= 2);
    let login: Value = serde_json::from_str(&test.okx.texts()[0]).expect("it is JSON");
    let argument = &login["args"][0];
    let timestamp = argument["timestamp"].as_str().expect("a login has a time");
    let keys = credentials();
    let sign = signature(&keys.secret, timestamp, "GET", "/users/self/verify", "");
    assert_eq!((login["op"].as_str(), argument["apiKey"].as_str()), (Some("login"), Some(keys.key.as_str())));
    assert_eq!(argument["passphrase"].as_str(), Some(keys.passphrase.as_str()));
    assert_eq!(argument["sign"].as_str(), Some(sign.as_str()));
    assert_eq!(test.okx.texts()[1], r#"{"op":"subscribe","args":[{"channel":"orders","instType":"ANY"}]}"#);
    assert!(test.okx.calls("/api/v5/trade/").is_empty(), "the lists are read after the subscription");
    assert_eq!(test.line.send(0, 0, &Request::New(new_order(1))), Err(LineSendError::Down));
    test.okx.acknowledge();
    test.okx.send(&OrderRow::live(1).push());
    test.wait_until("the line is up", |test| test.ups() == 1);
    test.wait_for_reports(1);
    assert_eq!(test.events[0], OwnedLineEvent::Up(None, None), "an event before it waits for it");
    assert_eq!(test.okx.calls("/api/v5/trade/orders-pending").len(), 1);
    assert!(test.okx.calls("/api/v5/trade/fills").is_empty(), "nothing can be missed before the first connection");
}

#[test]
fn requests_over_https_are_signed() {
    for is_demo in [false, true] {
        let mut test = LineUnderTest::new(|config| config.is_demo = is_demo);
        test.connect(0);
        let call = test.okx.calls("/api/v5/trade/orders-pending").remove(0);
        let (keys, timestamp) = (credentials(), call.header("ok-access-timestamp"));
        assert!(timestamp.len() == 24 && timestamp.ends_with('Z') && timestamp.contains('.'), "{timestamp}");
        assert_eq!(call.header("ok-access-sign"), signature(&keys.secret, timestamp, "GET", &call.target, ""));
        assert_eq!([call.header("ok-access-key"), call.header("ok-access-passphrase")], [&keys.key, &keys.passphrase]);
        assert_eq!(call.header("x-simulated-trading"), if is_demo { "1" } else { "" });
        assert_eq!(test.okx.calls("/api/v5/public/time")[0].header("ok-access-sign"), "", "the time is public");
    }
}

#[test]
fn signatures_are_those_of_okx() {
    // Made by Python's hmac and base64, as OKX's own client for Python makes them.
    let secret = "22582BD0CFF14C41EDBF1AB98506286D";
    let time = "2020-12-08T09:08:57.715Z";
    for (expected, timestamp, method, path, body) in [
        ("5/36BgGV6m/6pmdc20zdqk0mzF5ZalmzzPD2fo3wavU=", "1704876947", "GET", "/users/self/verify", ""),
        ("HiZhvSfMtWJA3uUIVXV3a/bSXNPCWvYFXoGCVS8V4zY=", time, "GET", "/api/v5/account/balance?ccy=BTC", ""),
        (
            "KLDsTjICb6BJcLPD4W1tFkQphGBtst0KE9Gum/S5cK8=",
            time,
            "POST",
            "/api/v5/trade/cancel-all-after",
            r#"{"timeOut":"60"}"#,
        ),
    ] {
        assert_eq!(signature(secret, timestamp, method, path, body), expected, "{path}");
    }
}

#[test]
fn a_refused_login_ends_the_connect_with_the_reason_and_without_the_secrets() {
    let mut test = LineUnderTest::new(|_| {});
    test.okx.script().login_refusal =
        Some(r#"{"event":"error","code":"60009","msg":"Login failed.","connId":"a"}"#.to_owned());
    test.begin_connect(0);
    assert_eq!(test.wait_for_loss(), "OKX reports an error at the login: 60009: Login failed.");
    let keys = credentials();
    let echo = format!(
        r#"{{"event":"error","code":"60012","msg":"Invalid request: {} {} {{\"op\":\"login\",\"args\":[{}]}}","connId":"a"}}"#,
        keys.key, keys.secret, keys.key
    );
    test.okx.script().login_refusal = Some(echo);
    test.begin_connect(0);
    assert_eq!(test.wait_for_loss(), "OKX reports an error at the login: 60012: Invalid request: *** ***");
    test.okx.script().login_refusal = None;
    test.connect(0);
}

#[test]
fn a_clock_that_is_off_ends_the_connect_and_names_the_offset() {
    for (clock_ms, direction) in [(7_000, "behind"), (-7_000, "ahead of")] {
        let mut test = LineUnderTest::new(|_| {});
        test.okx.script().clock_ms = clock_ms;
        test.begin_connect(0);
        let why = test.wait_for_loss();
        let expected = format!(" s {direction} OKX's; set it, for example by NTP");
        assert!(why.starts_with("this host's clock is ") && why.ends_with(&expected), "{why}");
        let offset = why.trim_start_matches("this host's clock is ").split(' ').next().and_then(|s| s.parse().ok());
        assert!(offset.is_some_and(|s: f64| (5.0..60.0).contains(&s)), "{why}");
        assert!(test.okx.texts().is_empty(), "there is no login");
    }
}

#[test]
fn a_small_offset_of_the_clock_is_applied() {
    let mut test = LineUnderTest::new(|config| (config.max_clock_offset_ns, config.valid_ms) = (u64::MAX, 1_000));
    // Far in the future, so that any delay of this machine is small beside it.
    test.okx.script().clock_ms = 3_600_000;
    test.connect(0);
    test.send(0, &Request::New(new_order(1)));
    let expires: u64 = test.okx.requests()[0]["expTime"].as_str().and_then(|ms| ms.parse().ok()).expect("it expires");
    let ahead_ms = expires as i64 - (utc_ns() / 1_000_000) as i64;
    assert!((3_300_000..=3_700_000).contains(&ahead_ms), "{ahead_ms}");
}

#[test]
fn a_connect_is_bounded_in_time() {
    let mut test = LineUnderTest::new(|config| config.connect_timeout_ns = 3_000_000_000);
    test.okx.script().acknowledges = false;
    test.begin_connect(0);
    let expected = "the line is not up within 3000 ms, at the subscription; check the addresses";
    assert_eq!(test.wait_for_loss(), expected);
    assert_eq!(test.ups(), 0);
}

#[test]
fn refusals_for_the_rate_delay_the_next_connects_more_each_time() {
    const PAUSE_NS: i64 = 100_000_000;
    let too_frequent = r#"{"event":"error","code":"60014","msg":"Requests too frequent","connId":"a"}"#;
    let causes: [fn(&mut OkxScript, &str); 4] = [
        |script, _| script.handshake_refusal = Some(429),
        |script, _| script.handshake_refusal = Some(503),
        |script, text| script.login_refusal = Some(text.to_owned()),
        |script, _| script.rest.push((TIME, 429, r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#.to_owned())),
    ];
    let clock = HostClock::get().expect("this host has a clock");
    for cause in causes {
        let mut test = LineUnderTest::new(|config| config.refused_pause_ns = PAUSE_NS as u64);
        let usual = test.okx.script().clone();
        cause(test.okx.script(), too_frequent);
        let began = clock.ticks();
        for connects in 1..=3 {
            test.begin_connect(0);
            test.wait_until("the connect begins", |test| test.okx.calls(TIME).len() == connects);
            let waited_ns = clock.ns_between(began, clock.ticks());
            // One pause lies before the second connect, and twice that before the third.
            assert!(waited_ns >= [0, 1, 3][connects - 1] * PAUSE_NS, "connect {connects}: {waited_ns} ns");
            test.wait_until("the connect is refused", |test| test.losses.len() == connects);
        }
        *test.okx.script() = usual;
        test.connect(0);
    }
}

/// Pages of a list that is longer than the rate of its requests allows in the time of a connect.
const LONG_LIST: u64 = 121;

/// Returns a page of the fills since a loss: the latest is one of order 1, and the others are foreign.
fn page_of_long_list(target: &str) -> Option<String> {
    let query = target.strip_prefix("/api/v5/trade/fills?begin=")?;
    let last = LONG_LIST * 100;
    let before = query.split_once("&after=").map_or(last + 1, |(_, id)| id.parse().expect("an id of the list"));
    let row = |id: u64| if id == last { fill_row(1, id, "1") } else { format!(r#"{{"billId":"{id}"}}"#) };
    let rows: Vec<String> = (before.saturating_sub(100).max(1)..before).rev().map(row).collect();
    Some(rest_rows(&rows))
}

#[test]
fn a_long_list_of_missed_fills_has_the_time_of_a_connect_for_each_page() {
    let mut test = LineUnderTest::new(|config| config.connect_timeout_ns = 4_000_000_000);
    test.connect(0);
    test.okx.cut();
    test.wait_for_loss();
    test.okx.script().list = page_of_long_list;
    let clock = HostClock::get().expect("this host has a clock");
    let began = clock.ticks();
    test.connect(0);
    let took_ns = clock.ns_between(began, clock.ticks());
    assert!(took_ns > 4_000_000_000, "the list has to be longer than the time of a connect: {took_ns} ns");
    assert_eq!(test.wait_for_reports(1)[0].exec_id.0 & 0xff_ffff_ffff, LONG_LIST * 100);
    assert_eq!(test.losses.len(), 1, "{:?}", test.losses);
}

#[test]
fn lists_that_okx_refuses_end_the_connect() {
    let mut test = LineUnderTest::new(|_| {});
    test.okx.answer_rest(
        "/api/v5/trade/orders-pending",
        r#"{"code":"50111","msg":"Invalid OK-ACCESS-KEY kkkk-1111","data":[]}"#,
    );
    test.begin_connect(0);
    assert_eq!(test.wait_for_loss(), "OKX refuses to list the orders: 50111: Invalid OK-ACCESS-KEY ***");
}

#[test]
fn lists_that_fail_for_the_moment_are_read_again() {
    let mut test = LineUnderTest::new(|config| config.connect_timeout_ns = 60_000_000_000);
    test.okx.script().rest.push((
        "/api/v5/trade/orders-pending",
        429,
        r#"{"code":"50011","msg":"","data":[]}"#.to_owned(),
    ));
    test.begin_connect(0);
    test.wait_until("the list is requested", |test| !test.okx.calls("/api/v5/trade/orders-pending").is_empty());
    test.okx.script().rest.push(("/api/v5/trade/orders-pending", 200, "<html>".to_owned()));
    test.wait_until("it is requested again", |test| test.okx.calls("/api/v5/trade/orders-pending").len() >= 2);
    test.okx.script().rest.truncate(2);
    test.wait_until("the line is up", |test| test.ups() == 1);
    assert!(test.losses.is_empty(), "{:?}", test.losses);
}

#[test]
fn fills_that_a_reconnect_has_missed_follow_its_up() {
    let mut test = LineUnderTest::connected();
    test.okx.send(&OrderRow::live(1).filled(500, "0.5", "0.5").push());
    test.wait_for_reports(1);
    test.okx.cut();
    test.wait_for_loss();
    // The latest row comes first, and foreign orders are among them.
    let foreign = fill_row(9, 777, "1").replace(&name(9), "b15");
    let rows = [fill_row(1, 502, "0.25"), foreign, fill_row(1, 501, "0.5"), fill_row(1, 500, "0.5")];
    test.okx.answer_rest("/api/v5/trade/fills?begin=", &rest_rows(&rows));
    test.events.clear();
    test.connect(40);
    test.wait_until("the fills have arrived", |test| test.reports().len() >= 2);
    let [
        up,
        OwnedLineEvent::Report(40, first),
        OwnedLineEvent::Detail(41, detail),
        OwnedLineEvent::Report(42, second),
        ..,
    ] = &test.events[..]
    else {
        panic!("{:?}", test.events);
    };
    assert_eq!(*up, OwnedLineEvent::Up(None, None));
    assert_eq!([first.exec_type, second.exec_type], [ExecType::Trade.code(); 2]);
    assert_eq!(first.exec_id.0 & 0xff_ffff_ffff, 501, "the fill that was reported before is left out");
    assert_eq!([essence(first).5, essence(second).5], ["1", "1.25"]);
    assert_eq!((first.venue, first.symbol, first.account.0), (VENUE, SymbolId(0), 7));
    assert_eq!((i128::from_le_bytes(detail.fee), detail.fee_currency.as_str()), (15_000_000_000_000, "BTC"));
    assert_eq!((detail.liquidity, detail.venue_received_ns), (Liquidity::Taker.code(), 1_654_084_353_263_000_000));
}

#[test]
fn a_lost_line_can_be_connected_again_and_keeps_events_of_a_connect_that_failed() {
    let mut test = LineUnderTest::new(|_| {});
    test.okx.script().rest.push((
        "/api/v5/trade/orders-pending",
        429,
        r#"{"code":"50011","msg":"","data":[]}"#.to_owned(),
    ));
    test.begin_connect(0);
    test.wait_until("the list is requested", |test| !test.okx.calls("/api/v5/trade/orders-pending").is_empty());
    let row = OrderRow::live(1).filled(500, "0.5", "0.5");
    test.okx.send(&row.push());
    test.okx.send(r#"{"event":"error","code":"60012","msg":"last","connId":"a"}"#);
    assert_eq!(test.wait_for_loss(), "OKX reports an error while the orders were listed: 60012: last");
    assert!(test.events.is_empty(), "a line that was never up reports nothing: {:?}", test.events);
    test.okx.script().rest.truncate(2);
    test.connect(0);
    test.okx.send(&row.push());
    test.okx.send(&OrderRow::live(2).push());
    assert_eq!(test.wait_for_reports(2)[0].exec_type, ExecType::Trade.code());
    assert_eq!(test.reports()[1].order_id.0, 2, "the row that came twice is reported once");
}

#[test]
fn configurations_that_make_no_line_are_refused() {
    let refused = |change: fn(&mut OkxLineConfig)| {
        let mut config = config(&ScriptedOkx::start());
        change(&mut config);
        OkxLine::new(config).err()
    };
    assert!(matches!(refused(|config| config.valid_ms = 0), Some(OkxLineError::Validity(0))));
    assert!(matches!(refused(|config| config.cancel_all_after_s = Some(5)), Some(OkxLineError::CancelAllAfter(5))));
    assert!(matches!(refused(|config| config.instruments[0].name = "a b".to_owned()), Some(OkxLineError::Name(_))));
    assert!(matches!(refused(|config| config.instruments[0].contract.0 = 0), Some(OkxLineError::Contract(_))));
    assert!(matches!(refused(|config| config.instruments[1].symbol = SymbolId(0)), Some(OkxLineError::Duplicate(_))));
    assert!(matches!(refused(|config| config.url = "ftp://localhost".to_owned()), Some(OkxLineError::Client(_))));
    assert!(refused(|_| {}).is_none());
}

#[test]
fn no_form_of_the_line_shows_a_secret() {
    let test = LineUnderTest::connected();
    let keys = credentials();
    let texts =
        [format!("{:?}", test.line), format!("{:?}", config(&test.okx)), format!("{keys:?}"), test.line.address()];
    for text in texts {
        assert!([&keys.key, &keys.secret, &keys.passphrase].iter().all(|secret| !text.contains(*secret)), "{text}");
    }
}
