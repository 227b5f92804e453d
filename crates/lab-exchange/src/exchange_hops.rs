//! Parts of every run: the exchange's ticks, the hops between its stamps, and the counts.

use tickpath_clock::Calibration;
use tickpath_lab_harness::rules::{add_lateness, refuse_loss};
use tickpath_lab_harness::samples::Samples;
use tickpath_lab_harness::{Child, LabError};
use tickpath_lab_result::{MessageCounts, Run};

use crate::exchange::ExchangeRow;
use crate::settings::Settings;

/// Makes the exchange send its ticks, and waits for the last.
pub(crate) fn send_ticks(exchange: &mut Child, settings: &Settings) -> Result<(), LabError> {
    exchange.send("go")?;
    exchange.result(settings.seconds() * 2.0)
}

/// Adds the hops whose ends are both stamps of the exchange.
pub(crate) fn add_exchange_hops(run: &mut Run, ticks: &[ExchangeRow], calibration: &Calibration) {
    let of = |from: usize, to: usize| {
        Samples(ticks.iter().filter(|row| row[from] != 0 && row[to] != 0).map(|row| (row[from], row[to])).collect())
    };
    let late = of(0, 1).hop(calibration, &[]);
    add_lateness(run, &late);
    run.hops.insert("lateness".to_owned(), late);
    run.hops.insert("tick_to_venue".to_owned(), of(0, 3).hop(calibration, &[]));
    run.hops.insert("packet_to_packet".to_owned(), of(2, 3).hop(calibration, &[]));
}

/// Counts the ticks and their orders; a lost one makes the run invalid.
pub(crate) fn count_orders(run: &mut Run, settings: &Settings, received: u64, ticks: &[ExchangeRow]) {
    let sent = ticks.len() as u64;
    let ordered = ticks.iter().filter(|row| row[3] != 0).count() as u64;
    let expected = sent.div_ceil(settings.ticks_per_order());
    run.counts = MessageCounts {
        sent,
        received: received.min(sent),
        lost: expected.saturating_sub(ordered),
        ..MessageCounts::default()
    };
    if sent < settings.count {
        run.refuse(format!("the exchange sent {sent} of {} ticks", settings.count));
    }
    refuse_loss(run);
}
