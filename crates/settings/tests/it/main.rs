//! Files with mistakes, and the reported mistakes.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tickpath_settings::{Section, SettingsError, parse, read};

/// A value of each kind.
#[derive(Debug, Default, PartialEq)]
struct SampleSettings {
    name: String,
    port: u16,
    folder: Option<PathBuf>,
    price: Option<String>,
    words: Option<Vec<String>>,
    numbers: Option<Vec<u8>>,
    is_busy: Option<bool>,
    is_loud: Option<bool>,
    inner: Option<u64>,
    venues: Vec<u16>,
}

fn all(file: &mut Section<'_>) -> SampleSettings {
    SampleSettings {
        name: file.require_text("name"),
        port: file.number("port", 1..=u16::MAX).unwrap_or(80),
        folder: file.path("folder"),
        price: file.parsed("price"),
        words: file.list("words"),
        numbers: file.numbers("numbers", 0..=200),
        is_busy: file.one_of("wait", &[("busy", true), ("yield", false), ("block", false)]),
        is_loud: file.flag("loud"),
        inner: file.section_if("inner", |inner| inner.require_number("depth", 1..=9)),
        venues: file.sections("venue", |venue| venue.require_number("number", 0..=u16::MAX)),
    }
}

fn mistakes_of(text: &str) -> String {
    match parse(text, Path::new("etc/a.toml"), all) {
        Ok(_) => String::new(),
        Err(mistakes) => mistakes.to_string().replace("etc/a.toml:", ""),
    }
}

#[test]
fn a_valid_file_is_read_as_written() {
    let text = "name = 'a'\nport = 0x10\nfolder = 'b'\nprice = 1_000.10\nwords = ['1', 2, '7*']\nnumbers = [0, 200]\n\
                wait = 'busy'\nloud = false\ninner.depth = 3\n[[venue]]\nnumber = 2\n[[venue]]\nnumber = 1\n";
    let expected = SampleSettings {
        name: "a".into(),
        port: 16,
        folder: Some("etc/b".into()),
        price: Some("1000.10".into()),
        words: Some(vec!["1".into(), "2".into(), "7*".into()]),
        numbers: Some(vec![0, 200]),
        is_busy: Some(true),
        is_loud: Some(false),
        inner: Some(3),
        venues: vec![2, 1],
    };
    assert_eq!(parse(text, Path::new("etc/a.toml"), all), Ok(expected));
    let least = parse("name = 'a'", Path::new("a.toml"), all).expect("the rest may be missing");
    assert_eq!(least, SampleSettings { name: "a".into(), port: 80, ..SampleSettings::default() });
}

#[test]
fn each_mistake_is_reported_at_its_line() {
    for (text, expected) in [
        ("", "1: 'name' is missing"),
        ("\n\nname = 3", "3: name: must be text in quotes, not a whole number"),
        ("name = 'a'\nport = '80'", "2: port: must be a whole number without quotes, not text"),
        ("name = 'a'\nport = 65536", "2: port: 65536 is out of range; use 1 to 65535"),
        ("name = 'a'\nport = -0", "2: port: -0 is out of range; use 1 to 65535"),
        ("name = 'a'\nport = 8.0", "2: port: must be a whole number without quotes, not a number with a fraction"),
        (
            "name = 'a'\nport = 99999999999999999999999999999999999999999",
            "2: port: 99999999999999999999999999999999999999999 is out of range; use 1 to 65535",
        ),
        ("name = 'a'\nfolder = ''", "2: folder: an empty path names nothing; write one, or leave the key out"),
        ("name = 'a'\nwords = 'b'", "2: words: must be a list in brackets, not text"),
        ("name = 'a'\nwords = ['b',\n  true]", "3: words: must be text or a decimal number, not true or false"),
        (
            "name = 'a'\nnumbers = [\n  1,\n  201,\n  'x']",
            "4: numbers: 201 is out of range; use 0 to 200\n5: numbers: must be a whole number without quotes, not text",
        ),
        ("name = 'a'\nwait = 'bussy'", "2: wait: 'bussy' is not allowed; use busy, yield or block"),
        ("name = 'a'\nwait = 1", "2: wait: must be busy, yield or block in quotes, not a whole number"),
        ("name = 'a'\nloud = 'yes'", "2: loud: must be true or false, not text"),
        ("name = 'a'\ninner = 3", "2: inner: must be one section, written as [inner], not a whole number"),
        (
            "name = 'a'\n\n[inner]\ndept = 1",
            "3: [inner] 'depth' is missing\n4: [inner] unknown key 'dept'; did you mean 'depth'?",
        ),
        ("name = 'a'\n[venue]\nnumber = 1", "2: venue: must be written as [[venue]], once for each, not as a section"),
        ("name = 'a'\n[[venue]]\n[[venue]]\nnumber = 1", "2: [[venue]] 'number' is missing"),
        ("name = 'a'\nvenue = [1]", "2: venue: must be written as [[venue]], once for each, not as a whole number"),
        ("name = 'a'\nprot = 1", "2: unknown key 'prot'; did you mean 'port'?"),
        ("name = 'a'\n[iner]\ndepth = 1", "2: unknown key 'iner'; did you mean 'inner'?"),
        (
            "name = 'a'\ncolour = 1",
            "2: unknown key 'colour'; known here: name, port, folder, price, words, numbers, wait, loud, inner, venue",
        ),
    ] {
        assert_eq!(mistakes_of(text), expected, "of {text:?}");
    }
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_their_lines() {
    let text = "loud = 2\nport = 0\nzebra = 1\nname = true\n[[venue]]\nnumber = -1\n[inner]\ndepth = 10\n";
    let lines: Vec<String> = mistakes_of(text).lines().map(|line| line[..2].to_owned()).collect();
    assert_eq!(lines, ["1:", "2:", "3:", "4:", "6:", "8:"]);
}

#[test]
fn invalid_toml_is_reported_beside_the_readable_values() {
    let printed = mistakes_of("name = \nport = 0\nport = 2\nprot = 3\n[inner\n");
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("1: this is no TOML: "), "{printed}");
    assert_eq!(lines[1], "2: port: 0 is out of range; use 1 to 65535");
    assert!(lines[2].starts_with("3: this is no TOML: duplicate key"), "{printed}");
    assert!(lines[3].starts_with("5: this is no TOML: "), "{printed}");
    assert_eq!(lines.len(), 4, "no key is called unknown or missing in a file that was not read to its end: {printed}");
}

#[test]
fn a_mistake_added_by_the_program_is_at_its_key() {
    let own = |file: &mut Section<'_>| {
        file.section("inner", |inner| {
            let _ = inner.text("from");
            inner.add_mistake("from", "is taken");
            inner.add_mistake("to", "would be better");
            inner.add_section_mistake("is not enough");
            (inner.has("from"), inner.has("to"), inner.line("from"), inner.line("to"))
        })
    };
    let mistakes = parse("\n[inner]\nfrom = 'a'\n", Path::new("a.toml"), own).expect_err("three are told");
    let expected = [(2, "[inner] to: would be better"), (2, "[inner] is not enough"), (3, "[inner] from: is taken")];
    assert_eq!(mistakes.list, expected.map(|(line, text)| (line, text.to_owned())));
    assert_eq!(mistakes.file, Path::new("a.toml"));
}

#[test]
fn an_unreadable_file_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("a.toml");
    assert!(matches!(read(&file, all), Err(SettingsError::Missing { .. })));
    let missing = read(&file, all).expect_err("there is none").to_string();
    assert!(missing.ends_with("a.toml: there is no such file; create it, or name another"), "{missing}");
    fs::write(&file, b"name = '\xff'").expect("the folder is ours");
    let binary = read(&file, all).expect_err("it is no text").to_string();
    assert!(binary.contains("UTF-8") && binary.contains("must be a text file"), "{binary}");
    assert!(matches!(read(folder.path(), all), Err(SettingsError::Unreadable { .. })), "a folder is no file");
    fs::write(&file, "name = 3").expect("the folder is ours");
    assert!(matches!(read(&file, all), Err(SettingsError::Invalid(mistakes)) if mistakes.list.len() == 1));
    fs::write(&file, "name = 'a'\r\nport = 81\r\n").expect("the folder is ours");
    assert_eq!(read(&file, all).expect("lines may end as elsewhere").port, 81);
}

/// Draws lines that are valid, wrong, or not TOML.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "port",
        "prot",
        "words",
        "venue",
        "inner",
        "loud",
        "wait",
        "[inner]",
        "[[venue]]",
    ]);
    let value = prop::sample::select(vec!["1", "'a'", "true", "[1, 'b']", "{ depth = 1 }", "\"", "[", "1.5", "", "é"]);
    prop_oneof![4 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")), 1 => ".{0,12}"]
}

proptest! {
    #[test]
    fn any_text_is_read_or_reported_within_its_lines(lines in prop::collection::vec(line(), 0..8)) {
        let text = lines.join("\n");
        let count = text.matches('\n').count() + 1;
        if let Err(mistakes) = parse(&text, Path::new("a.toml"), all) {
            prop_assert!(!mistakes.list.is_empty());
            prop_assert!(mistakes.list.is_sorted_by_key(|&(line, _)| line));
            for (line, sentence) in &mistakes.list {
                prop_assert!((1..=count).contains(line), "{line} of {count}: {sentence}");
            }
        }
    }
}
