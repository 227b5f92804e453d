//! What a command says while it runs: a status line on a terminal, losses at once; and its end on Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tickpath_bus::absent;
use tickpath_clock::{HostClock, utc_ns};
use tickpath_fields::moment;
use tickpath_relay::{Outside, Totals};
use tickpath_report::duration;

use super::place::awaited;
use crate::outcome::{end_on_signals, stop_on_signals};
use crate::print::note;

/// Watches over a command, from its start to its end.
pub struct Watch {
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
    /// Nothing is carried yet: there is nothing to end in good order.
    is_connecting: Arc<AtomicBool>,
}

impl Watch {
    /// Begins. `status` is asked once a second, if standard error is a terminal.
    pub fn begin(status: impl Fn() -> String + Clone + Send + Sync + 'static) -> anyhow::Result<Self> {
        let is_connecting = end_on_signals().context("cannot listen for Ctrl-C")?;
        let stop = stop_on_signals().context("cannot listen for Ctrl-C")?;
        let line = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            // A line that cannot be drawn costs nobody a message.
            let _ = out.write_str(&status());
        };
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{line}").expect("a valid template").with_key("line", line));
        bar.enable_steady_tick(Duration::from_secs(1));
        Ok(Self { bar, stop, is_connecting })
    }

    /// Runs a carrier with the host's clock, and what it tells on standard error. A carrier says nothing before it is
    /// connected, and until then a signal ends it at once. Behind its first sentence stands which of its sources, each
    /// the URL of a bus and a topic, are not there yet.
    pub fn run<T>(&self, sources: &[(&str, &str)], carry: impl FnOnce(&Outside<'_>) -> T) -> anyhow::Result<T> {
        let tell = |sentence: &str| {
            // Before anybody reads it, and presses Ctrl-C.
            let is_first = self.is_connecting.swap(false, Ordering::SeqCst);
            self.tell(sentence);
            if is_first {
                let logs = sources.iter().filter_map(|(url, topic)| absent(url, topic));
                logs.for_each(|log| self.tell(&awaited(&log)));
            }
        };
        Ok(carry(&Outside { clock: HostClock::get()?, stop: &self.stop, tell: &tell }))
    }

    /// Prints a sentence with the time.
    fn tell(&self, sentence: &str) {
        self.bar.suspend(|| note(&format!("{} {sentence}", moment(utc_ns()))));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The first time and the last, in words; nothing if there is none.
pub fn span(totals: &Totals) -> String {
    let span = totals.span_utc_ns.map(|(first, last)| format!(", from {} to {}", moment(first), moment(last)));
    span.unwrap_or_default()
}

/// Delays in words: of what, then the median and the 99th percentile.
pub fn delays(what: &str, totals: &Totals) -> String {
    let text = |ns: Option<u64>| duration(ns.map_or(f64::NAN, |ns| ns as f64));
    format!("{what} p50 {}, p99 {}", text(totals.delay_p50_ns()), text(totals.delay_p99_ns()))
}
