//! The block of an order group, in the form that exchanges' order systems print: the hand-overs T1-T0 and T2-T1, the
//! gaps between neighbours, the three worst, and the orders' fates.

use super::ink::{TerminalStyle, percentiles_in, wrapped};
use super::markup::plain;
use super::quantity::{NONE, bytes, count, duration};
use super::sentence::NEAREST_RANK;
use tickpath_lab_result::{Hop, PERCENTILES, Run};

/// The leading rows of every block: label and hop.
const ROWS: [(&str, &str); 6] = [
    ("T1-T0", "t0_t1"),
    ("T2-T1", "t1_t2"),
    ("T2-T0", "t0_t2"),
    ("T0-", "t0_gap"),
    ("T1-", "t1_gap"),
    ("T2-", "t2_gap"),
];

const LABEL: usize = 16;
const TIME: usize = 10;

/// Columns of the three worst, and of the space before them.
const WORST: usize = 29;

/// Returns the group of a run of orders: `g6` are 100,000 new orders, `d6` their cancels, `s1` single orders.
pub(super) fn name(run: &Run) -> Option<String> {
    run.batch.as_ref()?.as_str().map(str::to_owned)
}

/// Returns the block of a group.
pub(super) fn block(run: &Run, name: &str, width: usize, ink: TerminalStyle) -> String {
    let shown = percentiles_in(width.saturating_sub(LABEL + WORST), TIME);
    let labels: String = shown.iter().map(|index| format!("{:>TIME$}", PERCENTILES[*index].label)).collect();
    let header = format!("{:<LABEL$}{labels}    worst three", "");
    let title: Vec<String> = wrapped(&title(run, name), width, 2).iter().map(|line| ink.strong(line)).collect();
    let mut text = format!("{}\n", title.join("\n"));
    if !run.hops.is_empty() {
        text += &format!("{}\n", ink.faint(&header));
    }
    for (label, hop) in rows(run) {
        text += &format!("{}\n", row(label, hop, &shown));
    }
    // A percentile with too few samples is marked.
    if rows(run).iter().any(|(_, hop)| hop.percentiles().contains(&None) && hop.nearest_ranks().is_some()) {
        text += &format!("{}\n", ink.faint(NEAREST_RANK));
    }
    for line in wrapped(&outcome(run).join("   "), width, 2) {
        text += &format!("{line}\n");
    }
    text
}

fn title(run: &Run, name: &str) -> String {
    let what = match name {
        "resume" => "reports",
        "orders" | "cancels" => "",
        name if name.starts_with('d') => "cancels",
        _ => "orders",
    };
    let mut parts = vec![name.to_owned(), format!("{} {what}", count(run.counts.sent)).trim_end().to_owned()];
    parts.extend(run.layout.clone());
    parts.extend(run.params.text("wait"));
    let setting = |name: &str| Some(format!("{name} {}", run.params.0.get(name)?).replace(['"', '_'], " "));
    let more_than_one = |name: &str| setting(name).filter(|text| text != &format!("{name} 1"));
    parts.extend(["sessions", "active"].into_iter().filter_map(more_than_one));
    parts.extend(["in_flight", "ack", "beside"].into_iter().filter_map(setting));
    parts.extend([run.target.clone(), run.phase.name().to_owned()]);
    parts.extend((run.repeat > 1).then(|| format!("#{}", run.repeat)));
    parts.retain(|part| !part.is_empty());
    parts.join("  ")
}

/// Returns the known hops in the order of the form, then all others under their own names.
fn rows(run: &Run) -> Vec<(&str, &Hop)> {
    let formed = ROWS.into_iter().filter_map(|(label, name)| Some((label, run.hops.get(name)?)));
    let others = run.hops_in_path_order().into_iter().filter(|(name, _)| ROWS.iter().all(|(_, known)| known != name));
    formed.chain(others).collect()
}

fn row(label: &str, hop: &Hop, shown: &[usize]) -> String {
    let label: String = plain(label).chars().take(LABEL).collect();
    let ranks = hop.nearest_ranks();
    let times = shown.iter().map(|index| match (hop.percentiles()[*index], ranks) {
        (Some(ns), _) => duration(ns as f64),
        (None, Some(ranks)) => format!("{}*", duration(ranks[*index] as f64)),
        (None, None) => NONE.to_owned(),
    });
    let times: String = times.map(|time| format!("{time:>TIME$}")).collect();
    let worst: Vec<String> = worst(hop).iter().map(|ns| duration(*ns as f64)).collect();
    format!("{label:<LABEL$}{times}    {}", worst.join("  ")).trim_end().to_owned()
}

/// Returns the largest samples; fewer than three if the hop has fewer.
fn worst(hop: &Hop) -> &[u64] {
    let known = hop.count.min(3) as usize;
    &hop.worst_ns[3 - known..]
}

fn outcome(run: &Run) -> Vec<String> {
    let number = |name: &str| run.figures.get(name).copied();
    let orders = |name: &str, word: &str| Some(format!("{word} {}", count(number(name)?.max(0.0) as u64)));
    let time = |name: &str, words: &str| Some(format!("{words} {}", duration(number(name)?)));
    let ends = [("orders_sending", "sending"), ("orders_queued", "queued"), ("orders_rejected", "rejected")];
    let ends: Vec<String> = ends.into_iter().filter_map(|(name, word)| orders(name, word)).collect();
    let last = [time("last_order_t0_ns", "T0"), time("last_order_t1_ns", "T1"), time("last_order_t2_ns", "T2")];
    let last: Vec<String> = last.into_iter().flatten().collect();
    let memory = run.memory.map(|memory| {
        let [before, after, peak] =
            [memory.before_bytes, memory.after_bytes, memory.peak_bytes].map(|size| bytes(size as f64));
        format!("memory before {before} after {after} peak {peak}")
    });
    [
        Some(ends.join("  ")).filter(|text| !text.is_empty()),
        Some(last.join(" ")).filter(|text| !text.is_empty()).map(|text| format!("last order {text}")),
        time("first_t0_to_last_t2_ns", "first T0 to last T2"),
        time("last_t2_to_last_report_ns", "last T2 to last report"),
        number("bytes_per_order").map(|size| format!("{} an order", bytes(size))),
        number("journal_bytes_per_order").map(|size| format!("{} of journal an order", bytes(size))),
        memory,
        number("acked_per_s").map(|rate| format!("{} orders acked a second", count(rate as u64))),
        time("send_ns", "one send"),
        number("memory_per_session_bytes").map(|size| format!("{} a session", bytes(size))),
        number("connected_cpu_percent").map(|share| format!("{share:.0} % of a processor while no client sends")),
        time("receiver_cpu_per_message_ns", "processor time an order"),
        number("beside_reports").map(|reports| format!("{} reports received beside", count(reports as u64))),
        time("resume_ns", "live within"),
        number("resume_reports_per_s").map(|rate| format!("{} reports a second", count(rate as u64))),
        time("restart_to_ready_ns", "ready within"),
        number("replay_inputs_per_s").map(|rate| format!("a restart replays {} inputs a second", count(rate as u64))),
        Some(format!("lost {}", count(run.counts.lost))),
    ]
    .into_iter()
    .flatten()
    .collect()
}
