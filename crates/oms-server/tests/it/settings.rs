//! The files of an OMS: the settings they give, and the message for each mistake in them.

mod exchange_lines;
mod limits;
mod users;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};
use tickpath_clock::{LogoutCleanup, Priority, Wait};
use tickpath_market::{AccountId, Notional, Price, Quantity, SymbolId, VenueId};
use tickpath_oms_core::{
    ALL_ACCOUNTS, AccountLimits, At, Core, GIVE_UP, Input, Instrument, OTHER_LINE, Outputs, RETRY, RejectRule,
    SessionRules, VenueRules,
};
use tickpath_oms_runtime::{Layout, RequestRate, SessionConfig};
use tickpath_oms_server::settings::{self, Settings, UsersFile, instrument_columns, list_instruments};

/// Initial files of an OMS, in a temporary folder that is removed on drop.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let folder = tempdir().expect("a temporary folder can be made");
        settings::init(folder.path(), || "correct horse".to_owned()).expect("the folder is empty");
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self) -> Settings {
        Settings::read(&self.at("oms.toml")).expect("the files are sound")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).expect("the folder is ours");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect("it is there")
    }

    /// Replaces a text in a file and returns its line.
    fn change(&self, name: &str, from: &str, to: &str) -> usize {
        let text = self.text(name);
        let at = text.find(from).unwrap_or_else(|| panic!("{name} has no {from}"));
        self.write(name, &text.replacen(from, to, 1));
        text[..at].lines().count().max(1) + usize::from(text[..at].ends_with('\n'))
    }

    /// Returns the messages about the files, without the folder and the first line.
    fn reported(&self) -> String {
        let Err(faults) = Settings::read(&self.at("oms.toml")) else { return "nothing".to_owned() };
        let folder = format!("{}/", self.0.path().display());
        let sentence = faults.to_string().replace(&folder, "");
        sentence.split_once('\n').expect("mistakes follow the first line").1.to_owned()
    }

    fn users(&self) -> UsersFile {
        UsersFile::open(&self.at("users.toml")).expect("the users are sound")
    }
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_initial_files_are_valid_and_state_the_defaults() {
    let files = Files::new();
    let settings = files.read();
    let listed: Vec<String> =
        settings.instruments.iter().map(|i| format!("{} {} {}", i.name(), i.symbol, i.venue)).collect();
    assert_eq!(listed, ["BTCUSDT 1 1", "ETHUSDT 2 1"]);
    assert_eq!(settings.venues[0].rules, VenueRules::of(VenueId(1)));
    assert_eq!(settings.listen.unix, Some(files.at("oms.sock")));
    assert_eq!(settings.warnings(LogoutCleanup::Kept("")), [""; 0]);
    for (name, expected) in [("users.toml", 0o600), ("trader.password", 0o600), ("admin.password", 0o600)] {
        assert_eq!(mode(&files.at(name)), expected, "{name}");
    }
    assert_eq!(files.text("trader.password"), "correct horse\n");

    let config = settings.config();
    assert_eq!(config.journal.path.dir(), files.at("journal"));
    assert_eq!(
        (config.lanes.name.as_str(), config.lanes.sessions, &config.lanes.venues[..]),
        ("oms", 0, &[VenueId(1)][..])
    );
    assert_eq!((config.layout, config.wait, config.priority), (Layout::Split, Wait::Block, Priority::Normal));
    assert_eq!((config.cpu, config.other_cpu), (None, None));
    let sessions: Vec<u16> = config.trading.sessions.iter().map(|session| session.session).collect();
    assert_eq!(sessions, [0, 1, 2, 3, 8, 9]);
    let granted =
        |session: &SessionConfig| session.accounts == [ALL_ACCOUNTS] && session.rate == RequestRate::default();
    assert!(config.trading.sessions.iter().all(granted));

    // The commented lines show the defaults and are enabled here; CPU numbers depend on the host.
    let text = files.text("oms.toml");
    let spoken = |line: &str| match line.strip_prefix('#') {
        Some(rest)
            if rest.starts_with(|c: char| c.is_ascii_lowercase())
                && !rest.contains("cpu")
                && !rest.starts_with("lines")
                && !rest.starts_with("rejects") =>
        {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    let spoken: Vec<String> = text.lines().map(spoken).collect();
    assert!(spoken.iter().filter(|line| !text.contains(&format!("\n{line}"))).count() > 12, "they are spoken now");
    files.write("oms.toml", &spoken.join("\n"));
    let output = files.read();
    assert_eq!(output.denials, settings.denials);
    assert_eq!((output.core, output.sessions, output.venues), (settings.core, settings.sessions, settings.venues));
}

#[test]
fn retry_rules_are_read_from_the_venue() {
    let files = Files::new();
    let line = "{ url = \"tcp://127.0.0.1:7701\", lost_after_ms = 700 }";
    files.change("oms.toml", "#max_queued = 1024", &format!("lines = [{line}, {line}]"));
    files.change(
        "oms.toml",
        "#rejects = [{ code = 10, do = \"retry\", times = 3 }]",
        "rejects = [{ code = 10, do = \"retry\" }, { code = 0, do = \"give-up\" }, { code = 65535, do = \"other-line\", times = 9 }]",
    );
    let config = files.read().config();
    let rule = |code, action, times| RejectRule { venue: VenueId(1), code, action, times, reserved: 0 };
    assert_eq!(config.trading.rejects, [rule(10, RETRY, 3), rule(0, GIVE_UP, 0), rule(65535, OTHER_LINE, 9)]);
    assert_eq!(config.lanes.lines.iter().map(|line| line.lost_after_ns).collect::<Vec<_>>(), [700_000_000; 2]);
}

#[test]
fn two_drop_copy_topics_need_two_names() {
    let files = Files::new();
    let section = |topic: &str| {
        format!("[[drop_copy]]\nurl = \"nats://127.0.0.1:4222\"\ntopic = \"{topic}\"\naccounts = [\"*\"]\n\n")
    };
    let one = section("reports");
    files.change("oms.toml", "[core]\n", &format!("{one}{}[core]\n", section("fills")));
    assert_eq!(files.read().drop_copies.len(), 2);
    files.change("oms.toml", "[core]\n", &format!("{one}[core]\n"));
    let sentence = files.reported();
    assert!(
        sentence.contains("'reports' at nats://127.0.0.1:4222 is published already; name each topic once"),
        "{sentence}"
    );
}

#[test]
fn init_overwrites_nothing_and_leaves_no_partial_files() {
    let folder = tempdir().expect("a temporary folder can be made");
    let last = folder.path().join("admin.password");
    symlink("nowhere", &last).expect("the folder is ours");
    let refused = settings::init(folder.path(), || "x".to_owned()).expect_err("something is there").to_string();
    assert!(refused.ends_with("admin.password exists already and is not overwritten; name another folder"));
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
}

#[test]
fn every_mistake_of_a_file_is_reported_at_its_line() {
    for (from, to, expected) in [
        (
            "name = \"oms\"",
            "name = \"a/b\"",
            "oms.toml:@0: name: 'a/b' cannot be in the names of lanes; use 1 to 100 letters, digits, '.', '_', '-' or ':', not starting with a point",
        ),
        (
            "journal = \"journal\"",
            "journl = \"x\"",
            "oms.toml:1: 'journal' is missing\noms.toml:@0: unknown key 'journl'; did you mean 'journal'?",
        ),
        (
            "tcp = \"127.0.0.1:7001\"",
            "tcp = \"localhost:7001\"",
            "oms.toml:@0: [listen] tcp: 'localhost:7001' is no address; write an IP and a port, like 127.0.0.1:7001 or [::]:7001",
        ),
        (
            "#layout = \"split\"",
            "layout = \"mutex\"",
            "oms.toml:@0: [core] layout: 'mutex' is not allowed; use inline or split",
        ),
        (
            "#layout = \"split\"",
            "layout = \"inline\"",
            "oms.toml:@0: [core] layout: one thread cannot sleep for sockets and for shared memory at once; set wait = \"busy\" or \"yield\"",
        ),
        (
            "#wait = \"block\"",
            "wait = \"bussy\"",
            "oms.toml:@0: [core] wait: 'bussy' is not allowed; use busy, yield, block or adaptive",
        ),
        (
            "#priority = \"normal\"",
            "priority = \"fifo:0\"",
            "oms.toml:@0: [core] priority: 'fifo:0' is no priority; use normal or fifo:1 to fifo:99",
        ),
        (
            "#expected_orders = 100000",
            "expected_orders = 0",
            "oms.toml:@0: [core] expected_orders: 0 is out of range; use 1 to 50000000",
        ),
        (
            "#metrics = \"127.0.0.1:9464\"",
            "metrics = \"9464\"",
            "oms.toml:@0: metrics: '9464' is no address; write an IP and a port, like 127.0.0.1:7001 or [::]:7001",
        ),
        ("#log = \"text\"", "log = \"xml\"", "oms.toml:@0: log: 'xml' is not allowed; use text, logfmt or json"),
        (
            "#heartbeat_ms = 10000",
            "heartbeat_ms = 1",
            "oms.toml:@0: [sessions] heartbeat_ms: 1 is out of range; use 100 to 3600000",
        ),
        (
            "#level = \"os\"",
            "level = \"replica\"",
            "oms.toml:@0: [sessions] level: 'replica' is not allowed; use os or disk",
        ),
        ("number = 1", "number = 4096", "oms.toml:@0: [[venue]] number: 4096 is out of range; use 0 to 4095"),
        (
            "name = \"SIM\"",
            "name = \"1\"",
            "oms.toml:@0: [[venue]] name: '1' does not begin with a letter, so it could be read as a number",
        ),
        (
            "#max_gap_ms = 1000",
            "[[venue]]\nnumber = 1\nname = \"SIM\"",
            "oms.toml:@1: [[venue]] number: '1' is another venue's already; give each its own\noms.toml:@2: [[venue]] name: 'SIM' is another venue's already; give each its own",
        ),
        (
            "#rejects = [{ code = 10, do = \"retry\", times = 3 }]",
            "rejects = [{ code = 70000, do = \"again\", times = 0 }, { do = \"retry\" }, { code = 1, do = \"give-up\", times = 2 }, { code = 1, do = \"other-line\" }]",
            "oms.toml:@0: [[rejects]] code: 70000 is out of range; use 0 to 65535\n\
             oms.toml:@0: [[rejects]] do: 'again' is not allowed; use give-up, retry or other-line\n\
             oms.toml:@0: [[rejects]] times: 0 is out of range; use 1 to 100\n\
             oms.toml:@0: [[rejects]] 'code' is missing\n\
             oms.toml:@0: [[rejects]] times: an order that is given up is not retried; leave 'times' out, or set do = \"retry\"\n\
             oms.toml:@0: [[rejects]] do: the venue has no other line, it has 0; add one to 'lines', or retry\n\
             oms.toml:@0: [[rejects]] code: 1 has a rule already; give each code one",
        ),
        (
            "#lines = [{ url = \"tcp://127.0.0.1:7701\", rate_per_second = 100, window = 20, lost_after_ms = 10000 }]",
            "lines = [{ url = \"tcp://127.0.0.1:7701\", lost_after_ms = 5 }]",
            "oms.toml:@0: [[lines]] lost_after_ms: 5 is out of range; use 100 to 86400000",
        ),
        ("\"users.toml\"", "\"nobody.toml\"", "nobody.toml: there is no such file; create it, or name another"),
    ] {
        let files = Files::new();
        let line = files.change("oms.toml", from, to);
        let places = [("@0", line), ("@1", line + 1), ("@2", line + 2)];
        let expected =
            places.iter().fold(expected.to_owned(), |text, (place, line)| text.replace(place, &line.to_string()));
        assert_eq!(files.reported(), expected, "of {to}");
    }
    let files = Files::new();
    files.write("oms.toml", "users = 'users.toml'\n");
    let sentence = files.reported();
    assert!(sentence.contains("oms.toml:1: [listen] has no address; set 'unix'"), "{sentence}");
    assert!(sentence.contains("oms.toml:1: there is no [[venue]]; orders need one"), "{sentence}");
}

#[test]
fn mistakes_of_all_files_are_reported_together() {
    let files = Files::new();
    let changes = [
        ("oms.toml", "name = \"oms\"", "name = 7"),
        ("instruments.csv", "ETHUSDT,2", "ETHUSDT,1"),
        ("accounts.csv", "2,100", "2,-100"),
        ("users.toml", "role = \"trade\"", "role = \"king\""),
    ];
    let places = changes.map(|(name, from, to)| format!("{name}:{}: ", files.change(name, from, to)));
    let faults = Settings::read(&files.at("oms.toml")).expect_err("four are wrong").to_string();
    assert!(faults.starts_with("4 mistakes; correct them; until then the OMS uses none of these files\n"), "{faults}");
    for place in places {
        assert!(faults.contains(&place), "{place} in {faults}");
    }
}

#[test]
fn instruments_of_another_form_are_left_out_by_name() {
    let files = Files::new();
    let table = "symbol,number,venue,contract,price_decimals,tick_size\n\
                 BTC-USDT,1,SIM,linear,8,0.1\n\
                 BTC-USD-SWAP,2,SIM,inverse,8,0.1\n\
                 BTTC-USDT,3,SIM,,12,0.000000000001\n";
    files.write("instruments.csv", table);
    let settings = files.read();
    assert_eq!(settings.instruments.iter().map(|i| i.symbol.0).collect::<Vec<_>>(), [1]);
    let warnings = settings.warnings(LogoutCleanup::Kept("")).join("\n");
    for words in
        ["1 not traded here, because the value of an inverse", ": BTC-USD-SWAP", "of 8 decimals are traded: BTTC-USDT"]
    {
        assert!(warnings.contains(words), "no '{words}' in {warnings}");
    }
}

#[test]
fn an_invalid_line_of_the_instruments_is_reported_by_number() {
    for (table, expected) in [
        ("", "1: the table is empty; its first line names the columns: @all"),
        ("symbol,number", "1: columns are missing; add them to this line, and a cell to each other: venue"),
        ("symbol,number,venue,venue", "1: column 'venue' is there twice; name it once"),
        ("symbol,number,venue,lots", "1: unknown column 'lots'; the columns, with commas between them: @all"),
        ("# c\n\nsymbol,number,venue\nA,1", "4: 2 cells, but the first line names 3 columns; write one cell for each"),
        (
            "symbol,number,venue\n\"A,1,1\nB,2,1",
            "2: a quotation mark is not closed, or stands inside a cell; write the cell without it, or the whole cell \
             between two",
        ),
        ("symbol,number,venue\nNÄME,1,1", "2: symbol: 'NÄME' is no symbol; use 1 to 48 printable ASCII characters"),
        (
            "symbol,number,venue\nA,65536,1",
            "2: number: '65536' is no whole number of 0 to 65535; write one without signs and spaces",
        ),
        ("symbol,number,venue\nA,,1", "2: number: the cell is empty; this cannot be left out"),
        (
            "symbol,number,venue\nA,1,EX",
            "2: venue: 'EX' is no [[venue]] of the OMS; write the name or the number of one",
        ),
        (
            "symbol,number,venue\nA,1,1\nA,1,1",
            "3: symbol: A is in line 2 already; write each once\ninstruments.csv:3: number: 1 is in line 2 already; write each once",
        ),
        (
            "symbol,number,venue,multiplier\nA,1,1,0",
            "2: multiplier: '0' is no contract size; write a decimal number above zero, like 50 or 0.01, of at most 18 \
             digits",
        ),
        (
            "symbol,number,venue,tick_size\nA,1,1,0",
            "2: tick_size: it must be above zero; leave the cell empty for none",
        ),
        ("symbol,number,venue,lot\nA,1,1,-1", "2: lot: it must be above zero; leave the cell empty for none"),
        ("symbol,number,venue,lot\nA,1,1,one", "2: lot: not a decimal number; write it like 61800.25"),
        (
            "symbol,number,venue,lowest_price,highest_price\nA,1,1,5,\nB,2,1,5,4",
            "2: highest_price: a band has two ends; write both, or leave both empty for none\n\
             instruments.csv:3: highest_price: the band ends below its beginning; write the higher price here",
        ),
        (
            "symbol,number,venue,hours\nA,1,1,9-17",
            "2: hours: '9-17' are no hours; write one or two parts of the day, UTC, like 00:45-05:45 07:00-21:00",
        ),
        (
            "symbol,number,venue,hours\nA,1,1,09:00-09:00",
            "2: hours: '09:00-09:00' are no hours; write one or two parts of the day, UTC, like 00:45-05:45 07:00-21:00",
        ),
        (
            "symbol,number,venue,currency\nA,1,1,usd",
            "2: currency: 'usd' is no currency; write up to twelve capital letters and digits, like USD or USDT",
        ),
        (
            "symbol,number,venue,multiplier\nA,1,1,0.00",
            "2: multiplier: '0.00' is no contract size; write a decimal number above zero, like 50 or 0.01, of at most 18 \
             digits",
        ),
        (
            "symbol,number,venue,contract\nA,1,1,spot",
            "2: contract: 'spot' is no kind of contract; write linear, quanto or inverse, or leave the cell empty",
        ),
        (
            "symbol,number,venue,rate_limit\nA,1,1,5",
            "2: rate_window_ns: a rate needs its window; write it, or leave rate_limit empty for none",
        ),
        (
            "symbol,number,venue,restricted\nA,1,1,maybe",
            "2: restricted: 'maybe' is neither true nor false; write one of them",
        ),
    ] {
        let files = Files::new();
        // Another table must not report columns that this table lacks.
        files.write("symbols.csv", "account,symbol\n");
        files.write("instruments.csv", table);
        let all: Vec<&str> = instrument_columns().collect();
        assert_eq!(
            files.reported(),
            format!("instruments.csv:{}", expected.replace("@all", &all.join(","))),
            "of {table:?}"
        );
    }
    let files = Files::new();
    files.write("instruments.csv", "\u{feff}venue, number ,multiplier,symbol\r\nSIM,7,,A\r\n\r\n1,0,200,B");
    let instrument = |symbol, name: &str, multiplier| Instrument {
        symbol: SymbolId(symbol),
        venue: VenueId(1),
        reserved: 0,

        multiplier,
        ..Instrument::named(name.parse().expect("a good name"))
    };
    assert_eq!(files.read().instruments, [instrument(7, "A", 1), instrument(0, "B", 200)], "in any order of columns");
    files.write("instruments.csv", "\"symbol\",number,venue\n\"A,B\",\"7\",\"SIM\"\n");
    assert_eq!(files.read().instruments, [instrument(7, "A,B", 1)], "cells in quotation marks");
    let listed = list_instruments(&files.at("instruments.csv"));
    assert_eq!(listed, Some(vec![("A,B".to_owned(), 7, Some("SIM".to_owned()))]));
}

#[test]
fn an_invalid_limit_is_reported_by_its_line() {
    let head = "account,max_order_quantity,max_notional,collar,max_reference_age_ns,max_position,rate_limit,credit\n";
    for (line, expected) in [
        (",1,1,1,1,1,,", "account: the cell is empty; this cannot be left out"),
        ("1,-1,1,1,1,1,,", "max_order_quantity: a limit is not below zero; write the largest that is allowed"),
        ("1,1,-1,1,1,1,,", "max_notional: a limit is not below zero; write the largest that is allowed"),
        ("1,1,1,1.5,1,1,,", "collar: '1.5' is no whole number of 0 to 4294967295; write one without signs and spaces"),
        (
            "1,1,1,1,0,1,,",
            "max_reference_age_ns: '0' is no whole number of 1 to 18446744073709551615; write one without signs and spaces",
        ),
        ("1,1,1,1,1,many,,", "max_position: not a decimal number; write it like 61800.25"),
        ("1,1,1,1,1,1,5,", "rate_window_ns: a rate needs its window; write it, or leave rate_limit empty for none"),
        ("1,1,1,1,1,1,,1e5", "credit: '1e5' is no amount; write a decimal number below 10 000 000 000 000 000 000 000"),
        ("1,1,1,1,1,1,,1.123456789", "credit: more than eight decimals; round it to eight"),
        ("1,1,1,1,1,1,,.", "credit: '.' is no amount; write a decimal number below 10 000 000 000 000 000 000 000"),
        (
            "1,1,1,1,1,1,,99999999999999999999999",
            "credit: '99999999999999999999999' is no amount; write a decimal number below 10 000 000 000 000 000 000 000",
        ),
    ] {
        let files = Files::new();
        files.write("accounts.csv", &format!("{head}{line}\n"));
        assert_eq!(files.reported(), format!("accounts.csv:2: {expected}"), "of {line}");
    }
}

#[test]
fn limits_are_read_from_the_table_and_off_if_absent() {
    let files = Files::new();
    let table = "account,rate_limit,rate_window_ns,max_order_quantity,max_notional,credit,collar,max_open_orders,max_reference_age_ns,max_request_age_ns,max_position\n\
                 65535,5,1000,1.5,1000000000000.00000001,,250,,60,,.00000001\n";
    files.write("accounts.csv", table);
    let one = Notional::of(Price(1), Quantity::from_whole(1));
    let expected = AccountLimits {
        account: AccountId(65535),
        rate_limit: 5,
        rate_window_ns: 1000,
        max_order_quantity: Quantity(150_000_000),
        max_notional: (Notional::from_whole(1_000_000_000_000).0 + one.0).to_le_bytes(),
        credit: [0; 16],
        collar: 250,
        max_open_orders: 0,
        max_reference_age_ns: 60,
        max_request_age_ns: 0,
        max_position: Quantity(1),
        ..AccountLimits::default()
    };
    assert_eq!(files.read().accounts, [expected]);
}

#[test]
fn the_core_accepts_every_valid_configuration() {
    let files = Files::new();
    files.change("oms.toml", "number = 1", "number = 4095");
    files.write("instruments.csv", "symbol,number,venue,multiplier\nA,0,4095,1\nB,65535,4095,9223372036854775807\n");
    files.change("accounts.csv", "\n2,", "\n65535,");
    files.change("users.toml", "[8, 9]", "[8, 64999]");
    files.write("symbols.csv", "account,symbol,max_position\n65535,B,0\n");
    files.change("oms.toml", "#max_notional = 50000000", "max_notional = \"9999999999999999999999.99999999\"");
    let desk = files.read().trading_config();
    let mut inputs: Vec<Input> = desk.venues.into_iter().map(Input::Venue).collect();
    inputs.extend(desk.instruments.into_iter().map(Input::Instrument));
    inputs.extend(desk.accounts.into_iter().map(Input::Account));
    inputs.extend(desk.symbols.into_iter().map(Input::SymbolLimits));
    inputs.extend(desk.firm.map(Input::Firm));
    inputs.extend(
        desk.sessions
            .iter()
            .map(|config| Input::Session(SessionRules { session: config.session, ..SessionRules::default() })),
    );
    let (mut core, mut out) = (Core::new(Default::default()), Outputs::new());
    for (input, sequence) in inputs.iter().zip(1..) {
        core.apply(At { sequence, stamp: sequence }, input, &mut out);
    }
    assert_eq!(core.counts().ignored, 0);
}

#[test]
fn a_public_address_needs_tls_or_the_insecure_key() {
    let files = Files::new();
    let line = files.change("oms.toml", "127.0.0.1:7001", "0.0.0.0:7001");
    let sentence = files.reported();
    assert!(sentence.contains(&format!("oms.toml:{line}: [listen] tcp: other hosts can reach it")), "{sentence}");
    let line = files.change("oms.toml", "#   [tls]\n#   certificate", "[tls]\ncertificate");
    let sentence = files.reported();
    assert!(sentence.contains(&format!("oms.toml:{line}: [tls] 'key' is missing")), "{sentence}");
    files.change("oms.toml", "#   key = ", "key = ");
    let sentence = files.reported();
    assert!(sentence.contains(&format!("oms.toml:{line}: tls: certificate.pem: No such file")), "{sentence}");
    let settings = Settings::read_for_client(&files.at("oms.toml")).expect("a client needs no key");
    assert_eq!(settings.listen.tls.map(|tls| tls.key), Some(files.at("key.pem")));
}

#[test]
fn a_public_web_port_needs_tls_or_the_insecure_key() {
    for (key, port) in [("web", 8080), ("metrics", 9464)] {
        let files = Files::new();
        let line = files.change("oms.toml", &format!("#{key} = \"127.0.0.1"), &format!("{key} = \"0.0.0.0"));
        let sentence = files.reported();
        assert!(sentence.contains(&format!("oms.toml:{line}: {key}: other hosts can reach it")), "{sentence}");
        let open = format!("{key} = \"0.0.0.0:{port}\"");
        files.change("oms.toml", &open, &format!("{open}\ninsecure = true"));
        let sentence = files.read().warnings(LogoutCleanup::Kept(""));
        assert!(sentence.iter().any(|doubt| doubt.contains("passwords included")), "{sentence:?}");
    }
    let files = Files::new();
    let line = files.change("oms.toml", "#hosts = []", "hosts = [\"desk-1.example:8080\"]");
    let sentence = files.reported();
    assert!(
        sentence.contains(&format!("oms.toml:{line}: hosts: 'desk-1.example:8080' is no host's name")),
        "{sentence}"
    );
}

#[test]
fn a_doubtful_setting_is_a_warning_and_no_mistake() {
    let files = Files::new();
    files.change("users.toml", "accounts = [\"*\"]", "accounts = [\"1\", \"3*\"]");
    files.change("oms.toml", "tcp = \"127.0.0.1:7001\"", "tcp = \"0.0.0.0:7001\"\ninsecure = true");
    files.change("oms.toml", "#web = \"127.0.0.1:8080\"", "web = \"0.0.0.0:8080\"\ninsecure = true");
    fs::set_permissions(files.at("users.toml"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    let doubts = files.read().warnings(LogoutCleanup::Kept(""));
    assert_eq!(doubts.len(), 4, "{doubts:?}");
    assert!(doubts[0].starts_with("user 'trader': no account of ") && doubts[0].ends_with(" matches '3*'"));
    assert!(doubts[2].starts_with("web 0.0.0.0:8080: other hosts can read it"), "{doubts:?}");
    assert!(doubts[1].contains("not encrypted") && doubts[3].contains("chmod 600"), "{doubts:?}");
    let removed = files.read().warnings(LogoutCleanup::Removed);
    assert!(removed.len() == 5 && removed[4].contains("RemoveIPC=no"), "{removed:?}");
}

#[test]
fn a_calendar_states_the_day_ends() {
    let files = Files::new();
    assert!(files.read().day.is_none(), "without the section nothing ends by itself");
    files.write("holidays.txt", "# of the exchange\n2026-12-25 # Christmas\n\n2027-01-01\n");
    let section =
        "[day]\nends = \"17:00\"\ntime_zone = \"America/Chicago\"\nholidays_file = \"holidays.txt\"\n[firm]\n";
    let line = files.change("oms.toml", "[firm]\n", section);
    let calendar = files.read().day.expect("the section is there");
    // From the beginning of December 25, 2026, in UTC.
    let ends = [1_798_156_800_000_000_000, 1_798_500_000_000_000_000].map(|utc_ns| calendar.next_close(utc_ns));
    assert_eq!(ends.map(|close| close.expect("there are more").day), [20_261_228, 20_261_229]);

    files.write("holidays.txt", "2026-12-25\n2026-12-32\n");
    let sentence = files.reported();
    assert!(
        sentence.starts_with(&format!("oms.toml:{}: [day] holidays_file: line 2 of holidays.txt: ", line + 3)),
        "{sentence}"
    );
    files.write("holidays.txt", "");
    for (from, to, key, told_as) in [
        (
            "\nends = \"17:00\"",
            "\nends = \"5 pm\"",
            1,
            "[day] ends: '5 pm' is no time of a day; write hours and minutes like 17:00",
        ),
        (
            "\ntime_zone = \"America/",
            "\ntime_zone = \"",
            2,
            "[day] time_zone: 'Chicago' is no time zone of this system's database",
        ),
    ] {
        files.change("oms.toml", from, to);
        let sentence = files.reported();
        assert!(sentence.contains(&format!("oms.toml:{}: {told_as}", line + key)), "{sentence}");
    }
}
