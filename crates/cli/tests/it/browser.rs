//! The page of a report in a headless browser: every section is there, nothing is wider than a phone, no word is cut
//! off, and nothing is requested from elsewhere. Needs chromium.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::tempdir;
use tickpath_clock::sleep_ns;

use crate::program::tickpath;

/// Widths of a phone's and a desktop's window, in pixels.
const WIDTHS: [u32; 2] = [360, 1400];
const HEIGHT: u32 = 900;

/// Least ratio of a picture's size to that of an empty page, for a page that is not blank.
const NOT_BLANK: u64 = 4;

const HEADINGS: [&str; 11] = [
    "The machine",
    "Where the time goes",
    "Cold, idle, steady",
    "Over time",
    "Pipeline depth",
    "Clients",
    "Comparisons",
    "The spread",
    "Every run",
    "How to read it",
    "The command",
];

/// Least number of line charts: a run with a series, two commands, and round trips, `one_way` and `publish` in their
/// groups.
const MIN_CHARTS: usize = 1 + 2 + 3;

#[test]
fn the_page_of_a_report_opens_in_a_browser() {
    let folder = tempdir().expect("a temporary folder can be made");
    let (file, page) = (folder.path().join("result.json"), folder.path().join("page.html"));
    fs::write(&file, result().to_string()).expect("the folder can be written");
    let ran = tickpath(&format!("report {} --html {}", file.display(), page.display()));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "the report is made");
    let text = fs::read_to_string(&page).expect("it was written");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "the page asks for something elsewhere: {outside}");
    }
    has_every_section(folder.path(), &page, &text);
    for width in WIDTHS {
        fits(folder.path(), &text, width);
        is_not_blank(folder.path(), &page, width);
    }
}

/// Checks that the browser's document has all headings and drawings.
fn has_every_section(folder: &Path, page: &Path, text: &str) {
    let dom = chromium(folder, &["--dump-dom".to_owned(), address(page)]);
    for heading in HEADINGS {
        assert!(dom.contains(&format!("<h2>{heading}</h2>")), "the browser sees no section '{heading}'");
    }
    for mark in ["<svg", "<table", "<details", "<section"] {
        assert_eq!(dom.matches(mark).count(), text.matches(mark).count(), "the browser sees other {mark}");
    }
    let charts = dom.matches("class=\"chart\"").count();
    assert!(charts >= MIN_CHARTS, "{charts} line charts");
}

/// Lets the page measure itself, because a window is never as narrow as a phone: its width, and the number of words in
/// its charts that are cut off.
fn fits(folder: &Path, text: &str, width: u32) {
    let wrapper = folder.join("wrapper.html");
    let inner = text.replace('&', "&amp;").replace('"', "&quot;");
    let style = format!("width:{width}px;height:{HEIGHT}px;border:0");
    let body = format!("<iframe style=\"{style}\" srcdoc=\"{inner}\"></iframe>{MEASURE}");
    fs::write(&wrapper, format!("<!doctype html><html><body>{body}</body></html>")).expect("the folder can be written");
    let dom = chromium(folder, &["--dump-dom".to_owned(), format!("--window-size=1500,{HEIGHT}"), address(&wrapper)]);
    let output = dom.split("data-measured=\"").nth(1).and_then(|rest| rest.split('"').next());
    let output = output.unwrap_or_else(|| panic!("the page did not measure itself at {width} px"));
    assert_eq!(output, format!("{width} {width} cut off:"), "the window's width, the page's width, words that are cut");
}

const MEASURE: &str = r#"<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const cut = [...page.querySelectorAll(".chart text")].filter(text => {
    const word = text.getBoundingClientRect(), chart = text.ownerSVGElement.getBoundingClientRect();
    return word.left < chart.left - 1 || word.right > chart.right + 1;
  });
  const root = page.documentElement, words = cut.map(text => " " + text.textContent).join("");
  document.body.dataset.measured = `${root.clientWidth} ${root.scrollWidth} cut off:${words}`;
});
</script>"#;

/// Checks that a picture of the page holds far more than a picture of an empty page.
fn is_not_blank(folder: &Path, page: &Path, width: u32) {
    let empty = folder.join("empty.html");
    fs::write(&empty, "<!doctype html><title>nothing</title>").expect("the folder can be written");
    let [nothing, something] = [empty.as_path(), page].map(|page| {
        let picture = folder.join("picture.png");
        let shot = format!("--screenshot={}", picture.display());
        chromium(folder, &[shot, format!("--window-size={width},{HEIGHT}"), address(page)]);
        let bytes = fs::metadata(&picture).expect("the browser has written a picture").len();
        fs::remove_file(&picture).expect("it is ours");
        bytes
    });
    assert!(something > NOT_BLANK * nothing, "at {width} px: {something} bytes, and {nothing} of an empty page");
}

/// Names of the browser on different systems.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Checks for the end of a call, and the pause between two: five minutes.
const LOOKS: u32 = 6_000;
const PAUSE_NS: u64 = 50_000_000;

/// Returns the browser's standard output; the browser must end well.
fn chromium(folder: &Path, arguments: &[String]) -> String {
    let profile = folder.join("profile");
    let mut child = BROWSERS
        .into_iter()
        .find_map(|browser| start(browser, &profile, arguments))
        .expect("no browser; install one with: apt-get install chromium");
    let mut out = child.stdout.take().expect("it is a pipe");
    let text: JoinHandle<String> = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).expect("the pipe can be read");
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut looks = 0;
    let status = loop {
        match child.try_wait().expect("the child is ours") {
            Some(status) => break status,
            None if looks == LOOKS => {
                child.kill().expect("the child is ours");
                child.wait().expect("the child is ours");
                panic!("the browser does not end; is the machine overloaded? {arguments:?}");
            }
            None => sleep_ns(PAUSE_NS),
        }
        looks += 1;
    };
    let text = text.join().expect("a listener does not panic");
    assert!(status.success(), "the browser ended with {status}: {arguments:?}");
    text
}

/// Starts a browser; none if there is no such program.
fn start(browser: &str, profile: &Path, arguments: &[String]) -> Option<Child> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", profile.display())).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => Some(child),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{browser} does not start: {error}"),
    }
}

fn address(page: &Path) -> String {
    format!("file://{}", page.display())
}

/// Returns a result with content for every section.
fn result() -> Value {
    let runs = [pubsub(), queue(), pipeline(), clients(), explained()].concat();
    json!({
        "schema": "tickpath.result/1", "workload": "every workload", "command": "tickpath report A B",
        "started_at": "2026-01-02T03:04:05Z", "tickpath": "0.1.0",
        "host": { "cpu": "Example CPU @ 3.0 GHz", "cores": 2, "kernel": "Linux 6.1", "clock_source": "tsc" },
        "runs": runs,
        "comparisons": [
            { "name": "redis-streams_to_log_one_way idle 1024 1 block 1000000 1", "figure": "one_way.p50_ns",
              "a": 90_000.0, "b": 400.0, "ratio": 225.0, "low": 200.0, "high": 240.0 },
            { "name": "gain_hiredis", "figure": "one_way.p50_ns",
              "a": 2e5, "b": 1.6e5, "ratio": 1.25, "low": 0.9, "high": 1.4 }
        ]
    })
}

fn run(target: &str, client: &str, phase: &str, params: &Value, rest: Value) -> Value {
    let mut run = json!({
        "target": target, "client": client, "repeat": 1, "phase": phase, "valid": true,
        "counts": { "sent": 20_000, "received": 20_000 }, "params": params
    });
    if let (Some(run), Value::Object(rest)) = (run.as_object_mut(), rest) {
        run.extend(rest);
    }
    run
}

/// Returns percentiles above a median, without a histogram.
fn hop(p50_ns: u64) -> Value {
    json!({
        "count": 20_000, "mean_ns": p50_ns as f64, "p50_ns": p50_ns, "p75_ns": p50_ns + p50_ns / 4,
        "p90_ns": p50_ns + p50_ns / 2, "p99_ns": 3 * p50_ns, "p999_ns": 9 * p50_ns, "p9999_ns": null,
        "max_ns": 20 * p50_ns, "worst_ns": [18 * p50_ns, 19 * p50_ns, 20 * p50_ns], "negative": 0
    })
}

fn pubsub() -> Vec<Value> {
    let mut runs = Vec::new();
    for (target, p50_ns) in [("shm://", 400), ("redis://127.0.0.1:6379?streams", 90_000)] {
        let params = json!({ "size_bytes": 1024, "readers": 1, "wait": "block" });
        let idle = json!({ "size_bytes": 1024, "readers": 1, "wait": "block", "idle_ns": 1_000_000 });
        for (phase, params) in [("cold", &params), ("idle", &idle), ("steady", &params)] {
            let hops = json!({ "hops": { "one_way": hop(p50_ns), "publish": hop(p50_ns / 2) } });
            runs.push(run(target, "rust", phase, params, hops));
        }
        runs.push(run(target, "rust", "steady", &params, json!({ "hops": { "round_trip": hop(2 * p50_ns) } })));
    }
    runs
}

fn queue() -> Vec<Value> {
    let t_ns: Vec<u64> = (1..=20).map(|step| step * 100_000_000).collect();
    let series = |name: &str, most: u64| {
        let value: Vec<u64> = (1..=20u64).map(|step| most * step.min(20 - step) / 10).collect();
        json!({ "name": name, "t_ns": t_ns, "value": value })
    };
    let rest = json!({
        "series": [
            series("pusher_rate_per_s", 11_041), series("puller1_rate_per_s", 2_666), series("backlog", 40_000)
        ],
        "actors": [
            { "name": "pusher", "role": "pusher", "count": 20_000, "rate_per_s": 11_041.0 },
            { "name": "puller1", "role": "puller", "count": 20_000, "rate_per_s": 2_666.0 }
        ]
    });
    vec![run("redis://127.0.0.1:6379", "redis-py", "steady", &json!({ "pullers": 1, "pull": 1 }), rest)]
}

fn pipeline() -> Vec<Value> {
    let mut runs = Vec::new();
    let lines = [("PING", "rust", 20_000.0), ("PING", "redis-py", 9_000.0), ("SET", "rust", 18_000.0)];
    for (command, client, one) in lines {
        for (depth, gain) in [(1u32, 1.0), (10, 8.0), (100, 30.0), (1_000, 32.0)] {
            let params = json!({ "command": command, "depth": depth, "connections": 1 });
            let rest = json!({
                "throughput_per_s": one * gain,
                "figures": { "knee_depth": 100.0, "syscalls_per_command": 2.0 / f64::from(depth) }
            });
            runs.push(run("redis://127.0.0.1:6379", client, "steady", &params, rest));
        }
    }
    runs
}

fn clients() -> Vec<Value> {
    let mut runs = Vec::new();
    for (client, workers, rate) in [("redis-py-pipeline-pure", 1, 7_000.0), ("redis-py-asyncio", 100, 13_000.0)] {
        for rtt_ms in [0.0, 0.3, 1.0] {
            let params = json!({ "transport": "tcp", "rtt_ms": rtt_ms, "workers": workers });
            let rate = rate / (1.0 + rtt_ms);
            let figures = json!({ "connect_ns": 3e6, "throughput_with_connect_per_s": 0.9 * rate });
            let rest = json!({ "throughput_per_s": rate, "figures": figures });
            runs.push(run("redis://", client, "steady", &params, rest));
        }
    }
    runs
}

fn explained() -> Vec<Value> {
    let rest = json!({
        "hops": { "one_way": hop(110_000) },
        "stages": [
            { "name": "encode", "p50_ns": 11_000.0, "kind": "measured" },
            { "name": "kernel_and_wake_up", "p50_ns": 91_000.0, "kind": "bounded" },
            { "name": "unexplained", "p50_ns": 5_000.0, "kind": "unexplained" }
        ]
    });
    vec![run("redis://127.0.0.1:6379", "redis-py", "steady", &json!({ "size_bytes": 17 }), rest)]
}
