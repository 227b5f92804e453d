//! The venue's files: accepted settings, and a message with the line for every mistake.

use std::fs;
use std::path::Path;

use tickpath_clock::{Priority, Wait};
use tickpath_market::{Price, Quantity, SymbolId};
use tickpath_venue_sim::{Chance, Settings, VenueInitError, init};

const LEAST: &str = "venue = 3\noms = 'x'\njournal = 'j'\ninstruments = 'table.csv'\n";
const TABLE: &str = "# what can be traded\nvenue, number,multiplier,symbol\n\n3,\"7\",1,\"A\"\n4,0,1,A\nSIM,9,,B\n";

#[test]
fn the_initial_file_is_valid() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let desk = folder.path().join("a/desk");
    let file = init(&desk).expect("the folder can be made");
    fs::write(desk.join("instruments.csv"), "symbol,number,venue\nBTCUSDT,1,SIM\nETHUSDT,2,1\n").expect("it is ours");
    let settings = Settings::read(&file).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!((settings.instruments.len(), settings.quotes.len(), settings.warnings().len()), (2, 2, 0));
    assert!(settings.journal.is_absolute() && !settings.faults.is_any());
    let again = init(&desk).expect_err("nothing is written over");
    assert!(matches!(again, VenueInitError::Exists { .. }), "{again}");
    // The commented keys show the defaults, except for ticks, sockets and a CPU.
    let text = fs::read_to_string(&file).expect("it is there");
    let keys =
        text.lines().filter_map(|line| line.strip_prefix('#').filter(|key| key.starts_with(char::is_alphabetic)));
    for key in keys.filter(|key| !["ticks", "listen", "cpu"].iter().any(|example| key.starts_with(example))) {
        fs::write(&file, text.replace(&format!("#{key}\n"), &format!("{key}\n"))).expect("it is ours");
        let read = Settings::read(&file).unwrap_or_else(|wrong| panic!("{key}: {wrong}"));
        assert_eq!(read, settings, "{key}");
    }
}

#[test]
fn every_setting_is_read() {
    let settings = read(
        "name = 'SIM'\nexpected_orders = 5\npublish = 'p'\n[thread]\nwait = 'busy'\npriority = 'fifo:3'\n\
         [faults]\nseed = 9\ndrop = 0.25\nhalt = true\ndelay_ms = 2\n\
         [[quote]]\nsymbol = 'B'\nbid = 1\nask = '1.5'\nquantity = 3\n",
    );
    let settings = settings.unwrap_or_else(|wrong| panic!("{wrong}"));
    let numbers: Vec<u32> = settings.instruments.iter().map(|(_, SymbolId(number))| *number).collect();
    assert_eq!((numbers, settings.engine_config().venue.symbols, settings.expected_orders), (vec![7, 9], 10, 5));
    let thread = settings.thread;
    assert_eq!((thread.wait, thread.priority, thread.cpu), (Wait::Busy, Priority::Fifo(3), None));
    let faults = settings.faults;
    assert_eq!((faults.seed, faults.drop, faults.delay_ns, faults.halt), (9, Chance(250_000), 2_000_000, true));
    let quote = settings.quotes[0];
    let [bid, ask] = ["1", "1.5"].map(|price| price.parse::<Price>().expect("a price"));
    assert_eq!((quote.symbol, quote.bid, quote.ask), (SymbolId(9), bid, ask));
    assert_eq!((quote.bid_quantity, quote.ask_quantity), (Quantity::from_whole(3), Quantity::from_whole(3)));
    assert_eq!(read("").expect("it is enough").warnings().len(), 1, "a venue without a market");
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    for (more, line, words) in [
        ("nam = 'A'", 5, "did you mean 'name'?"),
        ("ticks = 'a b'", 5, "no topic name"),
        ("publish = 'p'", 5, "no [[quote]]"),
        ("expected_orders = 0", 5, "out of range"),
        ("[thread]\nwait = 'sleep'", 6, "busy, yield, block or adaptive"),
        ("[thread]\ncpu = 4000", 6, "not available"),
        ("[thread]\npriority = 'fifo:100'", 6, "fifo:1 to fifo:99"),
        ("[faults]\nlag = 1", 6, "unknown key 'lag'"),
        ("[faults]\nswap = 1.01", 6, "no chance"),
        ("[faults]\nswap = true", 6, "decimal number"),
        ("[faults]\ndelay_ms = 3600001", 6, "out of range"),
        ("[faults]\nhalt = 1", 6, "true or false"),
        ("[[quote]]\nbid = 1\nask = 2\nquantity = 1", 5, "'symbol' is missing"),
        ("[[quote]]\nsymbol = 'A'\nbid = 1\nask = 2", 5, "'quantity' is missing"),
        ("[[quote]]\nsymbol = 'C'\nbid = 1\nask = 2\nquantity = 1", 6, "no 'C' of venue 3"),
        ("[[quote]]\nsymbol = 'A'\nbid = 2\nask = 2\nquantity = 1", 7, "not below the ask"),
        ("[[quote]]\nsymbol = 'A'\nbid = 0\nask = 2\nquantity = 1", 7, "not above zero"),
        ("[[quote]]\nsymbol = 'A'\nbid = 1\nask = 2\nquantity = -1", 9, "not above zero"),
        ("[[quote]]\nsymbol = 'A'\nbid = 0.000000001\nask = 2\nquantity = 1", 7, "decimals"),
        ("ticks = 'a'\n[[quote]]\nsymbol = 'A'\nbid = 1\nask = 2\nquantity = 1", 5, "ticks or of quotes"),
    ] {
        check(&mistakes(read(&format!("{more}\n"))), "exchange.toml", line, words);
    }
    let twice = "[[quote]]\nsymbol = 'A'\nbid = 1\nask = 2\nquantity = 1\n".repeat(2);
    check(&mistakes(read(&twice)), "exchange.toml", 11, "already");
    for (from, to, line, words) in [
        ("venue = 3\n", "", 1, "'venue' is missing"),
        ("venue = 3", "venue = 4096", 1, "out of range"),
        ("oms = 'x'", "oms = 'x/y'", 2, "no topic name"),
        ("'j'", "''", 3, "empty path"),
        ("instruments = 'table.csv'", "", 1, "'instruments' is missing"),
    ] {
        check(&mistakes(read_both(&LEAST.replace(from, to), TABLE)), "exchange.toml", line, words);
    }
}

#[test]
fn every_table_mistake_is_reported_with_its_line() {
    for (table, line, words) in [
        ("", 1, "empty"),
        ("# nothing\n", 1, "empty"),
        ("symbol,number\nA,1\n", 1, "column 'venue' is missing"),
        ("symbol,number,venue\nA,x,3\n", 2, "whole number"),
        ("symbol,number,venue\nA,65535,3\n", 2, "whole number"),
        ("symbol,number,venue\n,1,3\n", 2, "no symbol"),
        ("symbol,number,venue\n\"A,1,3\n", 2, "quotation mark"),
        ("symbol,number,venue\nA,1,3\n\nA,2,3\n", 4, "once"),
        ("symbol,number,venue\nA,1,3\nB,1,3\n", 3, "once"),
    ] {
        check(&mistakes(read_both(LEAST, table)), "table.csv", line, words);
    }
    // Mistakes of both files at once; rows of other venues are ignored.
    let mistakes = mistakes(read_both(&format!("{LEAST}x = 1\n"), "symbol,number,venue\nA,x,3\nB,x,4\n"));
    assert_eq!(mistakes.lines().count(), 2, "{mistakes}");
    assert!(
        read_both(LEAST, "symbol,number,venue\nA,x,4\n").expect("it is good").warnings()[0].contains("every order")
    );
}

fn read(more: &str) -> Result<Settings, String> {
    read_both(&format!("{LEAST}{more}"), TABLE)
}

/// Reads these two files; the error is the text of their mistakes.
fn read_both(text: &str, table: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("exchange.toml");
    fs::write(&file, text).expect("it is ours");
    fs::write(folder.path().join("table.csv"), table).expect("it is ours");
    let within = |sentence: String| sentence.replace(&format!("{}/", folder.path().display()), "");
    Settings::read(Path::new(&file)).map_err(|wrong| within(wrong.to_string()))
}

fn mistakes(read: Result<Settings, String>) -> String {
    read.expect_err("it has a mistake")
}

/// Checks that the text is a single message at this line with these words.
fn check(mistakes: &str, file: &str, line: usize, words: &str) {
    assert!(
        mistakes.starts_with(&format!("{file}:{line}: ")) && mistakes.contains(words),
        "no '{words}' at {line}: {mistakes}"
    );
    assert_eq!(mistakes.lines().count(), 1, "{mistakes}");
}
