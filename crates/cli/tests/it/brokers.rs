//! Benches and explanations over real brokers: short runs, whose results keep the contract, lose nothing and render in
//! every form. No test here checks a time.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::tempdir;

use crate::program::{tickpath, without_waits};
use crate::reports::{bench, load, number, text};

/// Every way to carry a message.
const WAYS: [(&str, &str); 6] = [
    ("TICKPATH_REDIS", ""),
    ("TICKPATH_REDIS", "?streams"),
    ("TICKPATH_NATS", ""),
    ("TICKPATH_NATS", "?jetstream"),
    ("TICKPATH_AMQP", ""),
    ("TICKPATH_KAFKA", ""),
];

#[test]
fn every_broker_carries_every_phase() {
    let folder = tempdir().unwrap();
    let call =
        format!("pubsub {} --phase steady,idle,round-trip --size 64 --rate 200 --duration 0.5 --idle 5", targets());
    let result = bench(folder.path(), "pubsub", &call);
    let runs = runs(&result);
    assert_eq!(runs.len(), 3 * (WAYS.len() + 1), "{}", result["runs"]);
    for run in runs {
        assert_eq!(number(&run["counts"]["lost"]), 0.0, "{run}");
        assert!(number(&run["counts"]["received"]) > 0.0, "{run}");
        let hops = run["hops"].as_object().expect("hops");
        assert!(hops.contains_key("one_way") || hops.contains_key("round_trip"), "{run}");
        has_floor(run);
    }
}

#[test]
fn a_new_process_for_each_message_is_a_phase_of_its_own() {
    let folder = tempdir().unwrap();
    let redis = server("TICKPATH_REDIS");
    let result =
        bench(folder.path(), "cold", &format!("pubsub --target shm:// --target {redis} --phase cold --wait block"));
    for run in runs(&result) {
        assert_eq!(run["phase"], "cold");
        assert_eq!(number(&run["counts"]["received"]), 20.0, "{run}");
        assert!(number(&run["figures"]["connect_ns"]) > 0.0, "{run}");
    }
}

#[test]
fn every_queue_gives_each_message_once() {
    let folder = tempdir().unwrap();
    let result =
        bench(folder.path(), "queue", &format!("queue {} --count 600 --pipeline 20 --pull 20 --pullers 2", targets()));
    let runs = runs(&result);
    assert_eq!(runs.len(), WAYS.len() + 1);
    for run in runs {
        let counts = &run["counts"];
        assert_eq!(number(&counts["sent"]), 600.0, "{run}");
        for none in ["lost", "left"] {
            assert_eq!(number(&counts[none]), 0.0, "{none}: {run}");
        }
        assert_eq!(number(&counts["received"]) - number(&counts["duplicated"]), 600.0, "{run}");
        let actors = run["actors"].as_array().expect("actors");
        assert_eq!(actors.len(), 3, "{run}");
        assert!(run["series"].as_array().is_some_and(|series| !series.is_empty()), "{run}");
    }
}

#[test]
fn python_pushes_and_pulls_as_published() {
    let folder = tempdir().unwrap();
    let redis = server("TICKPATH_REDIS");
    for variant in ["published", "brpop"] {
        let call =
            format!("queue --target {redis} --client redis-py --count 300 --pipeline 5 --pull-variant {variant}");
        let result = bench(folder.path(), variant, &call);
        let [run] = runs(&result) else { panic!("one run: {result}") };
        assert_eq!((number(&run["counts"]["received"]), number(&run["counts"]["lost"])), (300.0, 0.0), "{run}");
        assert_eq!(run["params"]["pull_variant"], variant);
        // Both ends have reported that no connection was lost.
        let notes = run["notes"].to_string();
        assert!(run["figures"].get("reconnects").is_none() && !notes.contains("does not report reconnects"), "{run}");
    }
}

#[test]
fn pipelines_of_every_client_count_their_replies() {
    let folder = tempdir().unwrap();
    let result = bench(folder.path(), "pipeline", "pipeline --depth 1,100 --command PING,INCR --count 500 --repeat 1");
    for run in runs(&result) {
        assert_eq!(number(&run["counts"]["errors"]), 0.0, "{run}");
        assert_eq!(number(&run["counts"]["sent"]), number(&run["counts"]["received"]), "{run}");
        has_floor(run);
    }
    assert!(result["comparisons"].as_array().is_some_and(|found| !found.is_empty()), "{result}");
}

#[test]
fn clients_read_back_their_values_near_and_far() {
    let folder = tempdir().unwrap();
    let call = "clients --count 60 --repeat 2 --client redis-py,redis-py-asyncio,rust-async,go-redis --rtt 0,1";
    let result = bench(folder.path(), "clients", call);
    for run in runs(&result) {
        assert_eq!(number(&run["counts"]["errors"]), 0.0, "{run}");
        assert!(number(&run["figures"]["throughput_with_connect_per_s"]) > 0.0, "{run}");
        has_floor(run);
    }
    let far: Vec<&Value> = runs(&result).iter().filter(|run| run["params"]["rtt_ms"] == 1.0).collect();
    assert!(!far.is_empty());
    for run in far {
        // A lower bound: the proxy has to delay each pair's round trips.
        assert!(number(&run["params"]["measured_rtt_ns"]) >= 1e6, "{run}");
    }
}

#[test]
fn an_explanation_adds_up_and_reports_its_findings() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("explain.json");
    let ran = tickpath(&format!(
        "explain --case one-publish-per-process --repeat 3 --count 20 --gains none --json {}",
        text(&file)
    ));
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.err);
    assert!(ran.err.contains(": 1 run\n"), "it is not told how long it takes: {}", ran.err);
    for word in ["connect", "import redis"] {
        assert!(ran.out.contains(word), "'{word}' is not in: {}", ran.out);
    }
    let result = load(&file);
    let run = runs(&result).iter().find(|run| run["stages"].as_array().is_some_and(|stages| stages.len() > 3));
    let run = run.unwrap_or_else(|| panic!("no run has stages: {result}"));
    assert_eq!(run["phase"], "cold");
    let empty = run["figures"]["empty_polls_per_message"].as_f64().unwrap_or(0.0);
    assert_eq!(ran.out.contains("The subscriber spins"), empty >= 1.0, "{empty}: {}", ran.out);
    adds_up(run);
    has_floor(run);
}

#[test]
fn a_message_of_the_rust_client_is_explained_on_every_transport() {
    let folder = tempdir().unwrap();
    let brokers = WAYS.iter().map(|(variable, way)| format!("{}{way}", server(variable)));
    for (number, url) in brokers.chain(["shm://".to_owned()]).enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        let (gains, tried) = if url.starts_with("nats://") { ("log,busy-reader", 2) } else { ("none", 0) };
        let call = format!("explain {url} --client rust --count 20 --seconds 5 --gains {gains} --quiet");
        let ran = tickpath(&format!("{call} --json {}", text(&file)));
        assert!(matches!(ran.code, Some(0 | 3)), "{url}: {:?} {}", ran.code, ran.err);
        let result = load(&file);
        let phases: Vec<&str> = runs(&result).iter().filter_map(|run| run["phase"].as_str()).collect();
        assert!(phases.contains(&"cold") && phases.contains(&"steady"), "{url}: {phases:?}");
        let (gained, explained): (Vec<&Value>, Vec<&Value>) =
            runs(&result).iter().partition(|run| run["params"].get("gain").is_some());
        assert_eq!(gained.len(), tried, "{url}: {gained:?}");
        gained.iter().for_each(|run| has_floor(run));
        for run in explained {
            adds_up(run);
            assert_eq!(run["software"].get("server").is_some(), url != "shm://", "{run}");
        }
        // The same text can be printed again from the file.
        assert_eq!(tickpath(&format!("report {}", text(&file))).out, ran.out, "{url}");
    }
}

#[test]
fn scripts_of_the_user_are_explained_unchanged() {
    let folder = tempdir().unwrap();
    let redis = server("TICKPATH_REDIS");
    let port = redis.rsplit(':').next().expect("a port").to_owned();
    let publish = format!(
        "import redis, time\nr = redis.Redis(port={port})\nr.publish('tickpath-test-explain', str(time.time()))\n"
    );
    let listen = format!(
        "import redis\np = redis.Redis(port={port}).pubsub()\np.subscribe('tickpath-test-explain')\nfor m in p.listen():\n    pass\n"
    );
    let (publisher, subscriber) = (folder.path().join("publish.py"), folder.path().join("listen.py"));
    fs::write(&publisher, &publish).unwrap();
    fs::write(&subscriber, &listen).unwrap();
    let python = python();
    let file = folder.path().join("explain.json");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["explain", &redis, "--repeat", "3", "--gains", "none", "--quiet", "--json", text(&file), "--with"]);
    command.args([&format!("{python} {}", text(&subscriber)), "--", &python, text(&publisher)]);
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), without_waits(&ran.stderr));
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{:?} {err}", ran.status);
    assert!(out.contains("connect"), "{out}");
    assert_eq!(fs::read_to_string(&publisher).unwrap(), publish);
    let result = load(&file);
    let count = |run: &Value, name: &str| run["counts"][name].as_f64().unwrap_or(0.0);
    let ours = |run: &&Value| count(run, "sent") >= 3.0 && count(run, "received") >= 1.0;
    let run = runs(&result).iter().find(ours).unwrap_or_else(|| panic!("{out}\n{result}"));
    assert_eq!(count(run, "received") + count(run, "lost"), count(run, "sent"), "{run}");
}

#[test]
fn a_sleeping_subscriber_is_reported_with_the_ratio_of_its_kind() {
    let folder = tempdir().unwrap();
    let redis = server("TICKPATH_REDIS");
    let port = redis.rsplit(':').next().expect("a port").to_owned();
    let script = |name: &str, lines: &str| {
        let path = folder.path().join(name);
        let client = format!("import redis, time\nr = redis.Redis(port={port})\n");
        fs::write(&path, client + lines).unwrap();
        text(&path).to_owned()
    };
    let publisher = script("publish.py", "r.publish('tickpath-test-sleeps', str(time.time()))\n");
    let subscriber = script(
        "sleeps.py",
        "p = r.pubsub()\np.subscribe('tickpath-test-sleeps')\nwhile True:\n    p.get_message()\n    time.sleep(0.001)\n",
    );
    let (python, file) = (python(), folder.path().join("explain.json"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tickpath"));
    command.args(["explain", &redis, "--repeat", "5", "--gains", "no-sleep", "--quiet", "--json", text(&file)]);
    command.args(["--with", &format!("{python} {subscriber}"), "--", &python, &publisher]);
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), without_waits(&ran.stderr));
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{:?} {err}", ran.status);
    let printed = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let result = load(&file);
    let is_it = |found: &&Value| found["name"] == "gain_no_sleep" && found["figure"] == "one_way.p50_ns";
    let tried = result["comparisons"].as_array().into_iter().flatten().find(is_it);
    // If other processes had the processors in too many rounds, the ratio is unknown and reported as such.
    let instead = if tried.is_some_and(|tried| tried["low"].is_number()) {
        "a blocking listen instead of get_message with 1 ms of sleep:"
    } else {
        assert!(tried.is_some() || result.to_string().contains("not judged: no_sleep"), "{result}");
        "a blocking listen waits without that"
    };
    for words in ["asks with get_message and pauses", instead] {
        assert!(printed.contains(words), "'{words}' is not in: {out}");
    }
    assert!(!printed.contains("spins"), "{out}");
    let run = runs(&result).iter().find(|run| run["phase"] == "cold").unwrap_or_else(|| panic!("{result}"));
    // No sleep is shorter than requested.
    assert!(number(&run["figures"]["reader_pause_ns"]) >= 1e6, "{run}");
}

#[test]
fn a_command_that_shows_nothing_runs_once() {
    let folder = tempdir().unwrap();
    let (script, runs) = (folder.path().join("silent.py"), folder.path().join("runs"));
    fs::write(&script, format!("open({:?}, 'a').write('once\\n')\n", text(&runs))).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tickpath"));
    let ran = command.args(["explain", "--gains", "none", "--quiet", "--", "python3", text(&script)]).output().unwrap();
    let err = without_waits(&ran.stderr);
    let printed = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ran.status.code() == Some(1) && printed.contains("imports redis"), "{:?} {err}", ran.status);
    assert_eq!(fs::read_to_string(&runs).unwrap(), "once\n");
}

/// Checks that the machine was measured before and after the run, if it has two CPUs.
fn has_floor(run: &Value) {
    let cpus = std::thread::available_parallelism().expect("it is known").get();
    assert_eq!(run["floor"]["cache_line_transfer_after_ns"].is_number(), cpus > 1, "{run}");
}

/// Checks that the stages and the unexplained rest add up to the whole, and that the explained share is right.
fn adds_up(run: &Value) {
    const BEFORE: [&str; 3] = ["interpreter_start", "import_redis", "script_until_call"];
    let stages = run["stages"].as_array().expect("stages");
    let within: Vec<&Value> = stages.iter().filter(|stage| BEFORE.iter().all(|name| stage["name"] != *name)).collect();
    let sum = |of: &dyn Fn(&Value) -> bool| within.iter().filter(|s| of(s)).map(|s| number(&s["p50_ns"])).sum::<f64>();
    let whole = number(&run["figures"]["message_ns"]);
    // Each stage is a whole number of nanoseconds.
    let rounding = within.len() as f64;
    let known = sum(&|stage| stage["kind"] != "unexplained");
    let percent = number(&run["figures"]["stages_sum_percent"]);
    assert!((percent / 100.0 * whole - known).abs() <= rounding, "{percent} % of {whole}, and {known}: {run}");
    assert!(sum(&|_| true) >= whole - rounding, "{run}");
}

/// Returns an interpreter with redis-py: the lab's own environment, which a bench makes.
pub fn python() -> String {
    let folder = tempdir().unwrap();
    let redis = server("TICKPATH_REDIS");
    bench(folder.path(), "environment", &format!("clients --target {redis} --count 8 --repeat 1 --client redis-py"));
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let root = cache.expect("the tests run with a home").join("tickpath");
    let mut found = fs::read_dir(&root).unwrap().flatten().map(|entry| entry.path());
    // An incomplete environment may lie beside it.
    let whole = found.find(|folder| text(folder.file_name().expect("a folder").as_ref()).starts_with("python-"));
    text(&whole.expect("the environment is there").join("bin/python3")).to_owned()
}

fn targets() -> String {
    let mut all = vec!["--target shm://".to_owned()];
    all.extend(WAYS.iter().map(|(variable, way)| format!("--target {}{way}", server(variable))));
    all.join(" ")
}

fn server(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set; start the brokers: scripts/brokers run -- cargo test"))
}

fn runs(result: &Value) -> &[Value] {
    result["runs"].as_array().expect("runs is a list")
}
