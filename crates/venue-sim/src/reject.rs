//! Reasons of rejections.

/// Reason of a `Rejected` or `CancelRejected` report, or of a status report for an unknown order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u16)]
pub enum RejectReason {
    /// A new order's id is zero.
    #[error("the order's id is zero, which means none; number orders from 1")]
    NoId = 1,
    /// A new order's id was used before.
    #[error("the order id was used before; use a new one")]
    DuplicateId = 2,
    /// A code field has no valid code: a side, an order type, an instruction, a kind of mass cancel or another one.
    #[error("a code field holds no known code; is the sender of another version?")]
    UnknownCode = 3,
    /// The venue does not have the instrument.
    #[error("the venue has no such symbol; use an id below its number of symbols")]
    UnknownSymbol = 4,
    /// The quantity is not above zero.
    #[error("the quantity is not above zero; to withdraw an order, cancel it")]
    Quantity = 5,
    /// A limit price is not above zero, or a market order has a price.
    #[error("the price does not fit the order type; a limit is above zero, a market order's price is zero")]
    Price = 6,
    /// No order ever had the id that a cancel, replace or status request names.
    #[error("no order has this id; name the order by the id of its new-order request")]
    UnknownOrder = 7,
    /// The order that a cancel or replace names has ended.
    #[error("the order is filled, canceled, expired or rejected already; there is nothing left to change")]
    TooLate = 8,
    /// The order that a status request names ended on an earlier day.
    #[error("the order was done on an earlier day, of which the venue keeps nothing; look into that day's reports")]
    Forgotten = 9,
    /// The venue is configured to reject some orders, or the order is conditional.
    #[error("the simulated venue is configured to reject some orders, and this is one; send it again under another id")]
    OnOrder = 10,
    /// A post-only order would trade at once, or its replace would, or it is a market, IOC or FOK order.
    #[error("the order is post-only and would trade at once, or cannot rest; send a day or gtc limit further away")]
    PostOnly = 11,
    /// The order is reduce-only, or has a self-trade mode or a trade mode, and the venue has no such feature.
    #[error("the simulated venue knows no reduce-only orders, self-trade modes and trade modes; leave them out")]
    Unsupported = 12,
}

impl RejectReason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::NoId,
        Self::DuplicateId,
        Self::UnknownCode,
        Self::UnknownSymbol,
        Self::Quantity,
        Self::Price,
        Self::UnknownOrder,
        Self::TooLate,
        Self::Forgotten,
        Self::OnOrder,
        Self::PostOnly,
        Self::Unsupported,
    ];

    /// Returns the code in a report's `reason`.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the reason with this code, if the code is valid.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|reject| reject.code() == code)
    }
}
