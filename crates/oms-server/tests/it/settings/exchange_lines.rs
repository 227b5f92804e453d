//! Lines to exchanges in `oms.toml`: their keys, their instruments, and their secrets, which nothing shows.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tickpath_clock::LogoutCleanup;
use tickpath_exchanges::OrderExchange;
use tickpath_market::{Quantity, SymbolId, VenueId};
use tickpath_oms_server::settings::LineTarget;

use super::Files;

/// Key of the lines in the first file, and a key of the venue's behaviour.
const LINES: &str =
    "#lines = [{ url = \"tcp://127.0.0.1:7701\", rate_per_second = 100, window = 20, lost_after_ms = 10000 }]";
const NUMBERED: &str = "#numbered = true";

const OKX: &str = "url = \"okx+ws://127.0.0.1:7702/ws/v5/private\", credentials = \"api.toml\"";
const BINANCE: &str = "url = \"binance+ws://127.0.0.1:7703/ws-api/v3\", credentials = \"api.toml\"";
const SECRET: &str = "correcthorsebatterystaple";

/// Returns the files of an OMS with one line of these keys, and with credentials that its owner alone may read.
fn files(line: &str) -> Files {
    let files = Files::new();
    files.change("oms.toml", LINES, &format!("lines = [{{ {line} }}]"));
    files.change("oms.toml", NUMBERED, "numbered = false");
    files.write("api.toml", &format!("key = \"abc123\"\nsecret = \"{SECRET}\"\npassphrase = \"{SECRET}\"\n"));
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(files.at("api.toml"), private).expect("the file is ours");
    files
}

#[test]
fn a_line_to_an_exchange_is_read_and_shows_no_secret() {
    let keys = "valid_ms = 700, rest_url = \"http://127.0.0.1:7702\", demo = true, cancel_all_after_s = 30, window = 9";
    let files = files(&format!("{OKX}, {keys}"));
    let settings = files.read();
    let line = &settings.venues[0].lines[0];
    let LineTarget::Exchange(target) = &line.target else { panic!("{line:?}") };
    assert_eq!((target.exchange, target.url.as_str()), (OrderExchange::Okx, "ws://127.0.0.1:7702/ws/v5/private"));
    assert_eq!(target.rest_url.as_deref(), Some("http://127.0.0.1:7702"));
    assert_eq!((target.is_demo, target.valid_ms, target.cancel_all_after_s), (true, 700, Some(30)));
    assert_eq!((line.window, target.credentials.clone()), (9, files.at("api.toml")));
    let config = settings.config();
    assert_eq!(config.lanes.lines.len(), 1);
    assert!(config.lanes.venues.is_empty(), "a venue with lines has no lanes");
    let shown = format!("{settings:?} {config:?} {}", line.target);
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.contains("okx+ws://127.0.0.1:7702/ws/v5/private with the credentials in "), "{shown}");
}

#[test]
fn the_instruments_of_a_line_have_their_codes_and_lots() {
    let files = files(OKX);
    files.write("symbols.csv", "account,symbol\n");
    let table = "symbol,number,venue,lot,code\nBTC-USDT,1,SIM,0.001,7\nETH-USDT-SWAP,2,SIM,1,\n";
    files.write("instruments.csv", table);
    let settings = files.read();
    let listed = settings.line_instruments(VenueId(1));
    let fields: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.symbol, one.code, one.lot)).collect();
    let lot: Quantity = "0.001".parse().expect("it is a decimal");
    let expected = [("BTC-USDT", SymbolId(1), 7, lot), ("ETH-USDT-SWAP", SymbolId(2), 0, Quantity::from_whole(1))];
    assert_eq!(fields, expected);
    assert!(settings.line_instruments(VenueId(2)).is_empty(), "no instrument is of another venue");
    let warnings = settings.warnings(LogoutCleanup::Kept("")).join("\n");
    assert!(warnings.contains("have no code, ETH-USDT-SWAP first"), "{warnings}");
}

#[test]
fn addresses_lead_to_the_rest_interface_of_the_same_exchange() {
    for (exchange, url, expected) in [
        (OrderExchange::Okx, "wss://ws.okx.com:8443/ws/v5/private", Some("https://openapi.okx.com")),
        (OrderExchange::Okx, "wss://wseea.okx.com:8443/ws/v5/private", Some("https://eea.okx.com")),
        (OrderExchange::Okx, "wss://other.okx.com/ws/v5/private", None),
        (OrderExchange::Okx, "wss://127.0.0.1:7702/ws/v5/private", Some("https://127.0.0.1:7702")),
        (OrderExchange::Okx, "ws://[::1]:7702/ws/v5/private", Some("http://[::1]:7702")),
        (OrderExchange::Binance, "wss://ws-api.binance.com:443/ws-api/v3?a=b", Some("https://api.binance.com")),
        (OrderExchange::Binance, "ws://localhost:7703?a=b", Some("http://localhost:7703")),
    ] {
        assert_eq!(exchange.rest_url(url).as_deref(), expected, "of {url}");
    }
}

#[test]
fn a_wrong_key_of_a_line_is_reported_at_its_line() {
    let only_exchanges = "only a line to okx+wss:// or binance+wss:// has this key; remove it, or correct url";
    for (line, expected) in [
        (
            "url = \"okx+http://h/p\"".to_owned(),
            "@: [[lines]] url: 'okx+http://h/p' is no address of a line; use tcp://HOST:PORT, unix:///PATH, \
             okx+wss://HOST/PATH or binance+wss://HOST/PATH"
                .to_owned(),
        ),
        (
            "url = \"okx+ws://127.0.0.1:1/p\"".to_owned(),
            "@: [[lines]] credentials: a line to OKX needs an API key; name its file".to_owned(),
        ),
        (
            "url = \"tcp://127.0.0.1:1\", credentials = \"api.toml\", valid_ms = 700".to_owned(),
            format!("@: [[lines]] credentials: {only_exchanges}\noms.toml:@: [[lines]] valid_ms: {only_exchanges}"),
        ),
        (
            format!("{BINANCE}, demo = true"),
            "@: [[lines]] demo: Binance has no demo header; remove the key, and write the address of its test network \
             in url"
                .to_owned(),
        ),
        (
            format!("{OKX}, password_file = \"api.toml\""),
            "@: [[lines]] password_file: OKX asks for an API key; write credentials instead".to_owned(),
        ),
        (
            format!("{OKX}, cancel_all_after_s = 5"),
            "@: [[lines]] cancel_all_after_s: 5 is out of range; use 10 to 120".to_owned(),
        ),
        (
            "url = \"okx+wss://new.okx.com/p\", credentials = \"api.toml\"".to_owned(),
            "@: [[lines]] url: the REST interface of this host is not known; write rest_url as well".to_owned(),
        ),
        (
            format!("{OKX} }}, {{ {BINANCE}"),
            "@: [[venue]] lines: all lines of a venue lead to one exchange; give the other a [[venue]] of its own"
                .to_owned(),
        ),
    ] {
        let files = files(&line);
        let text = files.text("oms.toml");
        let at = 1 + text.lines().position(|line| line.starts_with("lines = ")).expect("it was written");
        let expected = format!("oms.toml:{}", expected.replace('@', &at.to_string()));
        assert_eq!(files.reported(), expected, "of {line}");
    }
}

#[test]
fn a_venue_at_an_exchange_must_not_number_its_events() {
    for line in [OKX, BINANCE] {
        let files = files(line);
        let at = 1 + files.change("oms.toml", "\nnumbered = false", "\nnumbered = true");
        files.change("oms.toml", "#answers_status = true", "answers_status = false");
        let reported = files.reported();
        let numbered = format!("oms.toml:{at}: [[venue]] numbered: ");
        assert!(reported.contains(&numbered) && reported.contains("; set numbered = false"), "{reported}");
        assert!(reported.contains("; set answers_status = true, or remove the key"), "{reported}");
    }
}

#[test]
fn unusable_credentials_are_found_before_the_start_and_not_shown() {
    for line in [OKX, BINANCE] {
        let files = files(line);
        files.write("api.toml", &format!("key = \"abc123\"\nsecrt = \"{SECRET}\"\n"));
        let reported = files.reported();
        assert!(reported.starts_with("oms.toml:") && reported.contains("api.toml"), "{reported}");
        assert!(!reported.contains(SECRET), "{reported}");
        let exposed = fs::Permissions::from_mode(0o644);
        fs::set_permissions(files.at("api.toml"), exposed).expect("the file is ours");
        assert!(files.reported().contains("chmod 600"), "{}", files.reported());
    }
}

#[test]
fn a_second_line_of_a_venue_to_an_exchange_is_refused() {
    for (line, exchange) in [(OKX, "OKX"), (BINANCE, "Binance")] {
        // Another file with the same key is the same account.
        let again = line.replace("api.toml", "copy.toml");
        let files = files(&format!("{line} }}, {{ {again}"));
        fs::copy(files.at("api.toml"), files.at("copy.toml")).expect("the folder is ours");
        let at =
            1 + files.text("oms.toml").lines().position(|line| line.starts_with("lines = ")).expect("just written");
        let reported = files.reported();
        let expected =
            format!("oms.toml:{at}: [[lines]] url: a venue has one line to {exchange}: each line is an account");
        assert!(reported.starts_with(&expected) && reported.lines().count() == 1, "{reported}");
    }
}
