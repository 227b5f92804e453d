//! Events taken out of a subscription that are no Python objects yet.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::SmallVec;
use tickpath_bus::{LendOutcome, LentMessage, SubscriptionEvent};
use tickpath_market::{self as market, Kind};
use zerocopy::{FromBytes, IntoBytes};

use crate::event::{PyForeign, PyGap, PyMessage, PyTopOfBook, PyTrade, kind_of_records};

/// An event without a Python object: a copy, or a lent message of any kind.
#[derive(Debug)]
pub enum BufferedEvent {
    TopOfBook(PyTopOfBook),
    Trade(PyTrade),
    Message { kind: u8, payload: Payload, stamp: u64, sequence: Option<u64> },
    Foreign { payload: Payload, sequence: Option<u64>, details: Option<Box<str>> },
    Lent(LentMessage),
    Gap(PyGap),
}

/// The payload of a message; common sizes are stored without an allocation.
type Payload = SmallVec<[u8; 64]>;

impl BufferedEvent {
    /// Copies an event.
    #[inline]
    pub fn of(event: &SubscriptionEvent<'_>) -> Self {
        match event {
            SubscriptionEvent::Message(message) => Self::of_message(message),
            SubscriptionEvent::Foreign(foreign) => {
                let (payload, sequence) = (Payload::from_slice(foreign.bytes), foreign.sequence);
                Self::Foreign { payload, sequence, details: foreign.details.map(Box::from) }
            }
            SubscriptionEvent::Gap(gap) => Self::Gap(PyGap::from(*gap)),
        }
    }

    /// Converts the result of lending: a message, the gap before it, or nothing.
    pub fn of_lending(found: LendOutcome) -> Option<Self> {
        match found {
            LendOutcome::Message(lent) => Some(Self::Lent(lent)),
            LendOutcome::Gap(gap) => Some(Self::Gap(PyGap::from(gap))),
            LendOutcome::Nothing => None,
        }
    }

    /// Copies a message, as a tick or a trade if it is one.
    #[inline]
    pub fn of_message(message: &tickpath_bus::Message<'_>) -> Self {
        const TOP_OF_BOOK: u8 = Kind::TopOfBook.code();
        const TRADE: u8 = Kind::Trade.code();
        let tickpath_bus::Message { sequence, stamp, kind, payload, .. } = *message;
        if kind == TOP_OF_BOOK
            && let Ok(m) = market::TopOfBook::read_from_bytes(payload)
        {
            return Self::TopOfBook(PyTopOfBook::of(&m, stamp, sequence));
        }
        if kind == TRADE
            && let Ok(m) = market::Trade::read_from_bytes(payload)
        {
            return Self::Trade(PyTrade::of(&m, stamp, sequence));
        }
        Self::Message { kind, payload: Payload::from_slice(payload), stamp, sequence }
    }

    /// Reports whether this is a copy, and neither a lent message nor a gap.
    pub fn is_copy(&self) -> bool {
        !matches!(self, Self::Lent(_) | Self::Gap(_))
    }

    /// Converts a copied message to a lent message that owns the copy; returns all else unchanged.
    pub fn into_lent(self) -> Self {
        let (kind, payload, stamp, sequence) = match self {
            Self::TopOfBook(tick) => {
                (Kind::TopOfBook.code(), tick.message().as_bytes().to_vec(), tick.stamp, tick.sequence)
            }
            Self::Trade(trade) => {
                (Kind::Trade.code(), trade.message().as_bytes().to_vec(), trade.stamp, trade.sequence)
            }
            Self::Message { kind, payload, stamp, sequence } => (kind, payload.into_vec(), stamp, sequence),
            other => return other,
        };
        Self::Lent(LentMessage::new(sequence, stamp, kind, payload))
    }

    /// Returns the kind of a tick or a trade.
    pub fn kind(&self) -> Option<u8> {
        match self {
            Self::TopOfBook(_) => Some(Kind::TopOfBook.code()),
            Self::Trade(_) => Some(Kind::Trade.code()),
            Self::Lent(lent) => kind_of_records(lent.payload().len()).filter(|&kind| kind == lent.kind),
            _ => None,
        }
    }

    /// Appends the bytes of a tick or a trade, and its stamp.
    pub fn append(&self, records: &mut Vec<u8>, stamps: &mut Vec<u64>) {
        match self {
            Self::TopOfBook(tick) => {
                records.extend_from_slice(tick.message().as_bytes());
                stamps.push(tick.stamp);
            }
            Self::Trade(trade) => {
                records.extend_from_slice(trade.message().as_bytes());
                stamps.push(trade.stamp);
            }
            Self::Lent(lent) => {
                records.extend_from_slice(lent.payload());
                stamps.push(lent.stamp);
            }
            _ => {}
        }
    }

    pub fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = |payload: &[u8]| {
            let filled = PyBytes::new_with(py, payload.len(), |room| {
                room.copy_from_slice(payload);
                Ok(())
            });
            filled.map(Bound::unbind)
        };
        Ok(match self {
            Self::TopOfBook(tick) => Py::new(py, *tick)?.into_any(),
            Self::Trade(trade) => Py::new(py, *trade)?.into_any(),
            Self::Message { kind, payload, stamp, sequence } => {
                let (kind, stamp, sequence) = (*kind, *stamp, *sequence);
                Py::new(py, PyMessage { kind, payload: bytes(payload)?, stamp, sequence })?.into_any()
            }
            Self::Foreign { payload, sequence, details } => {
                let (sequence, details) = (*sequence, details.as_deref().map(str::to_owned));
                Py::new(py, PyForeign { payload: bytes(payload)?, sequence, details })?.into_any()
            }
            // Makes a copy of the lent message.
            Self::Lent(lent) => Self::of_message(&lent.into()).object(py)?,
            Self::Gap(gap) => Py::new(py, *gap)?.into_any(),
        })
    }
}
