//! Servers that fail, and damaged or wrong files: one clear sentence each, and nothing lost.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;
use tickpath_clock::sleep_ns;

use crate::program::{PAUSE_NS, tickpath, without_waits};
use crate::reports::{load, text};
use crate::server::RedisServer;

#[test]
fn a_server_killed_during_a_run_leaves_a_partial_result() {
    let folder = tempdir().unwrap();
    for (name, command, call) in [
        ("pubsub", "publish", "pubsub --phase steady --size 64,128 --rate 500 --duration 60"),
        ("queue", "lpush", "queue --count 1000000 --pipeline 1 --pull 1"),
        ("clients", "set", "clients --client redis-py --count 1000000 --repeat 1"),
        ("pipeline", "incr", "pipeline --command INCR --client rust --depth 1 --duration 60 --part sweep"),
    ] {
        let mut server = RedisServer::start();
        let file = folder.path().join(format!("{name}.json"));
        let line = format!("bench {call} --target {} --quiet --json {}", server.url(), text(&file));
        let ran = std::thread::scope(|scope| {
            let running = scope.spawn(|| tickpath(&line));
            // Only then the run is in its middle: the steps before can take seconds or, where Python's packages are
            // fetched, a minute, and a target's probe alone is 1,000 messages.
            while server.calls(command) < 2_000 && !running.is_finished() {
                sleep_ns(PAUSE_NS);
            }
            server.stop();
            running.join().expect("the program ran")
        });
        assert_eq!(ran.code, Some(1), "{name}: {} {}", ran.out, ran.err);
        assert_eq!(
            ran.err.trim().lines().filter(|line| line.starts_with("tickpath:")).count(),
            1,
            "{name}: {}",
            ran.err
        );
        assert!(file.exists(), "{name}: what was measured is lost: {}", ran.err);
        let result = load(&file);
        let broken: Vec<&Value> = runs(&result).iter().filter(|run| run["valid"] == false).collect();
        assert!(!broken.is_empty(), "{name}: {result}");
    }
}

#[test]
fn a_cut_connection_of_a_pusher_is_reported() {
    // A cut during a push leaves this push unknown, and ends the run: the next run is cut at another moment.
    let run = std::iter::repeat_with(run_of_a_pusher_that_is_cut).take(20).find(|run| {
        let broke_off = notes(run).any(|note| note.contains("pushing failed") && note.contains("it is unknown"));
        assert_eq!(broke_off, run["valid"] == false && run["figures"]["reconnects"].is_null(), "{run}");
        !broke_off
    });
    let run = run.expect("one of twenty is cut between two pushes");
    assert_eq!(run["figures"]["reconnects"], 1.0, "{run}");
    assert!(notes(&run).any(|note| note == "the sender's connection was lost and made again once"), "{run}");
}

fn run_of_a_pusher_that_is_cut() -> Value {
    let (folder, server) = (tempdir().unwrap(), RedisServer::start());
    let file = folder.path().join("cut.json");
    let call = "bench queue --count 100 --rate 100 --pipeline 1 --pull 1 --quiet";
    let line = format!("{call} --target {} --json {}", server.url(), text(&file));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| tickpath(&line));
        while server.calls("lpush") < 50 && !running.is_finished() {
            sleep_ns(PAUSE_NS);
        }
        let clients = server.obey("CLIENT LIST");
        let pusher = clients.lines().find(|client| client.contains(" cmd=lpush "));
        let id = pusher.and_then(|pusher| pusher.strip_prefix("id=")?.split(' ').next());
        server.obey(&format!("CLIENT KILL ID {}", id.unwrap_or_else(|| panic!("nobody pushes: {clients}"))));
    });
    let result = load(&file);
    let [run] = runs(&result) else { panic!("one run: {result}") };
    run.clone()
}

fn notes(run: &Value) -> impl Iterator<Item = &str> {
    run["notes"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[test]
fn a_bench_gives_up_on_a_silent_server() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for (call, scheme) in [
        ("bench pubsub --count 10", "redis"),
        ("bench pubsub --count 10", "nats"),
        ("bench queue --count 10", "amqp"),
        ("bench clients --count 10", "redis"),
        ("bench pipeline --client rust --count 10", "redis"),
    ] {
        let ran = tickpath(&format!("{call} --quiet --target {scheme}://127.0.0.1:{port}"));
        assert!(matches!(ran.code, Some(1 | 2)), "{call}: {:?}", ran.code);
        assert!(ran.err.contains("answer"), "{call} {scheme}: {}", ran.err);
    }
    let ran = tickpath(&format!("explain redis://127.0.0.1:{port} --quiet --gains none"));
    assert!(ran.code == Some(1) && ran.err.contains("answer"), "{:?} {}", ran.code, ran.err);
}

#[test]
fn a_password_is_required_and_never_printed() {
    let server = RedisServer::with(&["--requirepass", "sesame"]);
    for (login, word) in [("", "wants a password"), (":wr0ng@", "refused the user name or the password")] {
        let ran = tickpath(&format!("bench pubsub --count 10 --quiet --target {}", server.url_with(login)));
        assert!(ran.code == Some(1) && ran.err.contains(word), "{:?} {}", ran.code, ran.err);
        assert!(!ran.err.contains("wr0ng"), "{}", ran.err);
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("result.json");
    let url = server.url_with(":sesame@");
    for call in [
        format!("bench pubsub --size 64 --count 50 --rate 500 --wait block --target {url}"),
        format!("explain {url} --client rust --count 20 --seconds 5 --gains none"),
        format!("explain {url}?streams --count 20 --seconds 5 --gains none"),
    ] {
        let ran = tickpath(&format!("{call} --quiet --json {}", text(&file)));
        assert!(matches!(ran.code, Some(0 | 3)), "{call}: {}", ran.err);
        let output = format!("{}{}{}", fs::read_to_string(&file).unwrap(), ran.out, ran.err);
        assert!(!output.contains("sesame"), "{call}: the password is printed: {output}");
    }
    // A channel leaves nothing behind, and a stream is removed.
    assert!(server.obey("AUTH sesame\r\nDBSIZE").contains(":0\r\n"), "{}", server.obey("AUTH sesame\r\nKEYS *"));
}

#[test]
fn results_that_cannot_be_compared_are_refused_with_the_reason() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, call) in
        [("a", "host --duration 0.1"), ("b", "pubsub --target shm:// --count 50 --rate 500 --wait block --size 64")]
    {
        let ran = tickpath(&format!("bench {call} --quiet --json {}", text(&path(name))));
        assert!(matches!(ran.code, Some(0 | 3)), "{}", ran.err);
    }
    let whole = fs::read_to_string(path("a")).unwrap();
    fs::write(path("cut"), &whole[..whole.len() / 2]).unwrap();
    fs::write(path("other"), whole.replace("tickpath.result/1", "tickpath.result/9")).unwrap();
    fs::write(path("empty"), "").unwrap();
    for (old, new, code, word) in [
        ("a", "b", 2, "pubsub"),
        ("a", "cut", 1, "cut"),
        ("a", "other", 1, "tickpath.result/9"),
        ("a", "empty", 1, "empty"),
        ("a", "missing", 1, "missing"),
    ] {
        let ran = tickpath(&format!("compare {} {}", text(&path(old)), text(&path(new))));
        assert!(ran.err.contains(word) && ran.err.lines().count() == 1, "{old} {new}: {:?} '{}'", ran.code, ran.err);
        assert!(
            ran.code == Some(code) || (code == 1 && ran.code == Some(2)),
            "{old} {new}: {:?} {}",
            ran.code,
            ran.err
        );
    }
    let same = tickpath(&format!("compare {} {}", text(&path("a")), text(&path("a"))));
    assert_eq!(same.code, Some(0), "{}", same.err);
    let limit = tickpath(&format!("compare {0} {0} --fail-if colour>+1%", text(&path("a"))));
    assert_eq!(limit.code, Some(2), "{}", limit.err);
}

#[test]
fn calls_in_turn_print_their_total_time_once() {
    let program = env!("CARGO_BIN_EXE_tickpath");
    let ran = tickpath(&format!("compare {program} {program} --repeat 1 -- bench host --duration 0.1"));
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.err);
    assert_eq!(ran.err.matches(": 2 calls\n").count(), 1, "{}", ran.err);
}

#[test]
fn a_missing_python_or_package_is_named_with_the_remedy() {
    let folder = tempdir().unwrap();
    // An installed package or a path of the user's would be found otherwise.
    let bare = folder.path().join("bare");
    fs::write(&bare, "#!/bin/sh\nexec python3 -I -S \"$@\"\n").unwrap();
    fs::set_permissions(&bare, fs::Permissions::from_mode(0o755)).unwrap();
    let (none, bare, phase) = ("/no/such/python", text(&bare), "--phase steady");
    for (call, python, printed) in [
        ("clients --client redis-py".to_owned(), none, "/no/such/python"),
        (format!("pubsub --client python --target shm:// {phase}"), none, "name an interpreter with TICKPATH_PYTHON"),
        (format!("pubsub --client python --target shm:// {phase}"), bare, "No module named 'tickpath'); run"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        command.args(format!("bench {call} --count 10 --quiet").split(' '));
        let ran = command.env("TICKPATH_PYTHON", python).output().unwrap();
        let message = without_waits(&ran.stderr);
        assert!(
            ran.status.code() == Some(1) && message.contains(python) && message.contains(printed),
            "{call}: {message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_missing_go_is_named_with_the_remedy_or_left_out_with_a_note() {
    let folder = tempdir().unwrap();
    let go = folder.path().join("go");
    // Exit code of a shell for a missing program.
    fs::write(&go, "#!/bin/sh\nexit 127\n").unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", text(folder.path()), std::env::var("PATH").unwrap());
    let tickpath = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tickpath"));
        let ran = command.args(line.split(' ')).env("PATH", &path).output().unwrap();
        (ran.status.code(), without_waits(&ran.stderr))
    };
    let remedy = "go is not installed; install it with: apt-get install golang-go";
    let server = RedisServer::start();
    for call in ["clients", "pubsub"] {
        let (code, printed) =
            tickpath(&format!("bench {call} --client go-redis --target {} --count 10 --quiet", server.url()));
        assert!(
            code == Some(1) && printed.contains(remedy) && printed.lines().count() == 1,
            "{call}: {code:?} {printed}"
        );
    }
    let file = folder.path().join("result.json");
    let (code, printed) = tickpath(&format!(
        "bench clients --target {} --count 8 --repeat 1 --quiet --json {}",
        server.url(),
        text(&file)
    ));
    assert_eq!(code, Some(0), "{printed}");
    let result = load(&file);
    let found = result["findings"].as_array().expect("findings is a list");
    let is_word = |finding: &Value| {
        finding.as_str().is_some_and(|f| f.starts_with("left out: go-redis, go-redis-pipeline: ") && f.contains(remedy))
    };
    assert!(found.iter().any(is_word), "{found:?}");
    let clients: Vec<&Value> = runs(&result).iter().map(|run| &run["client"]).collect();
    assert!(clients.iter().any(|client| *client == "rust-async"), "{clients:?}");
    assert!(clients.iter().all(|client| *client != "go-redis"), "{clients:?}");
}

fn runs(result: &Value) -> &[Value] {
    result["runs"].as_array().expect("runs is a list")
}
