//! The result file and its renderings: for any content a rendering is complete and harmless, and adds nothing.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tickpath_lab_report::{self as report, TerminalOptions};
use tickpath_lab_result::{
    COUNTS, CheckError, Comparison, FIGURES, HOPS, Hop, PERCENTILES, Percentile, ResultFile, Run, Series, UNITS,
};

use crate::example::{HOSTILE, example, histograms, hop, minimal, workloads};

const DOCS: &str = include_str!("../../../../docs/results.md");
const SCHEMA: &str = include_str!("../../../../docs/result.schema.json");

type Rendering = fn(&ResultFile) -> String;

const RENDERINGS: [(&str, Rendering); 7] = [
    ("terminal", |result| report::terminal(result, &TerminalOptions { width: 120, colour: false, all: true })),
    ("coloured", |result| report::terminal(result, &TerminalOptions { width: 80, colour: true, all: true })),
    ("markdown", report::markdown),
    ("csv", report::csv),
    ("json", report::json),
    ("svg", report::svg),
    ("html", report::html),
];

fn results() -> [(&'static str, ResultFile); 4] {
    let empty = ResultFile::new("host", "", "");
    [("example", example()), ("workloads", workloads()), ("minimal", minimal()), ("empty", empty)]
}

fn hops(result: &ResultFile) -> Vec<&Hop> {
    result.runs.iter().flat_map(|run| run.hops.values()).collect()
}

#[test]
fn durations_cannot_be_misread() {
    for (ns, text) in [
        (0.0, "0 ns"),
        (61.6, "61.6 ns"),
        (187.0, "187 ns"),
        (999.6, "1 µs"),
        (6_020.0, "6.02 µs"),
        (13_483_000.0, "13.5 ms"),
        (999_999_999.0, "1 s"),
        (1.2e9, "1.2 s"),
        (-5.0, "−5 ns"),
        (f64::NAN, "–"),
        (f64::INFINITY, "–"),
    ] {
        assert_eq!(report::duration(ns), text, "{ns}");
    }
}

#[test]
fn durations_are_right_to_three_digits() {
    for step in 0..1_300 {
        let ns = 10f64.powf(f64::from(step) / 100.0);
        let text = report::duration(ns);
        let (number, unit) = text.split_once(' ').expect("a number and a unit");
        let scale = match unit {
            "ns" => 1.0,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            other => panic!("{other} is no unit of time"),
        };
        let again = number.parse::<f64>().expect("a number") * scale;
        assert!((again / ns - 1.0).abs() <= 0.005_001, "{ns} became {text}");
    }
}

#[test]
fn counts_and_figures_have_groups_and_units() {
    assert_eq!(report::count(100_000).replace('\u{202f}', " "), "100 000");
    assert_eq!(report::count(999), "999");
    for (name, value, text) in [
        ("clock_cost_ns", 9.5, "9.5 ns"),
        ("bytes_per_order", 1_600.0, "1.6 kB"),
        ("steal_percent", 0.4, "0.4 %"),
        ("one_way_over_transfer_ratio", 1.314, "1.31×"),
        ("replay_inputs_per_s", 260_000.0, "260 000/s"),
        ("orders_sending", 12_345.0, "12 345"),
        ("syscalls_per_command", 2.0, "2"),
    ] {
        assert_eq!(report::figure(name, value).replace('\u{202f}', " "), text, "{name}");
    }
}

#[test]
fn every_rendering_is_pure_and_harmless() {
    for (result_name, result) in results() {
        for (name, render) in RENDERINGS {
            let text = render(&result);
            assert!(!text.trim().is_empty(), "{name} of {result_name} is empty");
            assert_eq!(text, render(&result), "{name} of {result_name} changes from call to call");
            let steers = |character: char| character.is_control() && character != '\n';
            if !["coloured", "csv"].contains(&name) {
                assert!(!text.contains(steers), "{name} of {result_name} has a control character");
            }
            // Four leading spaces make a line of Markdown code, which needs no escaping.
            let mut marked = text.lines().filter(|line| name != "markdown" || !line.starts_with("    "));
            if ["markdown", "svg", "html"].contains(&name) {
                assert!(!marked.any(|line| line.contains("<script")), "{name} of {result_name} lets markup through");
            }
        }
    }
}

#[test]
fn pages_and_pictures_are_well_formed() {
    for (name, result) in results() {
        check_well_formed(&format!("html of {name}"), &report::html(&result));
        check_well_formed(&format!("svg of {name}"), &report::svg(&result));
    }
}

#[test]
fn the_page_needs_nothing_beside_itself() {
    let page = report::html(&example());
    for outside in ["http", "src=", "@import", "url(", "<link", "<script", "<iframe"] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    for needed in ["width=device-width", "prefers-color-scheme: dark", "@media print", "overflow-x: auto"] {
        assert!(page.contains(needed), "the page lacks {needed}");
    }
}

#[test]
fn the_page_has_only_sections_with_content() {
    let always = ["The machine", "How to read it", "The command"];
    let of_runs = ["Where the time goes", "Over time", "Comparisons", "The spread", "Every run"];
    let of_workloads = ["Cold, idle, steady", "Pipeline depth", "Clients"];
    for (name, result, held) in [
        ("empty", ResultFile::new("host", "", ""), vec![]),
        ("example", example(), of_runs.to_vec()),
        ("workloads", workloads(), [of_runs.as_slice(), of_workloads.as_slice()].concat()),
    ] {
        let page = report::html(&result);
        for heading in always.into_iter().chain(of_runs).chain(of_workloads) {
            let is_there = page.contains(&format!("<h2>{heading}</h2>"));
            let is_held = always.contains(&heading) || held.contains(&heading);
            assert_eq!(is_there, is_held, "{name}: {heading}");
        }
        for piece in page.split("href=\"#").skip(1) {
            let place = piece.split('"').next().expect("a link ends");
            assert!(page.contains(&format!("<section id=\"{place}\">")), "{name}: nothing is at {place}");
        }
    }
}

#[test]
fn sections_follow_the_content_of_runs_as_documented() {
    let mut all = workloads();
    for rate in [10_000.0, 20_000.0] {
        let mut run = Run { target: "shm://".to_owned(), repeat: 1, ..Run::default() };
        run.params.set("slo", "one_way.p99 < 50us");
        run.params.set("rate_per_s", rate);
        run.hops.insert("one_way".to_owned(), hop(2_000, rate as u64, 3));
        all.runs.push(run);
    }
    for (section, sentence) in documented("Sections") {
        let named: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
        // Runs with only these names, or with all but these.
        let is_there = |kept: bool| {
            let mut result = all.clone();
            for run in &mut result.runs {
                run.params.0.retain(|name, _| named.contains(&name.as_str()) == kept);
                run.figures.retain(|name, _| named.contains(&name.as_str()) == kept);
                run.hops.retain(|name, _| named.contains(&name.as_str()) == kept);
            }
            report::html(&result).contains(&format!("<h2>{section}</h2>"))
        };
        assert_eq!((is_there(true), is_there(false)), (true, false), "{section}: {named:?}");
    }
}

#[test]
fn charts_show_all_that_the_file_holds() {
    let result = workloads();
    let page = report::html(&result);
    let check = |mark: &str, expected: usize| assert_eq!(page.matches(mark).count(), expected, "{mark}");
    // Repeats of a run share a waterfall: a row for each of three stages, the sum, the whole, and the heading.
    check("<table class=\"waterfall\">", 2);
    check("class=\"flow\"", 2 * (3 + 2 + 1));
    check("class=\"bar bounded\"", 1);
    check("class=\"bar unexplained\"", 1);
    // Two targets, cold, after two idle periods, and steady; a round trip has no publish call.
    check("<line class=\"mark\"", 2 * (4 + 1) + 2 * 4);
    let queues = result.runs.iter().filter(|run| run.series.iter().any(|series| series.name == "backlog")).count();
    let actors: usize = result.runs.iter().map(|run| run.actors.len()).sum();
    check("<path class=\"area\"", queues);
    check("<td>pusher</td>", queues);
    check("<td>puller</td>", actors - queues);
    // Two commands over two clients, and two clients over three routes.
    check("<circle class=\"knee", 4);
    check("<div class=\"beside\">", 6);
    check("<line class=\"interval\"", 3 * result.comparisons.len());
    let runs = result.runs.len();
    assert!(page.matches("<details").count() >= runs, "each of {runs} runs has its fold");
}

#[test]
fn drawings_have_alternative_text() {
    for (name, result) in results() {
        let page = report::html(&result);
        for drawing in page.split("<svg").skip(1) {
            let head = drawing.split('>').next().unwrap_or_default();
            let is_picture = head.contains("role=\"img\"");
            let is_told = drawing.contains("<title>") && drawing.contains("<desc>");
            assert!(!is_picture || is_told, "{name}: <svg{head}> has no words");
            // Any other drawing is in a cell or a legend, beside its figure.
            let is_small = head.contains("class=\"cell\"") || head.contains("class=\"key\"");
            assert!(is_picture || is_small, "{name}: <svg{head}> is neither a picture nor small");
            let inside = drawing.split("</svg>").next().unwrap_or_default();
            let is_placed = !["\"NaN", " NaN", ",NaN", "\"inf", "\"-inf"].iter().any(|bad| inside.contains(bad));
            assert!(is_placed, "{name}: something stands nowhere in <svg{head}>");
        }
    }
}

#[test]
fn many_runs_are_summarised_without_charts() {
    for (name, render) in RENDERINGS.into_iter().filter(|(name, _)| ["terminal", "markdown"].contains(name)) {
        let text = unfolded(&render(&workloads()));
        for piece in ["cold, idle, steady: 99%", "pipeline depth", "clients", "redis-py-asyncio ×100 tcp 250 µs"] {
            assert!(text.contains(piece), "{name} lacks '{piece}'");
        }
        let other = unfolded(&render(&example()));
        assert!(!other.contains("pipeline depth"), "{name} sums up what is not there");
    }
}

#[test]
fn pictures_have_a_line_a_run_and_hop() {
    let result = example();
    let picture = report::svg(&result);
    let lines: usize = hops(&result).iter().map(|hop| 1 + usize::from(hop.unstalled.is_some())).sum();
    assert_eq!(picture.matches("<polyline").count(), lines);
    assert_eq!(picture.replace("http://www.w3.org/2000/svg", "").matches("http").count(), 0);
    assert!(report::svg(&ResultFile::new("host", "", "")).contains("too few samples"));
}

#[test]
fn tables_for_programs_have_a_row_a_run_and_hop() {
    for (name, result) in results() {
        let rows = parsed_csv(&report::csv(&result));
        let header = &rows[0];
        assert_eq!(rows.len(), 1 + hops(&result).len(), "{name}");
        assert_eq!(header.iter().collect::<BTreeSet<_>>().len(), header.len(), "{name} has a column twice");
        let column = |wanted: &str| header.iter().position(|name| name == wanted).expect("the column is there");
        let ordered = result.runs.iter().flat_map(Run::hops_in_path_order);
        for (row, (hop_name, hop)) in rows[1..].iter().zip(ordered) {
            assert_eq!(row.len(), header.len(), "{name}: {row:?}");
            assert_eq!(row[column("hop")], hop_name, "{name}");
            for (percentile, value) in PERCENTILES.iter().zip(hop.percentiles()) {
                assert_eq!(row[column(percentile.key)], value.map(|ns| ns.to_string()).unwrap_or_default(), "{name}");
            }
        }
    }
}

#[test]
fn order_groups_print_in_the_known_form() {
    let text = report::terminal(&example(), &TerminalOptions { width: 120, colour: false, all: true })
        .replace('\u{202f}', " ");
    for piece in [
        "g6  100 000 orders  split  busy",
        "50%",
        "99.99%",
        "worst three",
        "T1-T0",
        "T2-T1",
        "T0-",
        "T1-",
        "T2-",
        "order_ack",
        "sending 100 000  queued 0  rejected 0",
        "last order T0 90 ms T1 91 ms T2 92 ms",
        "first T0 to last T2 92 ms",
        "last T2 to last report 4 ms",
        "memory before 5 MB after 25 MB peak 26 MB",
    ] {
        assert!(unfolded(&text).contains(&unfolded(piece)), "no '{piece}' in\n{text}");
    }
    let block = |group: &str| {
        let lines = text.lines().skip_while(|line| !line.starts_with(group));
        lines.skip(2).take(6).collect::<String>()
    };
    assert!(block("g1").contains('*'), "ten orders carry no 99th percentile, so it is the nearest rank");
    assert!(!block("g6").contains('*'), "a hundred thousand orders carry every percentile");
}

#[test]
fn missing_percentiles_state_the_samples_they_need() {
    let mut result = ResultFile::new("pubsub", "", "");
    result.runs = vec![Run { repeat: 1, ..Run::default() }];
    for (samples, missing) in [(19, true), (100_000, false)] {
        result.runs[0].hops.insert("one_way".to_owned(), hop(samples, 500, samples));
        for (name, render) in RENDERINGS.into_iter().filter(|(name, _)| ["terminal", "markdown"].contains(name)) {
            let is_noted = unfolded(&render(&result)).contains("99.9% needs");
            assert_eq!(is_noted, missing, "{name} with {samples} samples");
        }
    }
}

#[test]
fn the_path_shows_the_stations_that_were_measured() {
    let result = example();
    for width in [20, 60, 100, 240] {
        let picture = report::path_picture(&result.runs[0], width);
        let boxes: Vec<&str> = picture.lines().filter(|line| line.contains('│')).collect();
        let insides = boxes.iter().flat_map(|line| line.split('│').skip(1).step_by(2));
        let names: Vec<&str> = insides.map(str::trim).collect();
        assert_eq!(names, ["tick", "seen", "sent", "received", "released"], "at {width} columns:\n{picture}");
        assert!(picture.contains("p50 42 ns"), "the stage between seen and sent is there:\n{picture}");
        if width >= 60 {
            let mut drawn = picture.lines().filter(|line| line.contains(['│', '┌', '└']));
            assert_eq!(drawn.find(|line| line.chars().count() > width), None, "at {width} columns");
        }
    }
    assert_eq!(report::path_picture(&Run::default(), 100), "");
    let mut run = result.runs[0].clone();
    run.params.set("threads", "feed and venue in turn on one thread");
    assert!(report::path_picture(&run, 100).ends_with("Threads: feed and venue in turn on one thread.\n"));
}

#[test]
fn a_hop_keeps_its_distribution() {
    for samples in [0, 1, 2, 19, 20, 99, 100, 9_999, 10_000, 100_000] {
        let (raw, unstalled, worst) = histograms(samples, 1_000, samples);
        let hop = Hop::from_histogram(&raw, Some(&unstalled), 3, worst);
        assert_eq!(hop.histogram().expect("it decodes"), raw, "{samples} samples");
        assert_eq!((hop.count, hop.negative), (samples, 3));
        assert_eq!(hop.max_ns, (samples > 0).then_some(worst[0]), "{samples} samples");
        assert!(hop.worst_ns.is_sorted());
        let sides = [(hop.count, hop.percentiles()), (unstalled.len(), hop.unstalled.clone().unwrap().percentiles())];
        for (count, percentiles) in sides {
            for (Percentile { key, samples: needed, .. }, value) in PERCENTILES.iter().zip(percentiles) {
                assert_eq!(value.is_some(), count >= *needed, "{key} of {count} samples");
                assert!(value <= hop.max_ns, "{key} of {count} samples is over the maximum");
            }
            assert!(percentiles.into_iter().flatten().is_sorted());
        }
        assert_eq!(hop.host_stall_share_p999.is_some(), samples >= 10_000);
        assert!(hop.host_stall_share_p999.is_none_or(|share| share > 0.9), "the example's tail is all stalls");
    }
}

#[test]
fn a_damaged_histogram_is_an_error() {
    let good = hop(100, 1_000, 1);
    let text = good.hdr.clone().expect("the histogram is kept");
    for (name, hdr) in [
        ("no text", None),
        ("no base64", Some("***".to_owned())),
        ("empty", Some(String::new())),
        ("cut short", Some(text[..text.len() / 2 / 4 * 4].to_owned())),
        ("of nothing", Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned())),
        ("of another hop", hop(99, 1_000, 1).hdr),
    ] {
        let damaged = Hop { hdr, ..good.clone() };
        assert!(damaged.histogram().is_err(), "{name}");
        assert_eq!(damaged.nearest_ranks(), None, "{name}");
    }
}

#[test]
fn a_saved_result_loads_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, result) in results() {
        let path = folder.path().join(format!("{name}.json"));
        for _ in 0..2 {
            result.save(&path).unwrap();
            assert_eq!(ResultFile::load(&path).unwrap(), result, "{name}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), results().len(), "nothing else is left behind");
    let nowhere = folder.path().join("none/result.json");
    assert!(example().save(&nowhere).unwrap_err().to_string().contains("none/result.json"));
}

#[test]
fn bad_files_are_named_with_their_fault() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bad.json");
    let check = |text: &[u8], fault: &str| {
        fs::write(&path, text).unwrap();
        let error = ResultFile::load(&path).unwrap_err().to_string();
        assert!(error.contains(fault) && error.contains("bad.json"), "'{error}' should say '{fault}'");
    };
    let whole = report::json(&minimal());
    for cut in (0..whole.trim_end().len()).step_by(7) {
        check(&whole.as_bytes()[..cut], "cut short");
    }
    check(b"latency: low", "not JSON");
    check(b"\xff\xfe", "not JSON");
    check(b"[1, 2]", "without a 'schema'");
    check(b"{\"schema\": 1}", "without a 'schema'");
    check(br#"{"schema": "tickpath.result/2"}"#, "schema tickpath.result/2; this tickpath reads tickpath.result/1");
    check(b"{\"schema\": \"tickpath.result/1\"}", "breaks tickpath.result/1");
    assert!(ResultFile::load(folder.path().join("none.json")).unwrap_err().to_string().contains("none.json"));
}

#[test]
fn the_check_refuses_names_outside_the_contract() {
    fn check(change: fn(&mut ResultFile), refused: fn(&CheckError) -> bool) {
        let mut result = example();
        change(&mut result);
        let error = result.check().unwrap_err();
        assert!(refused(&error), "{error}");
    }
    assert_eq!(example().check(), Ok(()));
    check(|r| r.schema.push('0'), |e| matches!(e, CheckError::Schema(_)));
    check(|r| _ = r.runs[0].hops.insert("t9_t0".into(), Hop::default()), |e| matches!(e, CheckError::Hop { .. }));
    check(|r| _ = r.runs[0].figures.insert("speed".into(), 1.0), |e| matches!(e, CheckError::Figure { .. }));
    check(
        |r| _ = r.runs[0].figures.insert("steal_percent".into(), f64::NAN),
        |e| matches!(e, CheckError::NotFinite { .. }),
    );
    check(
        |r| r.runs[0].hops.get_mut("t0_t1").unwrap().count = 99_999,
        |e| matches!(e, CheckError::TooFewSamples { key: "p9999_ns", .. }),
    );
    check(|r| r.runs[0].series[0].t_ns.push(5), |e| matches!(e, CheckError::Series { .. }));
    check(
        |r| r.runs[0].series.push(Series { name: "x".into(), t_ns: vec![0], value: vec![f64::INFINITY] }),
        |e| matches!(e, CheckError::Series { .. }),
    );
}

#[test]
fn the_page_of_names_matches_the_tables() {
    for (heading, table) in [("Hops", HOPS), ("Figures", FIGURES), ("Counts", COUNTS), ("Units", UNITS)] {
        let own = Some(tickpath_lab_result::OWN_HOP).filter(|_| heading == "Hops");
        let listed: Vec<(&str, &str)> = table.iter().copied().chain(own).collect();
        assert_eq!(documented(heading), listed, "docs/results.md, section {heading}");
        let names: BTreeSet<&str> = listed.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), listed.len(), "{heading} has a name twice");
    }
    let counted = serde_json::to_value(example().runs[0].counts).unwrap();
    let counts: BTreeSet<&str> = counted.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(counts, COUNTS.iter().map(|(name, _)| *name).collect());
}

#[test]
fn the_schema_holds_every_result() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults = |value: &Value| validator.iter_errors(value).map(|error| error.to_string()).collect::<Vec<_>>();
    for (name, result) in [("example", example()), ("empty", ResultFile::new("host", "", ""))] {
        assert_eq!(faults(&serde_json::to_value(&result).unwrap()), Vec::<String>::new(), "{name}");
    }
    for (listed, place) in [(HOPS, "/hops/propertyNames/anyOf/0/enum"), (FIGURES, "/figures/propertyNames/enum")] {
        let wanted: Vec<&str> = listed.iter().map(|(name, _)| *name).collect();
        let names = schema["$defs"]["run"]["properties"].pointer(place);
        assert_eq!(names, Some(&json!(wanted)), "docs/result.schema.json, {place}");
    }
}

#[test]
fn the_schema_refuses_fields_outside_the_contract() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good = serde_json::to_value(example()).unwrap();
    for (place, value) in [
        ("/schema", json!("tickpath.result/2")),
        ("/host/cpu", json!(1)),
        ("/runs/0/phase", json!("warm")),
        ("/runs/0/counts/sent", json!(-1)),
        ("/runs/0/figures", json!({ "speed": 1 })),
        ("/runs/0/hops", json!({ "t9_t0": {} })),
        ("/runs/0/hops/t0_t1/p50_ns", json!("fast")),
        ("/runs/0/hops/t0_t1/worst_ns", json!([1, 2])),
        ("/runs/0/hops/t0_t1/unstalled", json!({ "p50": 1 })),
        ("/runs/0/stages/0/kind", json!("guessed")),
        ("/comparisons/0", json!({ "name": "a" })),
        ("/comparisons/0/ratio", json!("twice")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("the example has it") = value;
        assert!(!validator.is_valid(&bad), "{place}");
    }
    let mut bad = good;
    bad["latencyMs"] = json!(1);
    assert!(!validator.is_valid(&bad), "a key that is not in the contract");
}

#[test]
fn hostile_texts_stay_texts() {
    let page = report::html(&minimal());
    assert!(page.contains("&lt;script&gt;"), "the text is still shown");
    let rows = parsed_csv(&report::csv(&minimal()));
    assert!(rows.iter().flatten().any(|cell| cell == HOSTILE), "a table for programs has the text unchanged");
}

/// Returns the rows of the table under a heading of docs/results.md: the name without its marks, and its sentence.
fn documented(heading: &str) -> Vec<(&'static str, &'static str)> {
    let section = DOCS.split("\n## ").find_map(|section| section.strip_prefix(heading)?.strip_prefix('\n'));
    let rows = section.expect("the heading is there").lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = |row: &'static str| row.strip_suffix(" |")?.split_once("` | ");
    rows.map(|row| cells(row).expect("a name and a sentence")).collect()
}

/// Checks that every element closes correctly, and that every `&` begins a known entity.
fn check_well_formed(name: &str, text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("{name}: '<{piece}' does not end"));
        let element = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}: </{closed}>");
        } else if !tag.starts_with('!') && !tag.ends_with('/') {
            open.push(element);
        }
    }
    assert!(open.is_empty(), "{name}: {open:?} stay open");
    for piece in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| piece.starts_with(entity));
        assert!(known, "{name}: '&{}'", piece.chars().take(20).collect::<String>());
    }
}

/// Parses RFC 4180 independently of the writer.
fn parsed_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => cell.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(character),
        }
    }
    rows
}

fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_ratio_sentence_states_its_level_and_bounds() {
    let plain = |name: &str, figure: &str| Comparison::new(name, figure, 285.0, 100.0, Some((2.6, 3.1)));
    let with = |level, note: Option<&str>| Comparison {
        level_percent: Some(level),
        note: note.map(str::to_owned),
        ..plain("redis_to_log_one_way", "one_way.p50_ns")
    };
    let bare = Comparison { low: None, high: None, ..plain("kafka_to_log_one_way", "one_way.p50_ns") };
    let refused = Comparison { ratio: None, low: None, high: None, ..with(0.0, Some("no ratio: their rates")) };
    for (comparison, sentence) in [
        (with(96.875, None), "Redis takes 2.85× as long as the log (2.6× to 3.1× at 96.8 %), in one_way.p50_ns."),
        (with(0.0, None), "the log (2.6× to 3.1×, too few pairs for a level), in one_way.p50_ns."),
        (with(95.0, Some("1 of 7 pairs was not valid")), "at 95 %), in one_way.p50_ns; 1 of 7 pairs was not valid."),
        (
            Comparison { pairs: Some(1), ..bare.clone() },
            "Kafka takes 2.85× as long as the log (one pair, no interval), in one_way.p50_ns.",
        ),
        (bare, "Kafka takes 2.85× as long as the log (no interval), in one_way.p50_ns."),
        (refused, "redis to log one way: – in one_way.p50_ns; no ratio: their rates."),
        (
            plain("python_redis_to_log_tick_to_order", "tick_to_order.p50_ns"),
            "Python over Redis takes 2.85× as long as the log (2.6× to 3.1×), in tick_to_order.p50_ns.",
        ),
        (
            plain("redis-py_redis_to_python_log_one_way", "one_way.p50_ns"),
            "Redis-py over Redis takes 2.85× as long as Python over the log (2.6× to 3.1×), in one_way.p50_ns.",
        ),
        (
            plain("redis_to_log_tick_to_order_block", "tick_to_order.p50_ns"),
            "Redis takes 2.85× as long as the log (2.6× to 3.1×), block, in tick_to_order.p50_ns.",
        ),
        (
            plain("log_to_nats_push_rate push 5, pullers 1", "push_rate_per_s"),
            "The log reaches 2.85× the rate of NATS (2.6× to 3.1×), push 5, pullers 1, in push_rate_per_s.",
        ),
        (
            plain("pipeline_to_one GET 100", "throughput_per_s"),
            "Pipeline reaches 2.85× the rate of one (2.6× to 3.1×), GET 100, in throughput_per_s.",
        ),
        (
            plain("gain_hiredis", "one_way.p50_ns"),
            "What there is takes 2.85× as long as with hiredis (2.6× to 3.1×), in one_way.p50_ns.",
        ),
        (plain("strange", "one_way.p50_ns"), "strange: 2.85× (2.6× to 3.1×) in one_way.p50_ns."),
    ] {
        let mut result = ResultFile::new("pubsub", "tickpath bench pubsub", "2026-01-02T03:04:05Z");
        result.comparisons.push(comparison);
        let printed = report::terminal(&result, &report::TerminalOptions { width: 400, colour: false, all: true });
        assert!(printed.contains(sentence), "'{sentence}' is missing in:\n{printed}");
    }
}
