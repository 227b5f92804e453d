//! The official SBE tool accepts the schema without warnings. Its Java and C++ codecs, used by `RoundTrip.java` and
//! `RoundTrip.cpp`, read every message of ours field by field and write it again to the byte.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

mod messages;
mod tool;

use messages::ExpectedMessage;
use tool::{Tool, bounded, output};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sbe");

#[test]
fn codecs_in_java_carry_every_message() {
    let Some(tool) = Tool::have("codecs in Java", &["javac"]) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let codecs = folder.path().join("codecs");
    tool.generate("Java", &tool::schema(), &codecs).expect("the schema is right");
    let classes = folder.path().join("classes");
    let mut compile = bounded("javac");
    compile.args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-Werror", "-d"]).arg(&classes);
    compile.arg("-cp").arg(tool.class_path()).arg(Path::new(HERE).join("RoundTrip.java"));
    let sources = fs::read_dir(codecs.join("tickpath")).expect("the package is a folder");
    compile.args(sources.map(|source| source.expect("the folder can be read").path()));
    output(&mut compile);
    let mut program = tool::java();
    // The buffers of the generated code use internals of Java.
    program.args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "-cp"]);
    program.arg(format!("{}:{}", classes.display(), tool.class_path())).arg("RoundTrip");
    check(&mut program, folder.path());
}

#[test]
fn codecs_in_cpp_carry_every_message() {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut words = compiler.split_whitespace();
    let compiler = words.next().unwrap_or("c++");
    let Some(tool) = Tool::have("codecs in C++", &[compiler]) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let codecs = folder.path().join("codecs");
    tool.generate("Cpp", &tool::schema(), &codecs).expect("the schema is right");
    let program = folder.path().join("round-trip");
    let mut compile = bounded(compiler);
    compile.args(words).args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I"]).arg(&codecs);
    compile.arg(Path::new(HERE).join("RoundTrip.cpp")).arg("-o").arg(&program);
    output(&mut compile);
    check(&mut bounded(&program), folder.path());
}

/// One fault for each part of the validation: the tool's errors, its warnings, and the faults that only the XSD
/// rejects.
#[test]
fn a_fault_in_the_schema_is_detected() {
    let Some(tool) = Tool::have("faults in the schema", &[]) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let text = fs::read_to_string(tool::schema()).expect("the schema is here");
    for (right, wrong, sentence) in [
        (r#"blockLength="48""#, r#"blockLength="40""#, "insufficient space"),
        (r#"<field name="bid""#, r#"<field name="class""#, "not valid for"),
        (r#"<enum name="Side""#, r#"<enum name="Side" presence="optional""#, "not allowed"),
    ] {
        assert!(text.contains(right), "the schema has no {right}");
        let schema = folder.path().join("faulty.xml");
        fs::write(&schema, text.replacen(right, wrong, 1)).expect("the folder is ours");
        let error = tool.generate("Java", &schema, &folder.path().join("codecs")).expect_err(wrong);
        assert!(error.contains(sentence), "{wrong}: {error}");
    }
}

/// Passes messages of every kind to the program, and compares its output with them.
fn check(program: &mut Command, folder: &Path) {
    let sent = messages::of_every_kind();
    let input = folder.join("messages");
    let bytes: Vec<u8> = sent.iter().flat_map(|one| one.bytes.iter().copied()).collect();
    fs::write(&input, bytes).expect("the folder is ours");
    let output = output(program.stdin(Stdio::from(File::open(&input).expect("it was written"))));
    let mut lines = output.lines();
    for ExpectedMessage { line: expected, .. } in &sent {
        assert_eq!(lines.next(), Some(expected.as_str()), "left: what the codec read and wrote, right: what was sent");
    }
    assert_eq!(lines.next(), None, "it has read more than was sent");
}
