//! The outer part of a JSON frame: an event of the connection, or the head of a push message.

use serde::Deserialize;
use tickpath_feed::FrameError;

use crate::channels::ChannelKey;
use crate::complaint::{malformed, shown};

/// A text frame without its data.
#[derive(Debug)]
pub(crate) enum TextFrame {
    /// An event of the connection.
    Event(OkxEvent),
    /// Market data of a channel.
    Push(PushHead),
}

/// An event of a connection.
#[derive(Debug)]
pub(crate) enum OkxEvent {
    /// Answer to a heartbeat.
    Pong,
    /// A subscription is acknowledged.
    Subscribed(ChannelKey),
    /// The end of a subscription is acknowledged.
    Unsubscribed(ChannelKey),
    /// OKX reports an error, with its code and text.
    Refused(String),
    /// OKX refuses or ends a channel, of one instrument or of all.
    ChannelRefused {
        /// Name of the channel.
        channel: String,
        /// Name of the instrument; none for all.
        instrument: Option<String>,
        /// Code and text.
        text: String,
    },
    /// The connection ends soon.
    Maintenance,
    /// An event without consequences.
    Ignored,
}

/// The head of a push message.
#[derive(Debug)]
pub(crate) struct PushHead {
    pub(crate) key: ChannelKey,
    pub(crate) action: Option<String>,
}

/// Code of the notice that comes 60 s before a connection is closed for an upgrade.
const UPGRADE_NOTICE: &str = "64008";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnvelopeFields {
    event: Option<String>,
    arg: Option<ArgumentFields>,
    action: Option<String>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    conn_count: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArgumentFields {
    channel: String,
    #[serde(default)]
    inst_id: String,
}

/// Reads the outer part of a text frame, and checks that the whole frame is JSON.
pub(crate) fn read_envelope(frame: &[u8]) -> Result<TextFrame, FrameError> {
    if frame == b"pong" {
        return Ok(TextFrame::Event(OkxEvent::Pong));
    }
    let fields: EnvelopeFields = serde_json::from_slice(frame).map_err(|e| malformed(frame.len(), e))?;
    if let Some(event) = &fields.event {
        return fields.read_event(event).map(TextFrame::Event).map_err(|why| malformed(frame.len(), why));
    }
    let missing = || malformed(frame.len(), "it has neither an event nor an argument");
    let key = fields.key().ok_or_else(missing)?;
    Ok(TextFrame::Push(PushHead { key, action: fields.action }))
}

impl EnvelopeFields {
    fn key(&self) -> Option<ChannelKey> {
        self.arg.as_ref().map(|arg| ChannelKey::new(&arg.channel, &arg.inst_id))
    }

    /// Returns the channel of an error, from its argument, or from a text with `channel:books,instId:BTC-USDT`.
    fn refused_channel(&self) -> Option<ChannelKey> {
        let of_text = || {
            let (_, named) = self.msg.split_once("channel:")?;
            let (channel, named) = named.split_once(",instId:")?;
            Some(ChannelKey::new(channel, named.split([' ', ',']).next()?))
        };
        self.key().or_else(of_text)
    }

    fn read_event(&self, event: &str) -> Result<OkxEvent, String> {
        let key = || self.key().ok_or_else(|| format!("the event '{event}' has no argument"));
        Ok(match event {
            "subscribe" => OkxEvent::Subscribed(key()?),
            "unsubscribe" => OkxEvent::Unsubscribed(key()?),
            "error" => match (self.refused_channel(), shown(&format!("{}: {}", self.code, self.msg))) {
                (Some(ChannelKey { channel, instrument }), text) => {
                    OkxEvent::ChannelRefused { channel, instrument: Some(instrument), text }
                }
                (None, text) => OkxEvent::Refused(text),
            },
            "notice" if self.code == UPGRADE_NOTICE => OkxEvent::Maintenance,
            "notice" => OkxEvent::Refused(shown(&format!("notice {}: {}", self.code, self.msg))),
            "channel-conn-count-error" => OkxEvent::ChannelRefused {
                channel: self.channel.clone(),
                instrument: None,
                text: shown(&format!(
                    "the channel '{}' has {} connections, which is the limit; close one",
                    self.channel, self.conn_count
                )),
            },
            "channel-conn-count" | "login" => OkxEvent::Ignored,
            _ => return Err(format!("the event '{event}' is unknown")),
        })
    }
}
