//! The counters of an OMS in Prometheus's text format, version 0.0.4.

use std::fmt::{Display, Write};

use tickpath_market::ExecType;
use tickpath_oms_core::Denial;
use tickpath_oms_runtime::meter::{HOPS, HopHistogram, MeterReading, bucket_from};
use tickpath_oms_text::code_name;

/// The media type of [`render`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric: its name, its type, and its description.
pub type Metric = (&'static str, &'static str, &'static str);

/// All metrics, in the order of the output. Counters restart at zero with each start of the OMS.
pub const METRICS: &[Metric] = &[
    ("tickpath_oms_up", "gauge", "1 if the OMS runs"),
    ("tickpath_oms_epoch", "gauge", "Identifies this start of the OMS"),
    (
        "tickpath_oms_hop_seconds",
        "histogram",
        "Hops of requests: T0 sent, T1 received, T2 released; handed to the thread of a line",
    ),
    ("tickpath_oms_requests_total", "counter", "Requests that were released or denied"),
    ("tickpath_oms_denials_total", "counter", "Denials sent to clients, by reason"),
    ("tickpath_oms_reports_total", "counter", "Reports sent to clients, by type"),
    ("tickpath_oms_notices_total", "counter", "Notices for the operator, by kind"),
    ("tickpath_oms_orders", "gauge", "Orders of the journal by state"),
    ("tickpath_oms_denied_requests", "gauge", "Requests of the journal that were denied"),
    ("tickpath_oms_odd_inputs", "gauge", "Contradictory and duplicate inputs of the journal, by kind"),
    ("tickpath_oms_refused_messages_total", "counter", "Invalid messages, dropped before the journal"),
    ("tickpath_oms_held_outputs", "gauge", "Outputs that wait for the disk or for their venue"),
    ("tickpath_oms_sessions", "gauge", "Sessions that are logged in"),
    ("tickpath_oms_journal_records", "gauge", "Records of the journal"),
    ("tickpath_oms_journal_bytes", "gauge", "Bytes of the day's log of the journal"),
    ("tickpath_oms_disk_failed", "gauge", "1 if the journal's disk has failed"),
    ("tickpath_oms_venue_up", "gauge", "1 if a venue takes requests"),
    ("tickpath_oms_venue_waiting", "gauge", "Requests that wait for a venue"),
];

const STATES: [&str; 7] = ["queued", "sending", "working", "done", "rejected", "withdrawn", "unknown"];
const ODD: [&str; 6] = ["duplicates", "strangers", "mismatched", "contradictions", "malformed", "ignored"];

/// The powers of two of nanoseconds that a hop's buckets cover, in four steps each: from 64 ns to 2 s.
const POWERS: std::ops::Range<usize> = 6..31;
/// Buckets of the counters that form a bucket here.
const JOINED: usize = 2;

/// Renders the metrics; without a reading, reports that there is no OMS.
pub fn render(reading: Option<&MeterReading>) -> String {
    let mut text = PrometheusText(String::with_capacity(32 << 10));
    let is_up = reading.is_some_and(|reading| reading.pid.is_some());
    for metric in METRICS {
        match reading {
            _ if metric.0 == "tickpath_oms_up" => {
                text.head(metric);
                text.sample(metric.0, "", u8::from(is_up));
            }
            Some(reading) => render_metric(&mut text, metric, reading),
            None => {}
        }
    }
    text.0
}

fn render_metric(text: &mut PrometheusText, metric: &Metric, reading: &MeterReading) {
    let name = metric.0;
    text.head(metric);
    let level = |name: &str| reading.gauge(name);
    match name {
        "tickpath_oms_epoch" => text.sample(name, "", reading.epoch),
        "tickpath_oms_hop_seconds" => {
            HOPS.iter().zip(&reading.hops).for_each(|(hop, of)| text.histogram(name, hop, of))
        }
        "tickpath_oms_requests_total" => text.sample(name, "", reading.requests()),
        "tickpath_oms_denials_total" => {
            text.samples(name, "reason", reading.denials.iter().map(|d| (denial(d.0), d.1)))
        }
        "tickpath_oms_reports_total" => text.samples(name, "type", reading.reports.iter().map(|r| (report(r.0), r.1))),
        "tickpath_oms_notices_total" => text.samples(name, "kind", reading.notices.iter().cloned()),
        "tickpath_oms_orders" => text.samples(name, "state", STATES.iter().map(|state| (state, level(state)))),
        "tickpath_oms_odd_inputs" => text.samples(name, "kind", ODD.iter().map(|kind| (kind, level(kind)))),
        "tickpath_oms_denied_requests" => text.sample(name, "", level("denied_requests")),
        "tickpath_oms_refused_messages_total" => text.sample(name, "", level("refused")),
        "tickpath_oms_held_outputs" => text.sample(name, "", level("held")),
        "tickpath_oms_sessions" => text.sample(name, "", level("sessions")),
        "tickpath_oms_journal_records" => text.sample(name, "", level("journal_records")),
        "tickpath_oms_journal_bytes" => text.sample(name, "", level("journal_bytes")),
        "tickpath_oms_disk_failed" => text.sample(name, "", level("disk_failed")),
        "tickpath_oms_venue_up" => {
            text.samples(name, "venue", reading.venues.iter().map(|line| (line.venue, u64::from(line.is_up))));
        }
        _ => text.samples(name, "venue", reading.venues.iter().map(|line| (line.venue, line.waiting))),
    }
}

struct PrometheusText(String);

impl PrometheusText {
    fn head(&mut self, (name, kind, help): &Metric) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        self.line(format_args!("{name}{labels} {value}"));
    }

    fn samples(&mut self, name: &str, label: &str, values: impl Iterator<Item = (impl Display, u64)>) {
        values.for_each(|(of, value)| self.sample(name, &format!("{{{label}=\"{of}\"}}"), value));
    }

    /// Writes a hop's buckets. Prometheus's bounds are inclusive, so each is off by a nanosecond.
    fn histogram(&mut self, name: &str, hop: &str, of: &HopHistogram) {
        let first = POWERS.start * 8 - 16;
        for end in (first..=POWERS.end * 8 - 16).step_by(JOINED) {
            let below: u64 = of.buckets.iter().take(end).sum();
            let bound = bucket_from(end) as f64 / 1e9;
            self.sample(&format!("{name}_bucket"), &format!("{{hop=\"{hop}\",le=\"{bound}\"}}"), below);
        }
        self.sample(&format!("{name}_bucket"), &format!("{{hop=\"{hop}\",le=\"+Inf\"}}"), of.count());
        self.sample(&format!("{name}_sum"), &format!("{{hop=\"{hop}\"}}"), of.sum_ns as f64 / 1e9);
        self.sample(&format!("{name}_count"), &format!("{{hop=\"{hop}\"}}"), of.count());
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }
}

pub fn denial(code: u16) -> String {
    Denial::from_code(code).map_or_else(|| "other".to_owned(), code_name)
}

fn report(code: u8) -> String {
    ExecType::from_code(code).map_or_else(|| "other".to_owned(), code_name)
}
