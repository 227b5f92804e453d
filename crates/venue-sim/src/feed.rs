//! Publishes the quotes of a venue without ticks: its OMS checks orders against these prices.

use tickpath_clock::Clock;
use tickpath_log::{Config as LogConfig, OpenError, Place, Policy, PublishError, Writer};
use tickpath_market::{Kind, TopOfBook};
use zerocopy::IntoBytes;

/// Publishing interval of each quote, in nanoseconds: a price without repetition becomes stale.
const AGAIN_NS: u64 = 1_000_000_000;

/// Publisher of the quotes on a tick topic.
pub(crate) struct Feed<C> {
    clock: C,
    log: Writer,
    quotes: Vec<TopOfBook>,
    /// Time of the last publication, in ticks.
    told: Option<u64>,
}

impl<C: Clock> Feed<C> {
    /// Creates the topic, or opens an existing one.
    pub fn open(clock: C, topic: &Place, quotes: &[TopOfBook]) -> Result<Self, OpenError> {
        let log = Writer::open(&config(topic), clock.calibration())?;
        Ok(Self { clock, log, quotes: quotes.to_vec(), told: None })
    }

    /// Publishes the quotes, if they are due.
    pub fn turn(&mut self) -> Result<(), PublishError> {
        let (now, calibration) = (self.clock.ticks(), self.clock.calibration());
        if self.told.is_some_and(|told| now.wrapping_sub(told) < calibration.ticks_of_ns(AGAIN_NS)) {
            return Ok(());
        }
        self.told = Some(now);
        // Another process may have removed the files. If it has also created the topic anew, it publishes there, and
        // this renewal fails.
        if self.log.is_removed() {
            let config = config(self.log.place());
            let _ = self.log.renew(&config, calibration);
        }
        let event_ns = calibration.utc_ns_of(now);
        for quote in &self.quotes {
            let tick = TopOfBook { event_ns, ..*quote };
            self.log.publish(now, Kind::TopOfBook.code(), tick.as_bytes())?;
        }
        Ok(())
    }
}

fn config(topic: &Place) -> LogConfig {
    LogConfig::topic(topic.clone(), Policy::Overwrite)
}
