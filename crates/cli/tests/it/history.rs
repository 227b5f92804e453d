//! Results of one machine over time.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::program::tickpath;

#[test]
fn history_shows_the_commit_that_changed_a_figure() {
    let folder = tempdir().expect("a temporary folder can be made");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let first = at("first.json");
    let ran = tickpath(&format!("bench host --duration 0.1 --quiet --json {first}"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = fs::read_to_string(&first).expect("it was written");
    fs::remove_file(&first).expect("it is ours");
    for day in 1..=12 {
        let mut result: Value = serde_json::from_str(&text).expect("it is JSON");
        result["started_at"] = json!(format!("2026-11-{day:02}T08:00:00Z"));
        result["commit"] = json!(format!("{day:02}34567890abcdef"));
        for figure in result["runs"][0]["figures"].as_object_mut().expect("it has figures").values_mut() {
            *figure = json!(100.0);
        }
        let slow = if day < 7 { 1_000.0 } else { 1_500.0 };
        result["runs"][0]["figures"]["loopback_round_trip_ns"] = json!(slow + f64::from(day));
        fs::write(at(&format!("{day}.json")), result.to_string()).expect("the folder takes files");
    }
    fs::write(at("notes.json"), "{}").expect("the folder takes files");
    let page = at("page.html");
    let ran = tickpath(&format!("history {} --html {page}", folder.path().display()));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("12 results, 2026-11-01 to 2026-11-12"), "{}", ran.out);
    let changes: Vec<&str> = ran.out.lines().filter(|line| line.contains("since")).collect();
    let [change] = changes[..] else { panic!("one figure changed: {}", ran.out) };
    assert!(change.contains("1.50 times as much since commit 073456789 of 2026-11-07"), "{change}");
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.contains("loopback_round_trip_ns") && page.contains("073456789"), "the page shows it too");
}

#[test]
fn a_folder_without_results_is_an_error_with_the_remedy() {
    let folder = tempdir().expect("a temporary folder can be made");
    let ran = tickpath(&format!("history {}", folder.path().display()));
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--json"), "{}", ran.err);
    let ran = tickpath("history /nonexistent");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("/nonexistent"), "{}", ran.err);
}
