//! `instruments fetch`: saved answers of exchanges become tables, which keep their numbers.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::tempdir;

use crate::program::{Ran, tickpath};

/// Returns OKX's answer with these instruments: name, and whether it is traded now.
fn okx_answer(instruments: &[(&str, bool)]) -> String {
    let row = |&(name, is_live): &(&str, bool)| {
        let parts: Vec<&str> = name.split('-').collect();
        let is_swap = parts.len() == 3;
        json!({
            "instId": name,
            "instIdCode": 5,
            "instType": if is_swap { "SWAP" } else { "SPOT" },
            "state": if is_live { "live" } else { "suspend" },
            "tickSz": "0.1",
            "lotSz": "0.01",
            "minSz": "0.01",
            "baseCcy": if is_swap { "" } else { parts[0] },
            "quoteCcy": if is_swap { "" } else { parts[1] },
            "settleCcy": if is_swap { parts[1] } else { "" },
            "ctType": if is_swap { "linear" } else { "" },
            "ctVal": if is_swap { "0.01" } else { "" },
            "ctMult": if is_swap { "1" } else { "" },
            "ctValCcy": if is_swap { parts[0] } else { "" },
            "uly": if is_swap { "BTC-USDT" } else { "" },
        })
    };
    let rows: Vec<_> = instruments.iter().map(row).collect();
    json!({ "code": "0", "msg": "", "data": rows }).to_string()
}

/// Returns the columns symbol, number, multiplier and restricted of a table.
fn rows(file: &Path) -> Vec<[String; 4]> {
    let text = fs::read_to_string(file).expect("the table was written");
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("the table has columns");
    let index = ["symbol", "number", "multiplier", "restricted"]
        .map(|name| head.iter().position(|cell| *cell == name).unwrap_or_else(|| panic!("no {name} in {head:?}")));
    lines.map(|cells| index.map(|index| cells[index].to_owned())).collect()
}

#[test]
fn a_table_keeps_its_numbers_when_it_is_fetched_again() {
    let folder = tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let fetch = |files: &[&str]| -> Ran {
        let from: String = files.iter().map(|file| format!(" --from {}", at(file).display())).collect();
        tickpath(&format!("instruments fetch okx{from} --to {}", at("instruments.csv").display()))
    };
    let spot = [("BTC-USDT", true), ("OLD-USDT", true), ("ASLEEP-USDT", false)];
    fs::write(at("spot.json"), okx_answer(&spot)).expect("the folder is ours");
    fs::write(
        at("swap.json"),
        okx_answer(&[("BTC-USDT-SWAP", true), ("ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJ-USDT-SWAP", true)]),
    )
    .expect("ours");
    let ran = fetch(&["spot.json", "swap.json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains(
            "3 instruments of OKX, 3 new\n1 refused:\n  ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJ-USDT-SWAP: "
        ),
        "{}",
        ran.out
    );
    let row = |name: &str, number: u32, multiplier: &str, restricted: &str| {
        [name.to_owned(), number.to_string(), multiplier.to_owned(), restricted.to_owned()]
    };
    let first = [row("BTC-USDT", 1, "1", ""), row("OLD-USDT", 2, "1", ""), row("BTC-USDT-SWAP", 3, "0.01", "")];
    assert_eq!(rows(&at("instruments.csv")), first);

    // Swaps are not in the second list, which shows nothing about them.
    fs::write(at("spot.json"), okx_answer(&[("NEW-USDT", true), ("BTC-USDT", true)])).expect("the folder is ours");
    let ran = fetch(&["spot.json"]);
    assert!(ran.out.contains("2 instruments of OKX, 1 new\n1 restricted, because"), "{}{}", ran.out, ran.err);
    let [btc, _, swap] = first;
    let second = [btc, row("OLD-USDT", 2, "1", "true"), swap, row("NEW-USDT", 4, "1", "")];
    assert_eq!(rows(&at("instruments.csv")), second);

    fs::write(at("spot.json"), okx_answer(&[("BTC-USDT", true), ("OLD-USDT", true), ("NEW-USDT", true)]))
        .expect("ours");
    let ran = fetch(&["spot.json"]);
    assert!(ran.out.contains("1 traded again, and restricted until the cell is cleared: OLD-USDT"), "{}", ran.out);
    assert_eq!(rows(&at("instruments.csv")), second);
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 3, "no draft is left");
}

#[test]
fn a_bad_call_leaves_the_table_unchanged() {
    let folder = tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("good.json"), okx_answer(&[("BTC-USDT", true)])).expect("the folder is ours");
    fs::write(at("closed.json"), okx_answer(&[("BTC-USDT", false)])).expect("the folder is ours");
    fs::write(at("error.json"), r#"{"code":"50011","msg":"Too Many Requests","data":[]}"#).expect("the folder is ours");
    fs::write(at("page.json"), "<html>").expect("the folder is ours");
    let table = "symbol,number,venue\nA,1\n";
    fs::write(at("instruments.csv"), table).expect("the folder is ours");
    let to = format!("--to {}", at("instruments.csv"));
    for (line, code, words) in [
        ("instruments".to_owned(), 2, "fetch"),
        (format!("instruments fetch bybit {to}"), 2, "okx, binance, binance-futures"),
        (format!("instruments fetch okx --from {} {to}", at("none.json")), 2, "none.json cannot be read"),
        (format!("instruments fetch okx --from {} {to}", at("page.json")), 2, "no list of instruments"),
        (format!("instruments fetch okx --from {} {to}", at("error.json")), 2, "Too Many Requests"),
        (format!("instruments fetch okx --from {} {to}", at("closed.json")), 1, "no instrument that can be traded now"),
        (format!("instruments fetch okx --from {} {to}", at("good.json")), 2, "line 2: 2 cells"),
        (format!("instruments fetch okx --from {} {to} --types SPOT", at("good.json")), 2, "cannot be used with"),
        (format!("instruments fetch okx --types OPTION {to}"), 2, "SPOT, SWAP or FUTURES"),
        (format!("instruments fetch binance --types SPOT {to}"), 2, "--types is for okx alone"),
        (format!("instruments fetch okx --from {} {to} --venue A,B", at("good.json")), 2, "without commas"),
        (format!("instruments fetch okx --from {} --to /no/such/x.csv", at("good.json")), 1, "cannot be written"),
    ] {
        let ran = tickpath(&line);
        let sentence = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{line}: {sentence}");
        assert!(sentence.contains(words) && !sentence.contains("panicked"), "{line}: no '{words}' in: {sentence}");
    }
    assert_eq!(fs::read_to_string(at("instruments.csv")).expect("it is there"), table);
}
