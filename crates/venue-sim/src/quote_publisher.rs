//! Publishes the quotes of a venue without ticks: its OMS checks orders against these prices.

use tickpath_clock::Clock;
use tickpath_log::{Config as LogConfig, LogOpenError, LogPath, LogPublishError, OverflowPolicy, Writer};
use tickpath_market::{Kind, TopOfBook};
use zerocopy::IntoBytes;

/// Publishing interval of each quote, in nanoseconds: a price without repetition becomes stale.
const REPUBLISH_NS: u64 = 1_000_000_000;

pub(crate) struct QuotePublisher<C> {
    clock: C,
    log: Writer,
    quotes: Vec<TopOfBook>,
    /// Time of the last publication, in ticks.
    published_at: Option<u64>,
}

impl<C: Clock> QuotePublisher<C> {
    /// Creates the topic, or opens an existing one.
    pub fn open(clock: C, topic: &LogPath, quotes: &[TopOfBook]) -> Result<Self, LogOpenError> {
        let log = Writer::open(&config(topic), clock.calibration())?;
        Ok(Self { clock, log, quotes: quotes.to_vec(), published_at: None })
    }

    pub fn publish_if_due(&mut self) -> Result<(), LogPublishError> {
        let (now, calibration) = (self.clock.ticks(), self.clock.calibration());
        if self
            .published_at
            .is_some_and(|published| now.wrapping_sub(published) < calibration.ticks_of_ns(REPUBLISH_NS))
        {
            return Ok(());
        }
        self.published_at = Some(now);
        // Another process may have removed the files. If it has also created the topic anew, it publishes there, and
        // this renewal fails.
        if self.log.is_removed() {
            let config = config(self.log.path());
            let _ = self.log.recreate(&config, calibration);
        }
        let event_ns = calibration.utc_ns_of(now);
        for quote in &self.quotes {
            let tick = TopOfBook { event_ns, ..*quote };
            self.log.publish(now, Kind::TopOfBook.code(), tick.as_bytes())?;
        }
        Ok(())
    }
}

fn config(topic: &LogPath) -> LogConfig {
    LogConfig::topic(topic.clone(), OverflowPolicy::Overwrite)
}
