//! Two sessions, connected by bytes in flight that can be cut anywhere, in virtual time.

use tickpath_fix::{BeginString, ResendPolicy, Role, SessionConfig, SessionState};

use super::end::{BEGIN_NS, End};

/// Max turns until two sessions are silent.
const MAX_TURNS: usize = 100_000;

/// Side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Acceptor,
    Initiator,
}

/// An acceptor and an initiator.
pub struct Pair {
    pub acceptor: End,
    pub initiator: End,
    pub now_ns: u64,
    /// ClOrdIDs (11) that the applications have sent.
    pub sent_by_acceptor: Vec<String>,
    pub sent_by_initiator: Vec<String>,
}

impl Pair {
    /// Makes a pair of FIX 4.4 that resends all application messages. `change` changes the settings of both.
    pub fn new(change: impl Fn(&mut SessionConfig)) -> Self {
        let end = |role, sender, target| {
            let mut config = SessionConfig::new(role, BeginString::Fix44, sender, target);
            config.resend = ResendPolicy::All;
            change(&mut config);
            End::new(config)
        };
        Self {
            acceptor: end(Role::Acceptor, "VENUE", "DESK"),
            initiator: end(Role::Initiator, "DESK", "VENUE"),
            now_ns: BEGIN_NS,
            sent_by_acceptor: Vec::new(),
            sent_by_initiator: Vec::new(),
        }
    }

    /// Makes a pair that is logged on.
    pub fn logged_on(change: impl Fn(&mut SessionConfig)) -> Self {
        let mut pair = Self::new(change);
        pair.connect();
        pair.run();
        pair
    }

    pub fn connect(&mut self) {
        self.acceptor.connect(self.now_ns);
        self.initiator.connect(self.now_ns);
    }

    /// Loses the connection, and the bytes in flight.
    pub fn cut(&mut self) {
        for end in [&mut self.acceptor, &mut self.initiator] {
            end.out.clear();
            end.disconnect(self.now_ns);
        }
    }

    /// Lets a side send its next message, if it is logged on.
    pub fn send(&mut self, side: Side) {
        let (end, sent, msg_type) = match side {
            Side::Acceptor => (&mut self.acceptor, &mut self.sent_by_acceptor, "8"),
            Side::Initiator => (&mut self.initiator, &mut self.sent_by_initiator, "D"),
        };
        let id = format!("{msg_type}{}", sent.len());
        if end.send(msg_type, &id, self.now_ns).is_ok() {
            sent.push(id);
        }
    }

    /// Takes at most so many bytes of a side's output to the other side. Returns whether there were any.
    pub fn deliver(&mut self, from: Side, bytes: usize) -> bool {
        let (from, to) = match from {
            Side::Acceptor => (&mut self.acceptor, &mut self.initiator),
            Side::Initiator => (&mut self.initiator, &mut self.acceptor),
        };
        let bytes = bytes.min(from.out.len());
        let taken: Vec<u8> = from.out.drain(..bytes).collect();
        to.receive(&taken, self.now_ns);
        !taken.is_empty()
    }

    /// Lets time pass, in nanoseconds.
    pub fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.poll();
    }

    pub fn poll(&mut self) {
        self.acceptor.poll(self.now_ns);
        self.initiator.poll(self.now_ns);
    }

    /// Takes bytes to and fro until both sessions are silent.
    pub fn run(&mut self) {
        for _ in 0..MAX_TURNS {
            let has_moved = [Side::Acceptor, Side::Initiator].map(|side| self.deliver(side, usize::MAX));
            self.poll();
            if has_moved == [false, false] && self.acceptor.out.is_empty() && self.initiator.out.is_empty() {
                return;
            }
        }
        panic!("the sessions do not become silent");
    }

    /// Returns whether a session has ended the connection.
    pub fn has_ended(&self) -> bool {
        !(self.acceptor.is_open && self.initiator.is_open)
    }

    /// Checks that both applications have received what the other has sent, each message once and in order, and that both
    /// sessions are ready for more.
    #[track_caller]
    pub fn check(&self) {
        assert_eq!(self.initiator.delivered, self.sent_by_acceptor, "at the initiator");
        assert_eq!(self.acceptor.delivered, self.sent_by_initiator, "at the acceptor");
        for end in [&self.acceptor, &self.initiator] {
            assert_eq!(end.session.state(), SessionState::LoggedOn, "{:?}", end.events);
            assert!(!end.session.is_recovering() && !end.session.is_resending(), "{:?}", end.events);
        }
        let (acceptor, initiator) = (self.acceptor.session.numbers(), self.initiator.session.numbers());
        assert_eq!((acceptor.next_in, acceptor.next_out), (initiator.next_out, initiator.next_in));
    }
}
