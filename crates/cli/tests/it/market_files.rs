//! Files of market data: imported into a recording, exported to tables, and imported again.

use std::fs;

use crate::program::tickpath;

const QUOTES: &str = "\
exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount
x,BTCUSDT,1704067200000000,1704067200003001,12.5,61800.2,61800.1,3
x,BTCUSDT,1704067200001000,1704067200005001,12.5,61800.3,61800.1,3
x,BTCUSDT,1704067200001000,1704067200005001,12.5,none,61800.1,3
";
const TRADES: &str = "\
exchange,symbol,timestamp,local_timestamp,id,side,price,amount
x,BTCUSDT,1704067200000500,1704067200004001,77,sell,61800.1,0.00145
";

/// Calls the binary, and returns its exit code and its output; @ stands for the folder.
fn call(folder: &tempfile::TempDir, line: &str) -> (Option<i32>, String) {
    let ran = tickpath(&line.replace('@', &folder.path().display().to_string()));
    (ran.code, ran.out + &ran.err)
}

#[test]
fn an_exported_recording_is_imported_as_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    fs::write(folder.path().join("quotes.csv"), QUOTES).expect("the folder is writable");
    fs::write(folder.path().join("trades.csv"), TRADES).expect("the folder is writable");
    let good = |line: &str| {
        let (code, text) = call(&folder, line);
        assert_eq!(code, Some(0), "{line}: {text}");
        text
    };
    let imported = good("log import @/quotes.csv @/trades.csv @/first --symbol BTCUSDT=7");
    for words in ["tardis-quotes, 4 lines: 2 tops of book", "line 4: 'none'", "3 messages", "BTCUSDT is 7"] {
        assert!(imported.contains(words), "{words}: {imported}");
    }
    let exported = good("log export @/first --to @/all.csv.gz");
    assert!(exported.contains("all.quotes.csv.gz: 2 messages"), "{exported}");
    good("log import @/all.quotes.csv.gz @/all.trades.csv.gz @/second --symbol 7=7");
    let messages = good("log cat @/first --json");
    assert_eq!(messages.lines().count(), 3, "{messages}");
    assert_eq!(good("log cat @/second --json"), messages);
    good("log export @/first --to @/btc.npz");
    good("log import @/btc.npz @/third --symbol BTC=7");
    assert_eq!(good("log cat @/third --json"), messages);
    good("log verify @/third");
}

#[test]
fn a_file_that_is_cut_off_ends_the_import_with_its_own_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    // A gzip stream of one block, without the checksum behind it.
    let length = (QUOTES.len() as u16).to_le_bytes();
    let mut bytes = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    bytes.extend(length.into_iter().chain(length.map(|byte| !byte)).chain(QUOTES.bytes()));
    fs::write(folder.path().join("quotes.csv.gz"), bytes).expect("the folder is writable");
    let (code, text) = call(&folder, "log import @/quotes.csv.gz @/recording");
    assert!(code == Some(1) && text.contains("cut off before its end"), "{code:?} {text}");
    let (code, text) = call(&folder, "log import @/quotes.csv.gz @/other --format npz");
    assert!(code == Some(2) && text.contains("cannot be read as npz"), "{code:?} {text}");
    assert!(!folder.path().join("other").exists());
    let (code, text) = call(&folder, "log import @/quotes.csv.gz @/other --format tardis");
    assert!(code == Some(2) && text.contains("tardis-quotes"), "{code:?} {text}");
}
