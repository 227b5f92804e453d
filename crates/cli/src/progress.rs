//! How far a bench is: one line on standard error, with an estimate of the rest.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tickpath_lab::Progress;

/// A bar that fills over the time that all steps are expected to take.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar; hidden if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}").expect("a valid template");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar }
    }
}

impl Progress for Bar {
    fn step(&self, what: &str, seconds: f64) {
        if seconds >= 1.0 {
            self.bar.set_message(format!("{what}, about {seconds:.0} s"));
        } else {
            self.bar.set_message(what.to_owned());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
