//! The text that Prometheus reads, and the dashboard that reads Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_oms_runtime::meter::{BUCKETS, HOPS, HopHistogram, MeterReading, VenueReading, bucket_from};
use tickpath_oms_web::{METRICS, render};

fn reading() -> MeterReading {
    let hop = |at: usize| {
        let mut hop = HopHistogram { buckets: vec![0; BUCKETS], sum_ns: 1_500 };
        (hop.buckets[at], hop.buckets[at + 40], hop.buckets[BUCKETS - 1]) = (3, 2, 1);
        hop
    };
    MeterReading {
        epoch: 7,
        pid: Some(1),
        hops: HOPS.iter().enumerate().map(|(at, _)| hop(at * 30)).collect(),
        denials: vec![(4, 2), (26, 1), (63, 5)],
        reports: vec![(15, 9), (31, 1)],
        notices: vec![("venue_down".to_owned(), 1)],
        gauges: BTreeMap::from([("working".to_owned(), 3), ("disk_failed".to_owned(), 1)]),
        venues: vec![VenueReading { venue: 1, is_up: true, waiting: 4 }],
    }
}

/// Parses samples by their name with labels; an invalid line fails the test.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        let bare = name.split('{').next().expect("a split has a first part");
        assert!(bare.starts_with("tickpath_oms_") && bare.chars().all(is_name), "a bad name: {line}");
        assert!(!name.contains('{') || name.ends_with("\"}"), "bad labels: {line}");
        let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
    }
    samples
}

#[test]
fn every_metric_has_its_type_and_help() {
    let text = render(Some(&reading()));
    for (name, kind, help) in METRICS {
        assert!(text.contains(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name}")), "{name} has no samples");
        assert_eq!(*kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
    }
    let sentence = samples(&text);
    for (name, value) in [
        ("tickpath_oms_up", 1.0),
        ("tickpath_oms_epoch", 7.0),
        ("tickpath_oms_requests_total", 6.0),
        ("tickpath_oms_denials_total{reason=\"duplicate_client_order_id\"}", 2.0),
        ("tickpath_oms_denials_total{reason=\"price_collar\"}", 1.0),
        ("tickpath_oms_denials_total{reason=\"other\"}", 5.0),
        ("tickpath_oms_reports_total{type=\"trade\"}", 9.0),
        ("tickpath_oms_notices_total{kind=\"venue_down\"}", 1.0),
        ("tickpath_oms_orders{state=\"working\"}", 3.0),
        ("tickpath_oms_orders{state=\"unknown\"}", 0.0),
        ("tickpath_oms_disk_failed", 1.0),
        ("tickpath_oms_venue_waiting{venue=\"1\"}", 4.0),
    ] {
        assert_eq!(sentence.get(name), Some(&value), "{name}");
    }
    assert_eq!(samples(&render(None)), BTreeMap::from([("tickpath_oms_up".to_owned(), 0.0)]), "of no OMS");
    let dead = MeterReading { pid: None, ..reading() };
    assert_eq!(samples(&render(Some(&dead))).get("tickpath_oms_up"), Some(&0.0), "its last figures");
}

#[test]
fn a_histogram_rises_to_its_count() {
    let (reading, sentence) = (reading(), samples(&render(Some(&reading()))));
    for (hop, of) in HOPS.iter().zip(&reading.hops) {
        let of_hop = |name: &str| format!("tickpath_oms_hop_seconds_{name}{{hop=\"{hop}\"");
        let mut bounds: Vec<(f64, f64)> = sentence
            .iter()
            .filter_map(|(name, below)| {
                let bound = name.strip_prefix(&format!("{},le=\"", of_hop("bucket")))?.strip_suffix("\"}")?;
                Some((bound.replace("+Inf", "inf").parse().expect("a bound is a number"), *below))
            })
            .collect();
        bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(bounds.len() > 50 && bounds[0].0 == 64e-9 && bounds.is_sorted_by(|a, b| a.1 <= b.1), "{bounds:?}");
        let (last, all) = bounds[bounds.len() - 1];
        assert_eq!((last, all), (f64::INFINITY, 6.0));
        assert_eq!(sentence.get(&format!("{}}}", of_hop("count"))), Some(&6.0));
        assert_eq!(sentence.get(&format!("{}}}", of_hop("sum"))), Some(&1.5e-6));
        for (bound, below) in &bounds[..bounds.len() - 1] {
            let ends = (bound * 1e9).round() as u64;
            let truth: u64 = (0..BUCKETS).filter(|at| bucket_from(at + 1) <= ends).map(|at| of.buckets[at]).sum();
            assert_eq!(*below, truth as f64, "{hop} below {ends} ns");
        }
    }
}

#[test]
fn the_dashboard_uses_existing_metrics() {
    let text = include_str!("../../../../docs/grafana/tickpath-oms.json");
    serde_json::from_str::<serde_json::Value>(text).expect("the dashboard is JSON");
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let asked: BTreeSet<&str> = text
        .match_indices("tickpath_oms_")
        .map(|(at, _)| text[at..].split(|c| !is_name(c)).next().expect("a split has a first part"))
        .collect();
    let known = |name: &str| {
        METRICS.iter().any(|(metric, kind, _)| match *kind {
            "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{metric}{end}")),
            _ => name == *metric,
        })
    };
    let unknown: Vec<&&str> = asked.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty() && asked.len() >= 10, "no such metrics: {unknown:?}, of {asked:?}");
}
