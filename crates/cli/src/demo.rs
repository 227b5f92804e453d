//! `tickpath demo`: the path as a picture, what the trade asks for, and what a broker makes of it.

use std::path::PathBuf;

use anyhow::Context;
use tickpath_lab::demo::{self, Found, Settings};
use tickpath_report::{duration, path_picture};
use tickpath_result::{ResultFile, Run};

use crate::args::{Cpus, Output, can_be_written, is_file};
use crate::bench::measure::{lab, new_result, usage};
use crate::outcome::Outcome;
use crate::print::say;
use crate::progress::Bar;
use crate::turn::Turn;
use clap::Args;

/// What the trade asks for, from tick to order.
const TRADE_ASKS_NS: f64 = 5_000.0;

/// Columns of the picture.
const WIDTH: usize = 110;

#[derive(Debug, Args)]
pub struct Demo {
    /// A recording of LOCAL_NS JSON lines, gzip or plain; ticks are made up without one
    #[arg(long, value_name = "FILE")]
    pub ticks: Option<PathBuf>,
    /// Measure the TCP connect time to a venue too, and what share of the way each path is
    #[arg(long, value_name = "HOST:PORT")]
    pub venue: Option<String>,
    /// What made-up ticks depend on
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub cpus: Cpus,
    #[command(flatten)]
    pub output: Output,
}

pub fn run(args: &Demo) -> anyhow::Result<Outcome> {
    is_file(&args.ticks)?;
    args.output.check()?;
    let page = args.output.html.clone().unwrap_or_else(|| PathBuf::from("tickpath-demo.html"));
    can_be_written(&page)?;
    let settings =
        Settings { file: args.ticks.clone(), seed: args.seed, cpus: args.cpus.two()?, venue: args.venue.clone() };
    let turn = Turn::take(args.output.quiet)?;
    let bar = Bar::new(args.output.quiet);
    let mut result = new_result("path");
    let mut found = Found::default();
    let done = {
        let lab = lab(&bar)?;
        demo::run(&lab, &settings, &mut result, &mut found)
    };
    drop(bar);
    let is_interrupted = done.is_err() && turn.is_interrupted();
    if result.runs.is_empty() {
        return if is_interrupted { Ok(Outcome::Interrupted) } else { done.map(|()| Outcome::Good).map_err(usage) };
    }
    if let Err(error) = &done {
        let why = if is_interrupted { "interrupted".to_owned() } else { error.to_string() };
        let notes = vec![format!("it broke off: {why}")];
        let (target, client) = ("redis://".to_owned(), "rust".to_owned());
        result.runs.push(Run { target, client, repeat: 1, notes, ..Run::default() });
    }
    result.check().context("this is a defect of Tickpath")?;
    // What was measured is told even if it cannot be kept.
    say(&text(&result, &found));
    if let Some(file) = &args.output.json {
        result.save(file)?;
    }
    std::fs::write(&page, tickpath_report::html(&result))
        .with_context(|| format!("cannot write {}", page.display()))?;
    say(&format!("\nreport: {}\n", page.display()));
    if is_interrupted {
        return Ok(Outcome::Interrupted);
    }
    done.map_err(usage)?;
    // The headline is what the demo promises; a ratio leaves out pairs that broke a rule.
    let path_is_valid = path_alone(&result).is_none_or(|run| run.valid);
    Ok(if path_is_valid { Outcome::Good } else { Outcome::Invalid })
}

/// What the demo says on standard output.
fn text(result: &ResultFile, found: &Found) -> String {
    let mut out = String::new();
    if let Some(run) = path_alone(result) {
        out.push_str("\nFrom a tick to an order at a venue on this machine: a feed, a strategy with its OMS and journal, a venue\n\n");
        out.push_str(&path_picture(run, WIDTH));
        out.push_str(LEGEND);
        out.push_str(&hops(run));
        out.push_str(&against_the_trade(run));
        out.push_str(&host_share(run));
    }
    out.push_str(&redis(result, found));
    out.push_str(&venue(result));
    out.push_str(&invalid(result));
    out.push_str("\nOutside of this measurement: the network card, the network, and a real venue's own time.\n");
    for missing in &found.missing {
        out.push_str(&format!("Not run: {missing}\n"));
    }
    out
}

/// The run of the path alone.
fn path_alone(result: &ResultFile) -> Option<&Run> {
    result.runs.iter().find(|run| run.hops.contains_key("tick_to_order"))
}

/// What the words mean.
const LEGEND: &str = "
T0: the order is sent. T1: the order system (OMS) sees it. T2: risk checks and journal are done and it has gone to the
venue. p50 is the median; an arrow without p99 has a median only. busy spins, yield gives way, block sleeps.
";

/// Runs that broke a rule of honest measuring.
fn invalid(result: &ResultFile) -> String {
    let invalid: Vec<&Run> = result.runs.iter().filter(|run| !run.valid).collect();
    let Some(first) = invalid.first() else { return String::new() };
    format!(
        "\n{} of {} runs broke a rule of honest measuring and are in no ratio, for example: {}.\n",
        invalid.len(),
        result.runs.len(),
        first.notes.last().map_or("no reason was noted", String::as_str)
    )
}

/// Two digits of a ratio.
fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
}

/// A row for each hop, p50 to p99.99.
fn hops(run: &Run) -> String {
    let mut out =
        format!("\n{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}\n", "", "50%", "90%", "99%", "99.9%", "99.99%", "worst");
    for (name, hop) in run.hops_in_path_order() {
        if name.ends_with("_gap") {
            continue;
        }
        let [p50, _, p90, p99, p999, p9999] = hop.percentiles();
        let cell = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| duration(ns as f64));
        out.push_str(&format!(
            "{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>11}\n",
            name,
            cell(p50),
            cell(p90),
            cell(p99),
            cell(p999),
            cell(p9999),
            cell(hop.max_ns)
        ));
    }
    out
}

fn against_the_trade(run: &Run) -> String {
    let Some(hop) = run.hops.get("tick_to_order") else { return String::new() };
    let [Some(p50), _, _, Some(p99), ..] = hop.percentiles() else { return String::new() };
    let verdict = |ns: u64| if (ns as f64) <= TRADE_ASKS_NS { "within" } else { "above" };
    format!(
        "\nThe trade asks for {} from tick to order. Here: {} at the median ({}), {} at 99 % ({}).\n",
        duration(TRADE_ASKS_NS),
        duration(p50 as f64),
        verdict(p50),
        duration(p99 as f64),
        verdict(p99),
    )
}

/// What the host took of the tail.
fn host_share(run: &Run) -> String {
    let Some(hop) = run.hops.get("tick_to_order") else { return String::new() };
    let (Some(share), Some(calm)) = (hop.host_stall_share_p999, &hop.unstalled) else {
        return "What the host took of the tail cannot be told for this run; see the notes in the report.\n".to_owned();
    };
    if share < 0.005 {
        return "None of the slowest thousandth was seen to be the host's.\n".to_owned();
    }
    let [.., raw, _] = hop.percentiles();
    let [.., without, _] = calm.percentiles();
    let told = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| duration(ns as f64));
    format!(
        "The host took at least {:.0} % of the slowest thousandth: 99.9 % is {} as measured, {} without the orders that it \
         stalled.\n",
        100.0 * share,
        told(raw),
        told(without)
    )
}

fn redis(result: &ResultFile, found: &Found) -> String {
    let mut out = String::new();
    for comparison in &result.comparisons {
        let (Some(a), Some(b), Some(ratio)) = (comparison.a, comparison.b, comparison.ratio) else { continue };
        if comparison.name.starts_with("python") {
            out.push_str(&format!(
                "\nIn Python, with JSON over Redis on both sides of the strategy and a blocking listen:\n  tick_to_order p50 \
                 {} in Python, {} over the shared-memory log: {} times\n",
                duration(a),
                duration(b),
                times(ratio)
            ));
            continue;
        }
        let how = match (&found.redis_best, comparison.name.ends_with("_block")) {
            (Some(best), false) => format!("each at the wait that suits it best (log: busy; Redis: {best})"),
            _ => "both blocking".to_owned(),
        };
        out.push_str(&format!(
            "\nThe same path at 2,000 ticks a second, with Redis between tick and strategy, {how}:\n  tick_to_order p50 {} over Redis, {} over the shared-memory log: {} times",
            duration(a),
            duration(b),
            times(ratio)
        ));
        if let (Some(low), Some(high)) = (comparison.low, comparison.high) {
            out.push_str(&format!(" ({} to {})", times(low), times(high)));
        } else {
            out.push_str(" (one valid pair, no spread)");
        }
        out.push('\n');
    }
    if let Some(python) = result.runs.iter().find(|run| run.figures.contains_key("publish_one_process_ns")) {
        let figure = |name: &str| python.figures.get(name).map_or("–".to_owned(), |ns| duration(*ns));
        out.push_str(&format!(
            "\nOne publish a process from Python, as scripts do it: the publish call {} with its connection, \
             and {} from before that call until the subscriber has the message.\n",
            figure("publish_one_process_ns"),
            figure("message_one_process_ns")
        ));
    }
    out
}

fn venue(result: &ResultFile) -> String {
    let mut out = String::new();
    let mut told = std::collections::BTreeSet::new();
    for run in result.runs.iter().filter(|run| run.valid) {
        let (Some(connect), Some(share)) = (run.figures.get("tcp_connect_ns"), run.figures.get("path_share_percent"))
        else {
            continue;
        };
        let wait = run.params.text("wait").unwrap_or_default();
        if !told.insert((run.target.clone(), wait.clone())) {
            continue;
        }
        out.push_str(&format!(
            "To the venue: TCP connect {}; over {} ({wait}) our path is {share:.1} % of the way from tick to venue.\n",
            duration(*connect),
            run.target
        ));
    }
    out
}
