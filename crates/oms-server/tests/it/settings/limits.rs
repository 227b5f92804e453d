//! Limits in all files: their values, the messages for bad ones, and their names, which equal those on the page of the
//! checks.

use tickpath_market::{AccountId, Currency, Notional, Price, Quantity, Symbol, SymbolId};
use tickpath_oms_core::{AccountLimits, FirmLimits, Instrument, SymbolLimits, TradingHours, checks_table};
use tickpath_oms_runtime::SessionLimits;
use tickpath_oms_server::settings::{Settings, account_columns, instrument_columns, symbol_columns};

use super::Files;

/// Enables the examples in an initial file: in a table they are in the comments at the top.
fn speak(files: &Files, name: &str) {
    let text = files.text(name);
    let is_example = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    let examples: Vec<&str> = text.lines().filter(is_example).map(|line| &line[1..]).collect();
    assert!(examples.len() >= 2, "{name} has examples");
    let has_head = examples[0].starts_with(|first: char| first.is_ascii_alphabetic());
    let spoken = if has_head { examples.join("\n") } else { format!("{text}{}\n", examples.join("\n")) };
    files.write(name, &spoken);
}

#[test]
fn the_examples_of_the_initial_tables_are_valid() {
    let files = Files::new();
    speak(&files, "symbols.csv");
    assert_eq!(files.read().symbols.len(), 2);
    let own =
        |account, symbol| SymbolLimits { account: AccountId(account), symbol: SymbolId(symbol), ..Default::default() };
    let [first, second] = files.read().symbols[..] else { panic!("two examples") };
    let positions = (Quantity::from_whole(500), Quantity::from_whole(50));
    assert_eq!(first, SymbolLimits { max_position: positions.0, max_order_quantity: positions.1, ..own(1, 1) });
    assert_eq!(second, SymbolLimits { no_short: 1, ..own(2, 2) });
    files.write("symbols.csv", "account,symbol\n");
    for (name, columns) in
        [("accounts.csv", account_columns().count()), ("instruments.csv", instrument_columns().count())]
    {
        speak(&files, name);
        assert_eq!(files.text(name).lines().next().map(|head| head.split(',').count()), Some(columns), "{name}");
    }
    let settings = files.read();
    let hours = |opens_s: u32, closes_s: u32| TradingHours { opens_s: opens_s * 60, closes_s: closes_s * 60 };
    let instrument = Instrument {
        symbol: SymbolId(3),
        venue: settings.venues[0].rules.venue,
        multiplier: 200,
        tick_size: Price::from_whole(1),
        lot: Quantity::from_whole(1),
        lowest_price: Price::from_whole(18_000),
        highest_price: Price::from_whole(22_000),
        hours: [hours(45, 5 * 60 + 45), hours(7 * 60, 21 * 60)],
        rate_limit: 500,
        rate_window_ns: 1_000_000_000,
        ..Instrument::named(Symbol::constant("TXF"))
    }
    .with_currency(Currency::constant("TWD"));
    assert_eq!(settings.instruments, [instrument]);
    let [limits] = settings.accounts[..] else { panic!("one example") };
    let expected = AccountLimits {
        order_trade_free: 1_000,
        order_trade_ratio: 50,
        duplicate_window_ns: 200_000_000,
        no_self_match: 1,
        max_gross_value: Notional::from_whole(3_000_000).0.to_le_bytes(),
        max_loss: Notional::from_whole(50_000).0.to_le_bytes(),
        ..limits
    }
    .with_currency(Currency::constant("USDT"));
    assert_eq!(limits, expected);
    assert_eq!(settings.firm, None, "nothing is said of the firm");
}

#[test]
fn an_invalid_line_of_the_symbols_is_reported_by_number() {
    let head = "account,symbol,max_position,max_order_quantity,restricted,no_short\n";
    for (lines, expected) in [
        ("7,BTCUSDT,,,,", "2: account: 7 is no account of the table of accounts; write the number of one"),
        ("1,NOPE,,,,", "2: symbol: 'NOPE' is no symbol of the table of instruments; write the name of one"),
        ("1,,,,,", "2: symbol: the cell is empty; this cannot be left out"),
        ("1,BTCUSDT,-5,,,", "2: max_position: a limit is not below zero; write the largest that is allowed"),
        ("1,BTCUSDT,,,,short", "2: no_short: 'short' is neither true nor false; write one of them"),
        (
            "1,BTCUSDT,1,,,\n2,BTCUSDT,1,,,\n1,BTCUSDT,2,,,",
            "4: symbol: account 1 with symbol BTCUSDT is in line 2 already; write each once",
        ),
        ("1,BTCUSDT,1", "2: 3 cells, but the first line names 6 columns; write one cell for each"),
    ] {
        let files = Files::new();
        files.write("symbols.csv", &format!("{head}{lines}\n"));
        assert_eq!(files.reported(), format!("symbols.csv:{expected}"), "of {lines}");
    }
    // A table that could not be read gives no mistakes in another table.
    let files = Files::new();
    files.write("symbols.csv", &format!("{head}2,ETHUSDT,,,,\n"));
    files.write("instruments.csv", "symbol\n");
    files.change("accounts.csv", "\n2,100,", "\n2,many,");
    let sentence = files.reported();
    assert!(sentence.lines().count() == 2 && !sentence.contains("symbols.csv"), "{sentence}");
}

#[test]
fn an_invalid_limit_of_a_user_or_firm_is_reported_at_its_line() {
    for (name, from, to, expected) in [
        (
            "oms.toml",
            "#max_order_quantity = 500",
            "max_order_quantity = -1",
            "[firm] max_order_quantity: a limit is not below zero; write the largest that is allowed",
        ),
        (
            "oms.toml",
            "#credit = 200000000",
            "credit = \"much\"",
            "[firm] credit: 'much' is no amount; write a decimal number below 10 000 000 000 000 000 000 000",
        ),
        (
            "oms.toml",
            "#max_open_orders = 5000",
            "max_orders = 5000",
            "[firm] unknown key 'max_orders'; did you mean 'max_open_orders'?",
        ),
        (
            "users.toml",
            "role = \"trade\"",
            "role = \"trade\"\nmax_notional = -1",
            "[[user]] max_notional: a limit is not below zero; write the largest that is allowed",
        ),
    ] {
        let files = Files::new();
        let line = files.change(name, from, to) + usize::from(to.contains('\n'));
        assert_eq!(files.reported(), format!("{name}:{line}: {expected}"), "of {to}");
    }
    let files = Files::new();
    files.change("oms.toml", "#rate_limit = 5000", "rate_limit = 5000");
    files.change("users.toml", "role = \"trade\"", "role = \"trade\"\nrate_limit = 1");
    let sentence = files.reported();
    assert!(sentence.contains("[firm] 'rate_window_ns' is missing"), "{sentence}");
    assert!(sentence.contains("[[user]] 'rate_window_ns' is missing"), "{sentence}");
}

#[test]
fn limits_of_users_and_of_the_firm_are_read_from_the_files() {
    let files = Files::new();
    files.change("oms.toml", "#credit = 200000000", "credit = 0.00000001");
    files.change("oms.toml", "#max_order_quantity = 500", "max_order_quantity = \"1.5\"");
    files.change(
        "users.toml",
        "role = \"trade\"",
        "role = \"trade\"\nmax_order_quantity = 2\nmax_notional = 300\nrate_limit = 4\nrate_window_ns = 5",
    );
    let desk = files.read().trading_config();
    let credit = Notional::of(Price(1), Quantity::from_whole(1)).0.to_le_bytes();
    let max_order_quantity = Quantity(150_000_000);
    assert_eq!(desk.firm, Some(FirmLimits { credit, max_order_quantity, ..FirmLimits::default() }));
    let limits = SessionLimits {
        max_order_quantity: Quantity::from_whole(2),
        max_notional: Notional::from_whole(300),
        rate_limit: 4,
        rate_window_ns: 5,
    };
    let output: Vec<(u16, SessionLimits)> =
        desk.sessions.iter().map(|config| (config.session, config.limits)).collect();
    let none = SessionLimits::default();
    assert_eq!(output, [(0, limits), (1, limits), (2, limits), (3, limits), (8, none), (9, none)]);
}

#[test]
fn a_limit_has_the_same_name_in_its_file_and_on_the_page() {
    let files = Files::new();
    let is_known = |place: &str, limit: &str| match place {
        "accounts.csv" => account_columns().any(|column| column == limit),
        "instruments.csv" => instrument_columns().any(|column| column == limit),
        "symbols.csv" => symbol_columns().any(|column| column == limit),
        // The message for an unknown key lists the known keys.
        "users.toml" => files.text("users.toml").contains(limit),
        "[firm]" => files.text("oms.toml").contains(&format!("\n#{limit} = ")),
        _ => false,
    };
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut count = 0;
    for row in checks_table().lines().skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (limits, places) = (quoted(cells[3]), quoted(cells[4]));
        assert_eq!(limits.is_empty(), places.is_empty(), "{row}");
        for limit in &limits {
            assert!(places.iter().all(|place| is_known(place, limit)), "{row}");
            count += 1;
        }
    }
    assert!(count > 25, "{count} limits");
    assert_eq!(Settings::read(&files.at("oms.toml")).map(|_| ()).map_err(|e| e.to_string()), Ok(()));
}
