//! Heartbeats: OKX closes a connection that is silent for 30 s, and answers the text `ping` with the text `pong`.

/// Silence of a connection. Times are in ticks.
#[derive(Debug)]
pub(crate) struct PingTimer {
    silence: u64,
    answer: u64,
    last_received: u64,
    ping_sent: Option<u64>,
}

/// Result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PingCheck {
    Alive,
    /// A ping must be sent now.
    Due,
    /// The last ping was not answered in time.
    Unanswered,
}

impl PingTimer {
    /// Makes a timer that asks for a ping after `silence` ticks, and gives up `answer` ticks later.
    pub fn new(silence: u64, answer: u64) -> Self {
        Self { silence, answer, last_received: 0, ping_sent: None }
    }

    /// Notes that something has arrived: each message proves that the connection is alive.
    #[inline]
    pub fn note_received(&mut self, now: u64) {
        (self.last_received, self.ping_sent) = (now, None);
    }

    /// Returns when something has arrived for the last time.
    pub fn last_received(&self) -> u64 {
        self.last_received
    }

    /// Returns what is to be done, and takes a due ping as sent.
    #[inline]
    pub fn check(&mut self, now: u64) -> PingCheck {
        match self.ping_sent {
            Some(sent) if now.saturating_sub(sent) > self.answer => PingCheck::Unanswered,
            None if now.saturating_sub(self.last_received) > self.silence => {
                self.ping_sent = Some(now);
                PingCheck::Due
            }
            _ => PingCheck::Alive,
        }
    }
}
