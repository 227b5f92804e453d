//! Progress of a bench: one line on standard error, with an estimate of the remaining time.

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tickpath_lab_harness::ProgressSink;

use tickpath_cli_terminal::print::{count_text, print_note};

/// Columns of the bar.
const WIDTH: usize = 24;

/// A bar that fills over the expected time of the whole bench, or of each step if the total is unknown.
pub struct BenchProgress {
    bar: ProgressBar,
    quiet: bool,
    /// Expected seconds of the whole bench.
    planned: OnceLock<f64>,
}

impl BenchProgress {
    /// Makes a bar; hidden if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, quiet, planned: OnceLock::new() }
    }

    /// Restarts the bar, to fill over so many seconds.
    fn fill(&self, seconds: f64) {
        let guess = move |state: &ProgressState, out: &mut dyn Write| {
            let done = (state.elapsed().as_secs_f64() / seconds.max(0.1)).min(1.0);
            let filled = (done * WIDTH as f64) as usize;
            let left = approximate_time((seconds - state.elapsed().as_secs_f64()).max(0.0));
            // A line that cannot be drawn must not cost a result.
            let _ = write!(out, "{}{} {left} left", "█".repeat(filled), "░".repeat(WIDTH - filled));
        };
        let style = ProgressStyle::with_template("{guess}  {msg}").expect("a valid template");
        self.bar.set_style(style.with_key("guess", guess));
        self.bar.reset_elapsed();
    }
}

impl ProgressSink for BenchProgress {
    fn step(&self, what: &str, seconds: f64) {
        if self.planned.get().is_none() {
            self.fill(seconds);
        }
        self.bar.set_message(what.to_owned());
    }

    fn plan(&self, runs: usize, seconds: f64) {
        if self.planned.set(seconds).is_err() {
            return;
        }
        self.fill(seconds);
        if !self.quiet {
            let runs = count_text(runs, "run");
            self.bar.suspend(|| print_note(&format!("tickpath: {}: {runs}", approximate_time(seconds))));
        }
    }
}

/// Returns an approximate time as text: `about 40 s`, `about 7 min`.
pub fn approximate_time(seconds: f64) -> String {
    /// Limit in seconds from which minutes are printed.
    const MINUTES_FROM_S: f64 = 100.0;
    if seconds < MINUTES_FROM_S { format!("about {seconds:.0} s") } else { format!("about {:.0} min", seconds / 60.0) }
}

impl Drop for BenchProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
