//! Hops of a user's own code: names that are in no list, in the contract and in every rendering.

use serde_json::{Value, json};
use tickpath_lab_report::{self as report, TerminalOptions};
use tickpath_lab_result::{CheckError, Hop, ResultFile, Run, is_own};

use crate::example::hop;

const SCHEMA: &str = include_str!("../../../../docs/result.schema.json");

/// Names of which two are equal up to the end of a column of the usual width.
const NAMES: [&str; 3] = ["own.decode", "own.tick_to_decoded_book", "own.tick_to_decoded_trade"];

/// Builds a result like `lab.hops()`.
fn own() -> ResultFile {
    let mut result = ResultFile::new("own", "python strategy.py", "2026-01-02T03:04:05Z");
    let mut run = Run { target: "own://".to_owned(), client: "python".to_owned(), repeat: 1, ..Run::default() };
    run.valid = true;
    for (name, middle_ns) in NAMES.into_iter().zip([400, 9_000, 30_000]) {
        // No thread watches the host's gaps for them.
        let unwatched = Hop { unstalled: None, host_stall_share_p999: None, ..hop(20_000, middle_ns, 1) };
        run.hops.insert(name.to_owned(), unwatched);
    }
    result.runs = vec![run];
    result
}

#[test]
fn a_name_is_of_small_letters_digits_and_underscores() {
    let longest = format!("own.{}", "a".repeat(40));
    for name in ["own.decode", "own.t0", "own.0", "own._", longest.as_str()] {
        assert!(is_own(name), "{name}");
    }
    let too_long = longest.clone() + "a";
    for name in ["own.", "own", "decode", "own.NAME", "own.a.b", "own.a-b", "own.ä", "own.a b", "Own.a", &too_long] {
        assert!(!is_own(name), "{name}");
    }
}

#[test]
fn the_contract_accepts_own_hops_and_no_other() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let result = own();
    assert_eq!(result.check(), Ok(()));
    let good = serde_json::to_value(&result).expect("it becomes JSON");
    let faults: Vec<String> = validator.iter_errors(&good).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new());
    for name in ["own.Decode", "own.", "own.a.b", "mine.decode"] {
        let mut other = result.clone();
        other.runs[0].hops.insert(name.to_owned(), Hop::default());
        assert!(matches!(other.check(), Err(CheckError::Hop { .. })), "{name}");
        let mut bad = good.clone();
        bad["runs"][0]["hops"] = json!({ name: good["runs"][0]["hops"]["own.decode"] });
        assert!(!validator.is_valid(&bad), "{name}");
    }
}

#[test]
fn every_format_shows_own_hops_in_full() {
    let result = own();
    let screen = |width| report::terminal(&result, &TerminalOptions { width, colour: false, all: true });
    let rendered = [screen(80), screen(120), report::markdown(&result), report::csv(&result), report::html(&result)];
    for text in rendered.iter().chain([&report::svg(&result)]) {
        for name in NAMES {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
    }
    // All are reported above the tables: none of them leads.
    let head = rendered[1].lines().take_while(|line| !line.contains("50%"));
    let head = head.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    for name in NAMES {
        assert!(head.contains(&format!("{name} takes")), "{head}");
    }
    let page = &rendered[4];
    assert!(page.contains("<b>own.decode</b> A user&#39;s own code"), "the spread says what it is");
    assert_eq!(page.matches("<figure>").count(), NAMES.len(), "a chart each");
    assert!(rendered[3].lines().nth(1).is_some_and(|line| line.contains("own.decode")), "{}", rendered[3]);
}

#[test]
fn lines_are_no_wider_than_the_screen() {
    let result = own();
    for width in [80, 100, 160] {
        let text = report::terminal(&result, &TerminalOptions { width, colour: false, all: true });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{width} columns, and a line of {widest:?}:\n{text}");
    }
}
