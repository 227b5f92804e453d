//! Output of `explain` for another import: its gain where the package is installed, and the package to install where
//! it is not. No test here checks a time. Without a Redis server or the module built by Cargo the tests are skipped
//! with a note.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::tempdir;

use crate::brokers::python;
use crate::program::without_waits;
use crate::reports::{load, number, text};

/// Name of the change in the file, and its options on the command line.
const LINE: &str = "gain_import_tickpath";
const GAIN: &str = "--gains import-tickpath --seconds 5 --count 20 --quiet";

/// Text beside every answer.
const PAGE: &str = "docs/redis-py.md has the lines that change, and tickpath.bridge keeps the broker for everybody";

/// An interpreter with redis-py.
static PYTHON: LazyLock<String> = LazyLock::new(python);

#[test]
fn an_untestable_import_names_the_package_and_has_no_number() {
    let Some(redis) = redis() else { return };
    let folder = tempdir().unwrap();
    let scripts = Scripts::of(folder.path(), &redis, "publish", SUBSCRIBES);
    let (text, result) = explain(folder.path(), [], &scripts.words());
    for words in ["import tickpath", "not measured, see the findings", "-m pip install . in a checkout", PAGE] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    assert!(text.contains(&format!("not measured: {} cannot import", *PYTHON)), "{text}");
    let line = comparison(&result).unwrap_or_else(|| panic!("{result}"));
    for figure in ["a", "b", "ratio", "low", "high"] {
        assert!(line[figure].is_null(), "{line}");
    }
    assert!(gained(&result).is_none(), "{result}");
}

#[test]
fn an_import_is_tried_with_messages_like_those_of_the_scripts() {
    let Some(redis) = redis() else { return };
    for (sends, waits, hop, base, change) in [
        ("publish", SUBSCRIBES, "publish", "redis-py, listen, ", "tickpath, iterated, shared memory"),
        ("publish", SPINS, "publish", "redis-py, spin on get_message, ", "tickpath, spin on poll, shared memory"),
        ("rpush", POPS, "push", "redis-py, rpush and blpop, ", "tickpath, a queue, iterated, shared memory"),
    ] {
        let folder = tempdir().unwrap();
        let Some(package) = package(folder.path()) else { return };
        let scripts = Scripts::of(folder.path(), &redis, sends, waits);
        let (printed, result) = explain(folder.path(), [("PYTHONPATH", text(&package))], &scripts.words());
        let seen = runs(&result).find(|run| run["phase"] == "steady" && run["params"]["script"] == "sends.py");
        let seen = seen.unwrap_or_else(|| panic!("{printed}\n{result}"));
        assert!(seen["hops"][hop].is_object() && number(&seen["counts"]["received"]) > 0.0, "{seen}");
        let pushed = if hop == "push" { Value::from("RPUSH") } else { Value::Null };
        assert_eq!(seen["params"]["sends"], pushed, "{seen}");
        let run = is_measured(&printed, &result);
        assert_eq!(run["params"]["size_bytes"], 200, "{run}");
        assert!(run["params"]["base"].as_str().is_some_and(|output| output.starts_with(base)), "{run}");
        assert!(run["params"]["change"].as_str().is_some_and(|output| output.starts_with(change)), "{run}");
        assert!(run["notes"].to_string().contains("messages of 200 bytes a process"), "{run}");
    }
    assert_eq!(lists_of_ours(&redis), "*0\r\n");
}

#[test]
fn an_import_is_tried_on_a_server_with_generated_messages() {
    let Some(redis) = redis() else { return };
    let folder = tempdir().unwrap();
    let Some(package) = package(folder.path()) else { return };
    let environment = [("PYTHONPATH", text(&package)), ("TICKPATH_PYTHON", PYTHON.as_str())];
    let (printed, result) = explain(folder.path(), environment, &[redis.as_str(), "--client", "redis-py-asyncio"]);
    let run = is_measured(&printed, &result);
    assert_eq!(run["params"]["size_bytes"], 32, "{run}");
    assert!(
        run["params"]["change"].as_str().is_some_and(|output| output.starts_with("tickpath on asyncio, ")),
        "{run}"
    );
}

/// Waiting scripts that run until they are killed: by `listen`, by polling, and for pushed messages.
const SUBSCRIBES: &str = "p = r.pubsub()\np.subscribe(NAME)\nfor message in p.listen():\n    pass\n";
const SPINS: &str = "p = r.pubsub()\np.subscribe(NAME)\nwhile True:\n    p.get_message()\n";
const POPS: &str = "while True:\n    r.blpop(NAME, timeout=1)\n";

/// Scripts of a user: the sender's file, and the call of the waiting one.
struct Scripts {
    sends: PathBuf,
    waits: String,
}

impl Scripts {
    /// Makes scripts for messages of 200 bytes, sent by this method of redis-py.
    fn of(folder: &Path, redis: &str, sends: &str, waits: &str) -> Self {
        let name = format!("tickpath-test-import-{sends}");
        let head = format!("import redis\nr = redis.Redis.from_url('{redis}')\nNAME = '{name}'\n");
        let script = |name: &str, lines: &str| {
            let path = folder.join(name);
            fs::write(&path, format!("{head}{lines}")).unwrap();
            path
        };
        let sends = script("sends.py", &format!("for number in range(40):\n    r.{sends}(NAME, f'{{number:0200}}')\n"));
        let waits = format!("{} {}", *PYTHON, text(&script("waits.py", waits)));
        Self { sends, waits }
    }

    fn words(&self) -> [&str; 7] {
        ["--repeat", "2", "--with", &self.waits, "--", PYTHON.as_str(), text(&self.sends)]
    }
}

/// Returns the printed text on one line, and the result file.
fn explain<const N: usize>(folder: &Path, environment: [(&str, &str); N], words: &[&str]) -> (String, Value) {
    let file = folder.join("explain.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.arg("explain").args(GAIN.split(' ')).args(["--json", text(&file)]).args(words);
    // The user's own settings would be found otherwise.
    command.env_remove("PYTHONPATH").env_remove("TICKPATH_PYTHON").envs(environment);
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), without_waits(&ran.stderr));
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{:?} {out} {err}", ran.status);
    (out.split_whitespace().collect::<Vec<_>>().join(" "), load(&file))
}

/// Returns the run of the change: both sides took turns, nothing was lost, and the line has its outcome.
fn is_measured<'a>(text: &str, result: &'a Value) -> &'a Value {
    let run = gained(result).unwrap_or_else(|| panic!("{text}\n{result}"));
    assert!(number(&run["counts"]["received"]) > 0.0, "{run}");
    assert_eq!(number(&run["counts"]["lost"]), 0.0, "{run}");
    assert!(run["notes"].to_string().contains("both sides of the import ran in one CPython"), "{run}");
    let line = comparison(result).unwrap_or_else(|| panic!("{result}"));
    // If other processes had the processors in too many rounds, the ratio is unknown and reported as such.
    let words = match line["low"].is_number() {
        true => ["times", PAGE],
        false => ["not measured: ", PAGE],
    };
    for words in words {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    run
}

fn comparison(result: &Value) -> Option<&Value> {
    result["comparisons"].as_array()?.iter().find(|found| found["name"] == LINE)
}

fn gained(result: &Value) -> Option<&Value> {
    runs(result).find(|run| run["params"]["gain"] == "import_tickpath")
}

fn runs(result: &Value) -> impl Iterator<Item = &Value> {
    result["runs"].as_array().into_iter().flatten()
}

/// Returns the server named in the environment.
pub fn redis() -> Option<String> {
    let named = std::env::var("TICKPATH_REDIS").ok();
    if named.is_none() {
        eprintln!("left out: TICKPATH_REDIS names no server; scripts/brokers run -- starts one");
    }
    named
}

/// Lays out the package like a wheel, with the module built by Cargo.
pub fn package(folder: &Path) -> Option<PathBuf> {
    let module = std::env::current_exe().expect("a test has a path").with_file_name("lib_native.so");
    if !module.exists() {
        eprintln!("left out: the package's module is not built; cargo build -p tickpath-python makes it");
        return None;
    }
    let home = folder.join("package");
    let package = home.join("tickpath");
    fs::create_dir_all(&package).unwrap();
    symlink(module, package.join("_native.abi3.so")).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tickpath").canonicalize().unwrap();
    for source in fs::read_dir(sources).unwrap().flatten().map(|entry| entry.path()) {
        if source.extension().is_some_and(|ending| ending == "py") {
            symlink(&source, package.join(source.file_name().expect("a file has a name"))).unwrap();
        }
    }
    Some(home)
}

/// Returns the server's answer with its lists made by `explain`.
fn lists_of_ours(redis: &str) -> String {
    let mut server = TcpStream::connect(redis.trim_start_matches("redis://")).expect("the server is there");
    server.write_all(b"KEYS tickpath:lab-*:gain-*\r\nQUIT\r\n").unwrap();
    let mut text = String::new();
    server.read_to_string(&mut text).unwrap();
    text.trim_end_matches("+OK\r\n").to_owned()
}
