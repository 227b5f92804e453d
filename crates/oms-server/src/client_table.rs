//! Connections of the logged-in clients by slot and by session, and those that have something to do.

use std::collections::BTreeMap;

use mio::net::UnixStream;
use tickpath_log::LaneStream;

use super::connection::ClientConnection;

#[derive(Default)]
pub(super) struct ClientTable {
    slots: Vec<Option<ClientConnection>>,
    by_session: BTreeMap<u16, usize>,
    /// Slots of the connections over lanes, whose data no poll of the sockets reports.
    laned: Vec<usize>,
    last_serial: u64,
}

/// Slots of the connections with more to read or to send than the last turn took.
#[derive(Debug, Default)]
pub(super) struct ReadyList {
    marked: Vec<usize>,
    in_turn: Vec<usize>,
}

impl ClientTable {
    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut ClientConnection> {
        self.slots.get_mut(slot)?.as_mut()
    }

    #[inline]
    pub fn of_session(&mut self, session: u16) -> Option<(usize, &mut ClientConnection)> {
        let slot = *self.by_session.get(&session)?;
        Some((slot, self.slots.get_mut(slot)?.as_mut()?))
    }

    pub fn slot_of(&self, session: u16) -> Option<usize> {
        self.by_session.get(&session).copied()
    }

    pub fn has_session(&self, session: u16) -> bool {
        self.by_session.contains_key(&session)
    }

    pub fn session_count(&self) -> usize {
        self.by_session.len()
    }

    pub fn slots_where(&self, matches: impl Fn(&ClientConnection) -> bool) -> Vec<usize> {
        let connections = self.slots.iter().enumerate();
        connections.filter_map(|(slot, connection)| matches(connection.as_ref()?).then_some(slot)).collect()
    }

    pub fn free_slot(&self) -> usize {
        self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len())
    }

    /// Returns a serial for the next connection, which distinguishes it from an earlier one in its slot.
    pub fn next_serial(&mut self) -> u64 {
        self.last_serial += 1;
        self.last_serial
    }

    /// Inserts a connection into the slot that [`Self::free_slot`] has returned for it.
    pub fn insert(&mut self, slot: usize, mut connection: ClientConnection) {
        if connection.stream.lanes().is_some() {
            self.laned.push(slot);
        }
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.by_session.insert(connection.session, slot);
        self.slots[slot] = Some(connection);
    }

    pub fn remove(&mut self, slot: usize) -> Option<ClientConnection> {
        let connection = self.slots.get_mut(slot)?.take()?;
        self.by_session.remove(&connection.session);
        self.laned.retain(|&laned| laned != slot);
        Some(connection)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientConnection> {
        self.slots.iter_mut().flatten()
    }

    #[inline]
    pub fn has_lanes(&self) -> bool {
        !self.laned.is_empty()
    }

    pub fn lanes(&mut self) -> impl Iterator<Item = &mut LaneStream<UnixStream>> {
        self.iter_mut().filter_map(|connection| connection.stream.lanes())
    }

    /// Marks the connections whose lanes have data, or room again for pending output.
    #[inline]
    pub fn poll_lanes(&mut self, ready: &mut ReadyList) {
        let Self { slots, laned, .. } = self;
        for &slot in &*laned {
            let Some(Some(connection)) = slots.get_mut(slot) else { continue };
            let wants_room = connection.output.pending_bytes() > 0;
            if connection.stream.lanes().is_some_and(|lanes| lanes.has_news(wants_room)) {
                connection.input.is_readable = true;
                ready.mark(slot);
            }
        }
    }
}

impl ReadyList {
    #[inline]
    pub fn mark(&mut self, slot: usize) {
        if !self.marked.contains(&slot) {
            self.marked.push(slot);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.marked.is_empty()
    }

    /// Begins a turn of the marked connections, and returns their number. Marks from now on are for the turn after it.
    #[inline]
    pub fn begin_turn(&mut self) -> usize {
        self.in_turn.clear();
        std::mem::swap(&mut self.marked, &mut self.in_turn);
        self.in_turn.len()
    }

    #[inline]
    pub fn in_turn(&self, position: usize) -> usize {
        self.in_turn[position]
    }
}
