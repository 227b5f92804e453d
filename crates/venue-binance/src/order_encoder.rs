//! New orders as text, without a connection: to measure the encoding, and to compare it.

use tickpath_market::Request;

use crate::config::LineInstrument;
use crate::credentials::{ApiCredentials, CredentialsError};
use crate::encode::{PlacedOrder, RequestEncoder, RequestId};
use crate::identity::{OmsTag, OrderIdentity, TextUse};
use crate::instruments::InstrumentTable;
use crate::signer::RequestSigner;
use crate::terms::OrderTerms;

/// The writer of new orders that a line has, alone. It writes into the same buffers again and again.
pub struct OrderEncoder {
    encoder: RequestEncoder,
    instruments: InstrumentTable,
    tag: OmsTag,
}

impl OrderEncoder {
    /// Makes the encoder of an OMS, by the id of its journal, for these instruments. The form of the secret decides
    /// whether orders are signed, as for [`RequestSigner`].
    pub fn new(
        credentials: ApiCredentials,
        instruments: Vec<LineInstrument>,
        recv_window_ms: u32,
        oms: u64,
    ) -> Result<Self, CredentialsError> {
        let encoder = RequestEncoder::new(RequestSigner::new(credentials)?, recv_window_ms);
        Ok(Self { encoder, instruments: InstrumentTable::new(instruments), tag: OmsTag::of(oms) })
    }

    /// Returns the text that a line sends for a new order with this number. The exchange's time is in milliseconds since
    /// the Unix epoch. None for any other request, and for an order that a line refuses.
    #[inline]
    pub fn encode(&mut self, number: u64, request: &Request, timestamp_ms: u64) -> Option<&str> {
        let Request::New(new) = request else { return None };
        let instrument = self.instruments.get(self.instruments.find_symbol(new.symbol)?);
        let terms = OrderTerms::of_new(new, instrument).ok()?;
        let identity = OrderIdentity::first(new.client_order_id.0, new.account);
        let order = NewOrderText { identity: &identity, tag: self.tag, symbol: &instrument.name, terms: &terms };
        order.write(&mut self.encoder, number, timestamp_ms);
        Some(self.encoder.text())
    }
}

/// A new order as it is written.
pub(crate) struct NewOrderText<'a> {
    pub(crate) identity: &'a OrderIdentity,
    pub(crate) tag: OmsTag,
    pub(crate) symbol: &'a str,
    pub(crate) terms: &'a OrderTerms,
}

impl NewOrderText<'_> {
    /// Writes the order as the request with this number.
    // Not inlined: a copy of the code would keep nothing warm.
    #[inline(never)]
    pub(crate) fn write(&self, encoder: &mut RequestEncoder, number: u64, timestamp_ms: u64) {
        let text = self.identity.text(self.tag, TextUse::Order);
        let placed = PlacedOrder { symbol: self.symbol, text: text.as_str(), terms: self.terms };
        encoder.place(RequestId::Number(number), &placed, timestamp_ms);
    }
}
