//! Output of a command while it runs: a status line on a terminal, losses at once; and its end on Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tickpath_bus::absent_log_path;
use tickpath_clock::{HostClock, utc_ns};
use tickpath_lab_report::duration;
use tickpath_oms_text::moment;
use tickpath_relay::{RelayContext, RelayError, RelayTotals};

use crate::log_arguments::{as_usage_error, waiting_note};
use crate::outcome::{end_on_signals, stop_on_signals};
use crate::print::{Printer, print_note};

/// Status line and signal handling of a running command.
pub struct RunMonitor {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    /// Set until the first message can be carried: until then there is nothing to shut down in order.
    is_connecting: Arc<AtomicBool>,
}

impl RunMonitor {
    /// Begins. `status` is called once a second, if standard error is a terminal.
    pub fn begin(status: impl Fn() -> String + Clone + Send + Sync + 'static) -> anyhow::Result<Self> {
        let is_connecting = end_on_signals().context("cannot listen for Ctrl-C")?;
        let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
        let line = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            // A line that cannot be drawn must not cost a message.
            let _ = out.write_str(&status());
        };
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{line}").expect("a valid template").with_key("line", line));
        bar.enable_steady_tick(Duration::from_secs(1));
        Ok(Self { bar, stop, is_connecting })
    }

    /// Runs a carrier with the host's clock, and prints its reports on standard error. Its first report shows that it
    /// is connected; until then a signal ends the process at once. After the first report, the sources (the URL of a
    /// bus and a topic each) that do not exist yet are listed.
    pub fn run<T>(&self, sources: &[(&str, &str)], carry: impl FnOnce(&RelayContext<'_>) -> T) -> anyhow::Result<T> {
        let report = |sentence: &str| {
            // Cleared before the report is printed: a reader of it may press Ctrl-C.
            let is_first = self.is_connecting.swap(false, Ordering::SeqCst);
            self.print_timed(sentence);
            if is_first {
                let logs = sources.iter().filter_map(|(url, topic)| absent_log_path(url, topic));
                logs.for_each(|log| self.print_timed(&waiting_note(&log)));
            }
        };
        Ok(carry(&RelayContext { clock: HostClock::get()?, stop: &self.stop, report: &report }))
    }

    fn print_timed(&self, sentence: &str) {
        self.bar.suspend(|| print_note(&format!("{} {sentence}", moment(utc_ns()))));
    }
}

impl Drop for RunMonitor {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Ends a command: prints its totals, unless it has failed before the first message.
pub fn finish(ended: Result<(), RelayError>, has_messages: bool, text: &str) -> anyhow::Result<()> {
    let mut printer = Printer::default();
    if ended.is_ok() || has_messages {
        printer.print(text);
    }
    printer.end(ended.map_err(as_usage_error))
}

/// Returns the first and the last time as text; an empty string if there are none.
pub fn span(totals: &RelayTotals) -> String {
    let span = totals.span_utc_ns.map(|(first, last)| format!(", from {} to {}", moment(first), moment(last)));
    span.unwrap_or_default()
}

/// Returns delays as text: their name, the median and the 99th percentile.
pub fn delays(what: &str, totals: &RelayTotals) -> String {
    let text = |ns: Option<u64>| duration(ns.map_or(f64::NAN, |ns| ns as f64));
    format!("{what} p50 {}, p99 {}", text(totals.delay_p50_ns()), text(totals.delay_p99_ns()))
}
