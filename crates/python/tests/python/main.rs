//! Runs the package's Python tests (`python/tests`) against the module built by cargo.

use std::path::Path;
use std::process::Command;

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
