//! Events taken out of a subscription that are no Python objects yet.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::SmallVec;
use tickpath_bus::{LendOutcome, LentMessage, SubscriptionEvent};
use tickpath_market::{self as market, Kind};
use zerocopy::{FromBytes, IntoBytes};

use crate::book_event::{PyBookLevel, PyFeedStatus};
use crate::event::{PyForeign, PyGap, PyMessage, PyTopOfBook, PyTrade};
use crate::record::record_bytes;

/// An event without a Python object: a copy, or a lent message of any kind.
#[derive(Debug)]
pub enum BufferedEvent {
    TopOfBook(PyTopOfBook),
    Trade(PyTrade),
    BookLevel(PyBookLevel),
    FeedStatus(PyFeedStatus),
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

    /// Copies a message, as an event of its own class if its kind has one.
    #[inline]
    pub fn of_message(message: &tickpath_bus::Message<'_>) -> Self {
        const TOP_OF_BOOK: u8 = Kind::TopOfBook.code();
        const TRADE: u8 = Kind::Trade.code();
        const BOOK_LEVEL: u8 = Kind::BookLevel.code();
        const FEED_STATUS: u8 = Kind::FeedStatus.code();
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
        if kind == BOOK_LEVEL
            && let Ok(m) = market::BookLevel::read_from_bytes(payload)
        {
            return Self::BookLevel(PyBookLevel::of(&m, stamp, sequence));
        }
        if kind == FEED_STATUS
            && let Ok(m) = market::FeedStatus::read_from_bytes(payload)
        {
            return Self::FeedStatus(PyFeedStatus::of(&m, stamp, sequence));
        }
        Self::Message { kind, payload: Payload::from_slice(payload), stamp, sequence }
    }

    /// Reports whether this is a copy, and neither a lent message nor a gap.
    pub fn is_copy(&self) -> bool {
        !matches!(self, Self::Lent(_) | Self::Gap(_))
    }

    /// Converts a copied message to a lent message that owns the copy; returns all else unchanged.
    pub fn into_lent(self) -> Self {
        let lent = self.with_record(|kind, payload, stamp, sequence| {
            LentMessage::new(sequence, stamp, kind.code(), payload.to_vec())
        });
        match (lent, self) {
            (Some(lent), _) => Self::Lent(lent),
            (None, Self::Message { kind, payload, stamp, sequence }) => {
                Self::Lent(LentMessage::new(sequence, stamp, kind, payload.into_vec()))
            }
            (None, other) => other,
        }
    }

    /// Returns the kind of a record.
    pub fn kind(&self) -> Option<u8> {
        match self {
            Self::Lent(lent) => {
                record_bytes(lent.kind).filter(|&bytes| bytes == lent.payload().len()).map(|_| lent.kind)
            }
            other => other.with_record(|kind, _, _, _| kind.code()),
        }
    }

    /// Appends the bytes of a record, and its stamp.
    pub fn append(&self, records: &mut Vec<u8>, stamps: &mut Vec<u64>) {
        let mut append = |payload: &[u8], stamp| {
            records.extend_from_slice(payload);
            stamps.push(stamp);
        };
        match self {
            Self::Lent(lent) => append(lent.payload(), lent.stamp),
            other => {
                other.with_record(|_, payload, stamp, _| append(payload, stamp));
            }
        }
    }

    /// Passes the kind, the bytes, the stamp and the sequence number of a copied record to `act`.
    fn with_record<R>(&self, act: impl FnOnce(Kind, &[u8], u64, Option<u64>) -> R) -> Option<R> {
        Some(match self {
            Self::TopOfBook(one) => act(Kind::TopOfBook, one.message().as_bytes(), one.stamp, one.sequence),
            Self::Trade(one) => act(Kind::Trade, one.message().as_bytes(), one.stamp, one.sequence),
            Self::BookLevel(one) => act(Kind::BookLevel, one.message().as_bytes(), one.stamp, one.sequence),
            Self::FeedStatus(one) => act(Kind::FeedStatus, one.message().as_bytes(), one.stamp, one.sequence),
            _ => return None,
        })
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
            Self::BookLevel(level) => Py::new(py, *level)?.into_any(),
            Self::FeedStatus(status) => Py::new(py, *status)?.into_any(),
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
