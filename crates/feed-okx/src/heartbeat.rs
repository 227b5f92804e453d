//! Heartbeats: OKX closes a connection that is silent for 30 s, and answers the text `ping` with the text `pong`.

/// State of the heartbeats of a connection. Times are in ticks.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    silence: u64,
    answer: u64,
    last_received: u64,
    ping_sent: Option<u64>,
}

/// Result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// Nothing is to be done.
    Alive,
    /// A ping must be sent now.
    PingDue,
    /// The last ping was not answered in time.
    Lost,
}

impl Heartbeat {
    /// Makes a state that asks for a ping after `silence` ticks, and gives up `answer` ticks later.
    pub(crate) fn new(silence: u64, answer: u64) -> Self {
        Self { silence, answer, last_received: 0, ping_sent: None }
    }

    /// Notes that something has arrived: each message proves that the connection is alive.
    #[inline]
    pub(crate) fn note_received(&mut self, now: u64) {
        self.last_received = now;
        self.ping_sent = None;
    }

    /// Returns what is to be done, and takes a due ping as sent.
    pub(crate) fn check(&mut self, now: u64) -> Liveness {
        match self.ping_sent {
            Some(sent) if now.saturating_sub(sent) > self.answer => Liveness::Lost,
            None if now.saturating_sub(self.last_received) > self.silence => {
                self.ping_sent = Some(now);
                Liveness::PingDue
            }
            _ => Liveness::Alive,
        }
    }
}
