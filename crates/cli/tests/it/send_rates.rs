//! Send times of messages, a bench's estimate of its length, and the search for the highest rate that keeps a promise.

use tempfile::tempdir;

use crate::program::tickpath_with;
use crate::reports::{load, number, text};

#[test]
fn a_search_finds_the_highest_rate_or_reports_none() {
    let folder = tempdir().expect("a temporary folder can be made");
    for (promise, word) in [("one_way.p50 < 60s", "up to"), ("one_way.p50 < 1ns", "at no rate tried")] {
        let file = folder.path().join("slo.json");
        let page = folder.path().join("slo.html");
        let ran = tickpath_with(&[
            "bench",
            "pubsub",
            "--target",
            "shm://",
            "--rate",
            "auto",
            "--slo",
            promise,
            "--duration",
            "0.1",
            "--wait",
            "block",
            "--size",
            "64",
            "--quiet",
            "--json",
            text(&file),
            "--html",
            text(&page),
        ]);
        assert_eq!(ran.code, Some(0), "a rate that breaks the promise breaks no run: {}", ran.err);
        let result = load(&file);
        let runs = result["runs"].as_array().expect("runs is a list");
        assert!(runs.len() > 1 && runs.iter().all(|run| run["params"]["slo"] == promise), "{}", result["runs"]);
        let found = result["findings"][0].as_str().expect("a search has a finding");
        assert!(found.starts_with("log keeps one_way.p50 <") && found.contains(word), "{found}");
        assert!(ran.out.contains("log keeps") && ran.out.lines().count() <= 40, "{}", ran.out);
        let page = std::fs::read_to_string(page).expect("it was written");
        assert!(page.contains("<h2>Latency over rate</h2>"), "{promise}");
    }
}

#[test]
fn poisson_arrivals_are_in_the_result_with_their_seed() {
    let folder = tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("poisson.json");
    for (bench, received) in [("pubsub --size 64", "received"), ("path", "sent")] {
        let line =
            format!("bench {bench} --target shm:// --count 500 --rate 5000 --wait block --arrivals poisson --seed 7");
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--json", text(&file)]);
        let ran = tickpath_with(&words);
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.err);
        assert!(ran.err.contains("tickpath: about ") && ran.err.contains(": 1 run"), "{}", ran.err);
        let run = &load(&file)["runs"][0];
        assert_eq!((run["params"]["arrivals"].as_str(), number(&run["params"]["seed"])), (Some("poisson"), 7.0));
        assert_eq!(number(&run["counts"][received]), 500.0, "{run}");
    }
}

#[test]
fn all_prints_every_run() {
    let folder = tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("many.json");
    let line = "bench pubsub --target shm:// --count 100 --size 64,128,256 --rate 5000 --wait block --repeat 4 --quiet";
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--json", text(&file)]);
    let ran = tickpath_with(&words);
    assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.err);
    let screen = ran.out.lines().count();
    assert!(screen <= 40 && ran.out.contains("--all"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let all = tickpath_with(&["report", text(&file), "--all"]);
    // The position of a line break depends on the text before it.
    let unbroken = all.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(unbroken.matches("writer cost").count(), 12, "{}", all.out);
}
