//! Times of a connection: heartbeats, test requests, silence, and the begin of a state.
//!
//! ```text
//!   since the last received message     0 ────── 1 ─── 1.2 ────────────── 2.4   × heartbeat interval
//!                                                      TestRequest        the peer is silent
//!   since the last sent message         0 ────── 1 Heartbeat, unless a TestRequest is unanswered
//! ```

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Returns seconds in nanoseconds.
pub(crate) fn seconds_ns(seconds: u32) -> u64 {
    u64::from(seconds) * NS_PER_SECOND
}

/// Work that is due by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerEvent {
    Heartbeat,
    TestRequest,
    /// The connection is to be closed.
    Silence,
}

/// Timers of a connection. Times are in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timers {
    /// Interval of heartbeats; 0 for none.
    heartbeat_s: u32,
    last_received_ns: u64,
    /// Begin of the state.
    since_ns: u64,
    is_test_requested: bool,
}

impl Timers {
    /// Begins a state.
    pub fn enter_state(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// Returns the time since the begin of the state.
    pub fn in_state_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.since_ns)
    }

    /// Returns the time at which the state has lasted so long.
    pub fn state_ends_ns(&self, limit_ns: u64) -> u64 {
        self.since_ns.saturating_add(limit_ns)
    }

    /// Begins the heartbeats of a session that is logged on.
    pub fn log_on(&mut self, heartbeat_s: u32, now_ns: u64) {
        self.heartbeat_s = heartbeat_s;
        self.note_received(now_ns);
    }

    /// Returns the interval of heartbeats in seconds; 0 for none.
    pub fn heartbeat_s(&self) -> u32 {
        self.heartbeat_s
    }

    /// Notes a received message: the peer is alive.
    #[inline]
    pub fn note_received(&mut self, now_ns: u64) {
        self.last_received_ns = now_ns;
        self.is_test_requested = false;
    }

    /// Notes a sent TestRequest.
    pub fn note_test_request(&mut self) {
        self.is_test_requested = true;
    }

    /// Returns the work that is due.
    pub fn due(&self, last_sent_ns: u64, now_ns: u64) -> Option<TimerEvent> {
        let interval = seconds_ns(self.heartbeat_s);
        if interval == 0 {
            return None;
        }
        let silent = now_ns.saturating_sub(self.last_received_ns);
        if silent >= silence_ns(interval) {
            Some(TimerEvent::Silence)
        } else if self.is_test_requested {
            None
        } else if silent >= test_request_ns(interval) {
            Some(TimerEvent::TestRequest)
        } else {
            let is_due = now_ns.saturating_sub(last_sent_ns) >= interval;
            is_due.then_some(TimerEvent::Heartbeat)
        }
    }

    /// Returns the time of the next work; `None` without heartbeats.
    pub fn next_ns(&self, last_sent_ns: u64) -> Option<u64> {
        let interval = seconds_ns(self.heartbeat_s);
        if interval == 0 {
            return None;
        }
        if self.is_test_requested {
            return Some(self.last_received_ns.saturating_add(silence_ns(interval)));
        }
        let test_request = self.last_received_ns.saturating_add(test_request_ns(interval));
        Some(test_request.min(last_sent_ns.saturating_add(interval)))
    }
}

/// Returns the silence after which a TestRequest is sent: 1.2 × the interval.
fn test_request_ns(interval_ns: u64) -> u64 {
    interval_ns / 5 * 6
}

/// Returns the silence after which the connection ends: 2.4 × the interval.
fn silence_ns(interval_ns: u64) -> u64 {
    interval_ns / 5 * 12
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NS_PER_SECOND;

    fn timers(heartbeat_s: u32) -> Timers {
        let mut timers = Timers::default();
        timers.log_on(heartbeat_s, 100 * SECOND);
        timers
    }

    #[test]
    fn heartbeats_follow_the_last_sent_message() {
        let timers = timers(10);
        assert_eq!(timers.due(100 * SECOND, 110 * SECOND - 1), None);
        assert_eq!(timers.due(100 * SECOND, 110 * SECOND), Some(TimerEvent::Heartbeat));
        assert_eq!(timers.due(101 * SECOND, 110 * SECOND), None);
        assert_eq!(timers.next_ns(101 * SECOND), Some(111 * SECOND));
    }

    #[test]
    fn a_silent_peer_is_tested_and_then_left() {
        let mut timers = timers(10);
        assert_eq!(timers.due(111 * SECOND, 112 * SECOND), Some(TimerEvent::TestRequest));
        timers.note_test_request();
        assert_eq!(timers.due(0, 124 * SECOND - 1), None, "no heartbeat while a TestRequest is unanswered");
        assert_eq!(timers.next_ns(0), Some(124 * SECOND));
        assert_eq!(timers.due(0, 124 * SECOND), Some(TimerEvent::Silence));
        timers.note_received(124 * SECOND);
        assert_eq!(timers.due(124 * SECOND, 124 * SECOND), None);
    }

    #[test]
    fn an_interval_of_zero_switches_heartbeats_off() {
        let timers = timers(0);
        assert_eq!((timers.due(0, u64::MAX), timers.next_ns(0)), (None, None));
    }

    #[test]
    fn a_clock_that_steps_back_ends_nothing() {
        let timers = timers(10);
        assert_eq!(timers.due(100 * SECOND, 50 * SECOND), None);
        assert_eq!(timers.in_state_ns(0), 0);
    }
}
