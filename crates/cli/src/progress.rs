//! How far a bench is: one line on standard error, with an estimate of the rest.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tickpath_harness::Progress;

/// Columns of the bar.
const WIDTH: usize = 24;

/// A bar that fills over the time that a step is expected to take.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar; hidden if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar }
    }
}

impl Progress for Bar {
    fn step(&self, what: &str, seconds: f64) {
        let guess = move |state: &ProgressState, out: &mut dyn Write| {
            let done = (state.elapsed().as_secs_f64() / seconds.max(0.1)).min(1.0);
            let filled = (done * WIDTH as f64) as usize;
            let left = (seconds - state.elapsed().as_secs_f64()).max(0.0);
            // A line that cannot be drawn costs nobody a result.
            let _ = write!(out, "{}{} about {left:.0} s left", "█".repeat(filled), "░".repeat(WIDTH - filled));
        };
        let style = ProgressStyle::with_template("{guess}  {msg}").expect("a valid template");
        self.bar.set_style(style.with_key("guess", guess));
        self.bar.reset_elapsed();
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
