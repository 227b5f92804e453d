//! Channels, and subscriptions to them.

use serde_json::Value;
use tickpath_venue_sim_web::{SimDesk, SimInstrument};

use crate::codes::{FEE_TIER, ILLEGAL_REQUEST, LOGIN_NEEDED, OkxRefusal, UNKNOWN_CHANNEL};
use crate::fields::{Row, text_field};
use crate::instruments::{instrument_family, instrument_named, instrument_type};

/// A channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OkxChannel {
    /// Best bid and offer.
    Quotes,
    /// Books of 400 levels, every 10 ms.
    FastBooks,
    /// Books of 400 levels, every 100 ms.
    Books,
    /// Books of five levels.
    Books5,
    Trades,
    Tickers,
    Instruments,
    Orders,
    Fills,
    Account,
    Positions,
    BalanceAndPosition,
}

/// Path of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndPoint {
    Public,
    Private,
    Business,
}

/// A subscription of a connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChannelSubscription {
    pub(crate) channel: OkxChannel,
    /// Argument of the request, which acknowledgements and pushes repeat.
    pub(crate) argument: Row,
    /// Index of the instrument; none for all.
    instrument: Option<usize>,
    /// Type of the instruments; none for all.
    kind: Option<String>,
    /// Family of the instruments; none for all.
    family: Option<String>,
}

/// Channels with their names.
const CHANNELS: [(OkxChannel, &str); 12] = [
    (OkxChannel::Quotes, "bbo-tbt"),
    (OkxChannel::FastBooks, "books-l2-tbt"),
    (OkxChannel::Books, "books"),
    (OkxChannel::Books5, "books5"),
    (OkxChannel::Trades, "trades"),
    (OkxChannel::Tickers, "tickers"),
    (OkxChannel::Instruments, "instruments"),
    (OkxChannel::Orders, "orders"),
    (OkxChannel::Fills, "fills"),
    (OkxChannel::Account, "account"),
    (OkxChannel::Positions, "positions"),
    (OkxChannel::BalanceAndPosition, "balance_and_position"),
];

/// Types of instruments that a subscription may name.
const TYPES: [&str; 7] = ["SPOT", "MARGIN", "SWAP", "FUTURES", "OPTION", "EVENTS", "ANY"];

impl OkxChannel {
    /// Returns the channel's name.
    pub(crate) fn name(self) -> &'static str {
        CHANNELS.iter().find(|(channel, _)| *channel == self).map_or("", |(_, name)| *name)
    }

    /// Returns whether the channel has data of an account.
    pub(crate) fn is_private(self) -> bool {
        use OkxChannel::{Account, BalanceAndPosition, Fills, Orders, Positions};
        matches!(self, Orders | Fills | Account | Positions | BalanceAndPosition)
    }

    /// Returns whether OKX counts the connections of an account that have the channel.
    pub(crate) fn is_counted(self) -> bool {
        self.is_private() && self != Self::Fills
    }

    /// Returns whether a subscription names one instrument.
    fn needs_instrument(self) -> bool {
        !self.is_private() && self != Self::Instruments
    }

    /// Returns whether a subscription names a type of instruments.
    fn needs_type(self) -> bool {
        matches!(self, Self::Orders | Self::Positions | Self::Instruments)
    }
}

impl ChannelSubscription {
    /// Reads an argument of a subscribe or unsubscribe request, whose text refusals repeat.
    pub(crate) fn read(argument: &Value, request: &str, sim: &SimDesk) -> Result<Self, OkxRefusal> {
        let illegal = || ILLEGAL_REQUEST.about(request);
        let Value::Object(fields) = argument else { return Err(illegal()) };
        let name = text_field(argument, "channel").ok_or_else(illegal)?;
        let (instrument_name, kind) = (text_field(argument, "instId"), text_field(argument, "instType"));
        let unknown = || UNKNOWN_CHANNEL.about(&described(&name, instrument_name.as_deref()));
        let (channel, _) = *CHANNELS.iter().find(|(_, known)| *known == name).ok_or_else(unknown)?;
        let instrument = match &instrument_name {
            Some(name) => Some(instrument_named(sim, name).ok_or_else(unknown)?),
            None if channel.needs_instrument() => return Err(illegal()),
            None => None,
        };
        match &kind {
            Some(kind) if !TYPES.contains(&kind.as_str()) => return Err(unknown()),
            None if channel.needs_type() => return Err(illegal()),
            _ => {}
        }
        let kind = kind.filter(|kind| kind != "ANY");
        let family = text_field(argument, "instFamily");
        Ok(Self { channel, argument: fields.clone(), instrument, kind, family })
    }

    /// Checks whether a connection may have the subscription.
    pub(crate) fn check(&self, end_point: EndPoint, is_logged_in: bool) -> Result<(), OkxRefusal> {
        let place = if self.channel.is_private() { EndPoint::Private } else { EndPoint::Public };
        if end_point != place {
            let name = self.argument.get("instId").and_then(Value::as_str);
            return Err(UNKNOWN_CHANNEL.about(&described(self.channel.name(), name)));
        }
        match self.channel {
            OkxChannel::FastBooks if !is_logged_in => Err(FEE_TIER.refusal()),
            channel if channel.is_private() && !is_logged_in => Err(LOGIN_NEEDED.refusal()),
            _ => Ok(()),
        }
    }

    /// Returns the index of the subscription's instrument, if it names one.
    pub(crate) fn instrument(&self) -> Option<usize> {
        self.instrument
    }

    /// Returns whether the subscription has events of this channel and instrument; of no instrument for events of a
    /// whole account.
    pub(crate) fn has(&self, channel: OkxChannel, instrument: Option<(usize, &SimInstrument)>) -> bool {
        if self.channel != channel {
            return false;
        }
        let Some((index, instrument)) = instrument else { return true };
        self.instrument.is_none_or(|own| own == index)
            && self.kind.as_ref().is_none_or(|kind| kind == instrument_type(instrument))
            && self.family.as_ref().is_none_or(|family| *family == instrument_family(instrument))
    }
}

/// Returns the subject of a refusal of a channel, as OKX writes it.
fn described(channel: &str, instrument: Option<&str>) -> String {
    match instrument {
        Some(instrument) => format!("channel:{channel},instId:{instrument}"),
        None => format!("channel:{channel}"),
    }
}
