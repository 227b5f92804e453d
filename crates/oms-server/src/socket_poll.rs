//! Poll of the clients' sockets.

use std::io;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use tickpath_log::LaneStream;

use super::client_table::{ClientTable, ReadyList};
use super::stream::ClientStream;

/// Turns between two polls of the sockets while lanes exist: a poll takes longer than all else of an idle turn.
const SOCKET_POLL_TURNS: u32 = 16;
const MAX_EVENTS: usize = 1024;
pub(super) const WAKER_TOKEN: Token = Token(usize::MAX);

/// Poll of the clients' sockets, each registered under its connection's slot.
pub(super) struct SocketPoll {
    poll: Poll,
    events: Events,
    turns: u32,
}

impl SocketPoll {
    pub fn new(poll: Poll) -> Self {
        Self { poll, events: Events::with_capacity(MAX_EVENTS), turns: 0 }
    }

    pub fn register(&self, stream: &mut ClientStream, slot: usize) -> io::Result<()> {
        self.poll.registry().register(stream.source(), Token(slot), Interest::READABLE | Interest::WRITABLE)
    }

    pub fn deregister(&self, stream: &mut ClientStream) {
        // The socket is closed next, which removes it in any case.
        let _: io::Result<()> = self.poll.registry().deregister(stream.source());
    }

    /// Polls the sockets, with lanes only once in [`SOCKET_POLL_TURNS`] or for logons. Returns the number of events.
    pub fn poll_in_turn(&mut self, has_logons: bool, clients: &mut ClientTable, ready: &mut ReadyList) -> usize {
        self.turns = self.turns.wrapping_add(1);
        let is_due = !clients.has_lanes() || has_logons || self.turns.is_multiple_of(SOCKET_POLL_TURNS);
        if is_due { self.poll(Duration::ZERO, clients, ready) } else { 0 }
    }

    /// Polls the sockets and marks the connections with events. Returns the number of events.
    pub fn poll(&mut self, timeout: Duration, clients: &mut ClientTable, ready: &mut ReadyList) -> usize {
        if self.poll.poll(&mut self.events, Some(timeout)).is_err() {
            return 0;
        }
        let mut events = 0;
        for event in self.events.iter().filter(|event| event.token() != WAKER_TOKEN) {
            let Token(slot) = event.token();
            if let Some(connection) = clients.get_mut(slot) {
                connection.input.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
                connection.stream.lanes().into_iter().for_each(LaneStream::mark_socket_readable);
                ready.mark(slot);
                events += 1;
            }
        }
        events
    }
}
