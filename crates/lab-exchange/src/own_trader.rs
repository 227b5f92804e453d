//! A run of our own strategy, and its hops.

use std::path::{Path, PathBuf};

use tickpath_clock::{Clock, Wait};
use tickpath_lab_harness::attribution::{clip_gaps, drop_attribution, note_stalls};
use tickpath_lab_harness::samples::{Samples, load, load_gaps};
use tickpath_lab_harness::{Child, Lab, LabError, ThreadConfig};
use tickpath_lab_path::{OmsRole, PATH_GROUP, analyse};
use tickpath_lab_result::{Run, Stage};
use tickpath_oms_runtime::Layout;

use crate::exchange::ExchangeRow;
use crate::exchange_hops::{add_exchange_hops, count_orders, send_ticks};
use crate::settings::{RunFiles, Settings};
use crate::trader::{OrderStamps, STAMPS, WebTraderResult, WebTraderRole};

/// The steps of an order, from one stamp to the next: name, and the stamps by their places in a row.
const STEPS: [(&str, usize, usize); 9] = [
    ("wire_to_read", 1, 2),
    ("read_to_framed", 2, 3),
    ("framed_to_parsed", 3, 4),
    ("parsed_to_sent", 4, 5),
    ("sent_to_handed", 5, 6),
    ("handed_to_encoded", 6, 7),
    ("encoded_to_ready", 7, 8),
    ("ready_to_written", 8, 9),
    ("wire_to_written", 1, 9),
];

/// Runs our own strategy with its OMS.
pub(crate) fn trade(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    mut exchange: Child,
    address: String,
) -> Result<Run, LabError> {
    let journal = files.of("journal");
    let trader = trader_role(lab, settings, files, journal.clone(), address);
    let child = lab.spawn(&trader)?;
    send_ticks(&mut exchange, settings)?;
    let traded: WebTraderResult = child.stop()?;
    exchange.stop::<()>()?;
    let run = assemble(lab, settings, files, &journal, &traded);
    let _ = std::fs::remove_dir_all(&journal);
    run
}

fn trader_role(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    journal: PathBuf,
    address: String,
) -> WebTraderRole {
    let thread = ThreadConfig::new(settings.cpus[1], Wait::Busy, settings.priority).with_warm_up(lab.runs_warm_up);
    let oms = OmsRole {
        lanes: files.name.clone(),
        request_bytes: 1 << 20,
        report_bytes: 4 << 20,
        journal,
        reserve_bytes: settings.orders() * 1_024,
        symbol: settings.via.instrument().to_owned(),
        account: 1,
        expected_orders: settings.orders() as usize,
        layout: Layout::Inline.to_string(),
        thread: thread.clone(),
        other_cpu: Some(settings.cpus[0]),
        market: None,
        level: "os".to_owned(),
        snapshot_every: 0,
        line: None,
        server: None,
        out: files.of("oms"),
    };
    let (via, ca, out) = (settings.via, files.of("ca.pem"), files.of("trader"));
    let (orders, ticks_per_order) = (settings.orders(), settings.ticks_per_order());
    WebTraderRole { via, address, ca, oms, orders, ticks_per_order, thread, out }
}

fn assemble(
    lab: &Lab<'_>,
    settings: &Settings,
    files: &RunFiles,
    journal: &Path,
    traded: &WebTraderResult,
) -> Result<Run, LabError> {
    let calibration = lab.clock.calibration();
    let read = analyse::read(journal)?;
    let Some(group) = read.groups.get(&PATH_GROUP) else {
        return Err(LabError::Failed("no tick led to an order".to_owned()));
    };
    let rows: Vec<[u64; STAMPS]> = load(&files.of("trader"))?;
    let ticks: Vec<ExchangeRow> = load(&files.of("exchange"))?;
    let end = rows.iter().flatten().copied().max().unwrap_or(0);
    let gaps = load_gaps(&files.of("trader").with_extension("gaps"))?;
    let gaps = clip_gaps(&gaps, ticks.first().map_or(0, |row| row[0]), end);
    let mut run = group.run(&read.calibration, &gaps);
    // Their causes are packets, and not the intended times of ticks.
    run.hops.retain(|name, _| !matches!(name.as_str(), "tick_to_order" | "tick_to_venue"));
    let pairs = |from: usize, to: usize| {
        Samples(rows.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    for (name, from, to) in STEPS {
        let samples = pairs(from, to);
        if name != "wire_to_written" && !samples.0.is_empty() {
            let p50_ns = Some(samples.p50_ns(calibration));
            run.stages.push(Stage { name: name.to_owned(), p50_ns, ..Stage::default() });
        }
        run.hops.insert(name.to_owned(), samples.hop(calibration, &gaps));
    }
    let orders: Vec<OrderStamps> = rows.iter().map(|row| OrderStamps::from(*row)).collect();
    let intended = orders.iter().filter_map(|row| Some((ticks.get(row.tick as usize)?[0], row.written)));
    let more = [
        ("own_work", pairs(3, 7)),
        ("own_work_with_tls", pairs(2, 8)),
        ("order_ack", pairs(5, 10)),
        ("order_round_trip", pairs(5, 11)),
        ("tick_to_order", Samples(intended.filter(|(_, to)| *to != 0).collect())),
    ];
    run.hops.extend(more.map(|(name, samples)| (name.to_owned(), samples.hop(calibration, &gaps))));
    add_exchange_hops(&mut run, &ticks, calibration);
    for (what, number) in [("denied", traded.denied), ("bad_frames", traded.bad_frames)] {
        if number > 0 {
            run.refuse(format!("{number} orders or frames were {what}"));
        }
    }
    if traded.missed_reports > 0 {
        run.refuse(format!("the strategy missed {} reports", traded.missed_reports));
    }
    count_orders(&mut run, settings, traded.ticks, &ticks);
    let took_ns = lab.clock.ns_between(ticks.first().map_or(end, |row| row[0]), end).max(0) as u64;
    drop_attribution(&mut run);
    note_stalls(&mut run, "trader", &gaps, took_ns, calibration);
    Ok(run)
}
