//! All connections, as senders of messages see them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tickpath_venue_sim_web::{ConnectionId, SimInstrument, WebSender};

use crate::channels::{ChannelSubscription, OkxChannel};
use crate::fields::Row;
use crate::session::GatewaySession;

/// Connections by their ids.
pub(crate) type Sessions = BTreeMap<ConnectionId, GatewaySession>;

/// Instrument of a message, with its index.
pub(crate) type InstrumentAt<'a> = (usize, &'a SimInstrument);

/// Connections and the way to them.
pub(crate) struct Audience<'a, 'b> {
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) out: &'a mut WebSender<'b>,
    pub(crate) now_ns: u64,
}

impl Audience<'_, '_> {
    /// Sends a text to a connection.
    pub(crate) fn send(&mut self, id: ConnectionId, text: &str) {
        if let Some(session) = self.sessions.get_mut(&id)
            && session.cut_turn.is_none()
        {
            session.active_ns = self.now_ns;
            self.out.text(id, text);
        }
    }

    /// Sends an event to a connection: the fields of an answer, with the connection's id.
    pub(crate) fn send_event(&mut self, id: ConnectionId, mut event: Row) {
        event.insert("connId".to_owned(), Value::from(connection_text(id)));
        self.send(id, &Value::Object(event).to_string());
    }

    /// Returns whether a connection has this public channel of an instrument.
    pub(crate) fn has_listeners(&self, channel: OkxChannel, instrument: InstrumentAt<'_>) -> bool {
        self.sessions
            .values()
            .any(|session| session.subscriptions.iter().any(|subscription| subscription.has(channel, Some(instrument))))
    }

    /// Sends a text to each connection that has this public channel of an instrument. Returns their number.
    pub(crate) fn publish(&mut self, channel: OkxChannel, instrument: InstrumentAt<'_>, text: &str) -> usize {
        let has = |session: &GatewaySession| {
            session.subscriptions.iter().any(|subscription| subscription.has(channel, Some(instrument)))
        };
        let ids: Vec<ConnectionId> =
            self.sessions.iter().filter(|(_, session)| has(session)).map(|(id, _)| *id).collect();
        for id in &ids {
            self.send(*id, text);
        }
        ids.len()
    }

    /// Sends a row of a private channel for each subscription of its account. Returns their number.
    pub(crate) fn push(
        &mut self,
        account: usize,
        channel: OkxChannel,
        instrument: Option<InstrumentAt<'_>>,
        row: &Value,
    ) -> usize {
        let mut messages = Vec::new();
        for (id, session) in self.sessions.iter().filter(|(_, session)| session.account == Some(account)) {
            for subscription in session.subscriptions.iter().filter(|one| one.has(channel, instrument)) {
                messages.push((*id, row_message(subscription, Some(account), row, false)));
            }
        }
        self.send_all(messages)
    }

    /// Sends a row of the channel of instruments for each subscription. Returns their number.
    pub(crate) fn publish_instrument(&mut self, instrument: InstrumentAt<'_>, row: &Value) -> usize {
        let mut messages = Vec::new();
        for (id, session) in self.sessions.iter() {
            let has = |one: &&ChannelSubscription| one.has(OkxChannel::Instruments, Some(instrument));
            for subscription in session.subscriptions.iter().filter(has) {
                messages.push((*id, row_message(subscription, None, row, false)));
            }
        }
        self.send_all(messages)
    }

    fn send_all(&mut self, messages: Vec<(ConnectionId, String)>) -> usize {
        for (id, text) in &messages {
            self.send(*id, text);
        }
        messages.len()
    }
}

/// Returns a message of a channel with a row, or with a list of rows, for a subscription.
pub(crate) fn row_message(
    subscription: &ChannelSubscription,
    account: Option<usize>,
    rows: &Value,
    is_snapshot: bool,
) -> String {
    let mut argument = subscription.argument.clone();
    if let Some(account) = account {
        argument.insert("uid".to_owned(), Value::from(user_text(account)));
    }
    let mut rows = if rows.is_array() { rows.clone() } else { json!([rows]) };
    if let Some(currency) = argument.get("ccy").and_then(Value::as_str) {
        keep_currency(&mut rows, currency);
    }
    let mut message = Row::from_iter([("arg".to_owned(), Value::Object(argument)), ("data".to_owned(), rows)]);
    if matches!(subscription.channel, OkxChannel::Account | OkxChannel::Positions) {
        let kind = if is_snapshot { "snapshot" } else { "event_update" };
        message.insert("eventType".to_owned(), json!(kind));
        if is_snapshot {
            message.insert("curPage".to_owned(), json!(1));
            message.insert("lastPage".to_owned(), json!(true));
        }
    }
    Value::Object(message).to_string()
}

/// Returns OKX's id of an account's user.
pub(crate) fn user_text(account: usize) -> String {
    format!("4470589234361{account:04}")
}

fn connection_text(ConnectionId(number): ConnectionId) -> String {
    format!("{:08x}", number & 0xffff_ffff)
}

/// Removes the details of other currencies.
fn keep_currency(rows: &mut Value, currency: &str) {
    for row in rows.as_array_mut().into_iter().flatten() {
        if let Some(Value::Array(details)) = row.get_mut("details") {
            details.retain(|detail| detail["ccy"] == currency);
        }
    }
}
