//! Runs the package's Python tests (`python/tests`) against the module built by cargo, and tests the parts of the module
//! that need no Python.

#[path = "../../src/text_ids.rs"]
mod text_ids;

use std::path::Path;
use std::process::Command;

use tickpath_market::TextId;

use text_ids::{MAX_TEXT_IDS, TextIds};

#[test]
fn the_text_ids_of_the_oldest_orders_are_dropped() {
    let text_id = |text: &str| text.parse::<TextId>().expect("a text id");
    let (mut text_ids, last) = (TextIds::default(), MAX_TEXT_IDS as u64 + 1);
    (1..last).for_each(|order| text_ids.insert(order, text_id("a")));
    // A status report of a known order takes no room.
    text_ids.insert(2, text_id("b"));
    assert_eq!([1, 2].map(|order| text_ids.get(order)), [Some(text_id("a")), Some(text_id("b"))]);
    text_ids.insert(last, text_id("c"));
    let found = [1, 2, last].map(|order| text_ids.get(order));
    assert_eq!(found, [None, Some(text_id("b")), Some(text_id("c"))]);
}

#[test]
fn the_python_tests_pass() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("lib_native.so");
    let mut tests = Command::new(repository.join("scripts/pytest"));
    // Cargo builds these programs with the workspace's tests; a missing program is left out.
    let built = test.ancestors().nth(2).expect("it lies in deps");
    for (name, program) in [("TICKPATH", "tickpath"), ("STRATEGY", "examples/strategy")] {
        let program = built.join(program);
        if program.exists() {
            tests.env(name, program);
        }
    }
    // Without the C library, the tests that load both libraries into one process are skipped.
    let c_library = test.with_file_name("libtickpath.so");
    if c_library.exists() {
        tests.env("TICKPATH_LIBRARY", c_library);
    }
    let finished = tests.arg(&library).output().expect("scripts/pytest can be run");
    let text = [finished.stdout, finished.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    println!("{text}");
    assert!(finished.status.success(), "{text}");
}
