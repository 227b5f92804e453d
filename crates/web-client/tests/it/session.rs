//! A WebSocket client that is driven until something has happened.

use tickpath_clock::{Clock, HostClock, sleep_ns};
use tickpath_web_client::{FrameArrival, WebSocketClient, WebSocketConfig, WebSocketEvent, WebSocketLost};

/// Bound of each wait.
const TIMEOUT_NS: i64 = 60_000_000_000;

/// An event, without its stamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Up,
    Text(String),
    Binary(Vec<u8>),
    Ping,
    Pong,
}

/// A client with all that it has reported.
pub struct Session {
    pub client: WebSocketClient,
    pub seen: Vec<Seen>,
    /// Stamps of the messages.
    pub arrivals: Vec<FrameArrival>,
}

impl Session {
    /// Creates a client and begins to connect.
    pub fn connect(url: &str, change: impl FnOnce(&mut WebSocketConfig)) -> Self {
        let mut config = WebSocketConfig::new(url);
        change(&mut config);
        let mut client = WebSocketClient::new(config).expect("a good configuration");
        client.connect();
        Self { client, seen: Vec::new(), arrivals: Vec::new() }
    }

    /// Polls once.
    pub fn poll(&mut self) -> Result<usize, WebSocketLost> {
        let Self { client, seen, arrivals } = self;
        client.poll(&mut |event| match event {
            WebSocketEvent::Up => seen.push(Seen::Up),
            WebSocketEvent::Text(text, arrival) => {
                seen.push(Seen::Text(String::from_utf8(text.to_vec()).expect("a text is valid UTF-8")));
                arrivals.push(arrival);
            }
            WebSocketEvent::Binary(bytes, arrival) => {
                seen.push(Seen::Binary(bytes.to_vec()));
                arrivals.push(arrival);
            }
            WebSocketEvent::Ping => seen.push(Seen::Ping),
            WebSocketEvent::Pong => seen.push(Seen::Pong),
        })
    }

    /// Polls until the client has reported this many events.
    pub fn wait_for(&mut self, events: usize) {
        let deadline = Deadline::start();
        loop {
            let polled = self.poll();
            if self.seen.len() >= events {
                return;
            }
            let work = polled.unwrap_or_else(|lost| panic!("{lost}; seen: {:?}", self.seen));
            deadline.pause(work);
        }
    }

    /// Polls until the connection is lost, and returns the reason.
    pub fn wait_for_loss(&mut self) -> String {
        let deadline = Deadline::start();
        loop {
            match self.poll() {
                Ok(work) => deadline.pause(work),
                Err(lost) => return lost.to_string(),
            }
        }
    }
}

/// Bound of a wait for a fact.
pub struct Deadline {
    clock: HostClock,
    began: u64,
}

impl Deadline {
    pub fn start() -> Self {
        let clock = HostClock::get().expect("this host has a clock");
        Self { clock, began: clock.ticks() }
    }

    /// Pauses after a turn without work. Panics if the wait has taken too long.
    pub fn pause(&self, work: usize) {
        assert!(self.clock.ns_between(self.began, self.clock.ticks()) < TIMEOUT_NS, "nothing happens");
        if work == 0 {
            sleep_ns(50_000);
        }
    }
}
