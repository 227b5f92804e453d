//! The file of faults: each key, and each mistake with its line.

use std::fs;

use tickpath_venue_sim::Chance;
use tickpath_venue_sim_web::WebFaults;

#[test]
fn every_key_is_read_and_none_is_required() {
    assert_eq!(read(""), Ok(WebFaults::none()));
    let text = "cut_after_ack = 0.5\nduplicate_push = 1\nlate_push_ms = 20\nreset_sequence_every = 100\n\
                announce_maintenance_after_ms = 3000\nambiguous = 0.000001\nambiguous_placed = true\n\
                zero_fill_push = '0.25'\namend_fails_later = 0.1\nlisten_key_ms = 1\nclock_drift_ms = -40000\n\
                rate_limited = 0\nsuspended = ['ETH-USDT', 'A']\nhtml_answers = 0.2\nseed = 9\n";
    let expected = WebFaults {
        cut_after_ack: Chance(500_000),
        duplicate_push: Chance(1_000_000),
        late_push_ms: 20,
        reset_sequence_every: 100,
        announce_maintenance_after_ms: 3_000,
        ambiguous: Chance(1),
        ambiguous_placed: true,
        zero_fill_push: Chance(250_000),
        amend_fails_later: Chance(100_000),
        listen_key_ms: 1,
        clock_drift_ms: -40_000,
        rate_limited: Chance(0),
        suspended: vec!["ETH-USDT".to_owned(), "A".to_owned()],
        html_answers: Chance(200_000),
        seed: 9,
    };
    assert_eq!(read(text), Ok(expected));
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    for (text, line, words) in [
        ("cut_after_ak = 1", 1, "did you mean 'cut_after_ack'?"),
        ("\nduplicate_push = 1.1", 2, "no chance"),
        ("rate_limited = true", 1, "decimal number"),
        ("late_push_ms = 3600001", 1, "out of range"),
        ("late_push_ms = -1", 1, "out of range"),
        ("listen_key_ms = 0", 1, "out of range"),
        ("clock_drift_ms = 86400001", 1, "out of range"),
        ("seed = 1\nambiguous_placed = true", 2, "set ambiguous as well"),
        ("ambiguous_placed = 1", 1, "true or false"),
        ("suspended = 'ETH-USDT'", 1, "list"),
        ("suspended = ['ETH-USDT', '']", 1, "names no instrument"),
        ("[faults]\nseed = 1", 1, "unknown key 'faults'"),
    ] {
        let mistakes = read(text).expect_err(text);
        assert!(mistakes.starts_with(&format!("faults.toml:{line}: ")) && mistakes.contains(words), "{mistakes}");
        assert_eq!(mistakes.lines().count(), 1, "{mistakes}");
    }
    let both = read("seed = 'x'\n\nhtml_answers = 2\n").expect_err("both are wrong");
    let lines: Vec<&str> = both.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(lines, ["faults.toml:1", "faults.toml:3"]);
    let missing = WebFaults::read(std::path::Path::new("no-such-folder/faults.toml")).expect_err("there is no file");
    assert!(missing.to_string().contains("there is no such file"), "{missing}");
}

#[test]
fn the_dice_of_a_seed_fall_the_same_way_each_time() {
    let throws = |seed| {
        let mut dice = WebFaults { seed, ..WebFaults::none() }.dice();
        (0..1_000).map(|_| dice.happens(Chance(500_000))).collect::<Vec<bool>>()
    };
    assert_eq!(throws(7), throws(7));
    assert_ne!(throws(7), throws(8));
    let mut dice = WebFaults::none().dice();
    assert!((0..1_000).all(|_| !dice.happens(Chance(0)) && dice.happens(Chance(1_000_000))));
}

/// Reads this text; the error is the text of its mistakes.
fn read(text: &str) -> Result<WebFaults, String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("faults.toml");
    fs::write(&file, text).expect("it is ours");
    let within = |sentence: String| sentence.replace(&format!("{}/", folder.path().display()), "");
    WebFaults::read(&file).map_err(|mistakes| within(mistakes.to_string()))
}
