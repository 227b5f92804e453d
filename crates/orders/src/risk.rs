//! Why a request is denied, and the table of checks.

use tickpath_market::OrderType;

use crate::AccountLimits;

/// Why a request was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u16)]
pub enum Denial {
    /// A code field holds no known code.
    #[error("a code of the order is not known; is the client of another version?")]
    Malformed = 1,
    /// The journal sequence does not rise.
    #[error("the journal sequence does not rise; the journal is damaged, start from its last good record")]
    Sequence = 2,
    /// The client's id is zero.
    #[error("the client order id is zero; number requests from 1")]
    MissingClientOrderId = 3,
    /// The client's id was used before in this session.
    #[error("the client order id was used before in this session; use a new one")]
    DuplicateClientOrderId = 4,
    /// The account has no limits.
    #[error("the account is not defined; give it limits")]
    UnknownAccount = 5,
    /// The symbol is no instrument.
    #[error("the symbol is not defined; add the instrument")]
    UnknownSymbol = 6,
    /// There is no such order of this session and account.
    #[error("there is no such order in this session and account; name it by the id of its new order")]
    UnknownOrder = 7,
    /// The order has ended or is filled.
    #[error("the order has ended or is filled; there is nothing left to change")]
    TooLate = 8,
    /// A request for this order is on its way.
    #[error("a request for this order is on its way; wait for its answer")]
    AlreadyPending = 9,
    /// The state of the order cannot be known.
    #[error("the state of the order is unknown; cancel it or ask the venue")]
    StateUnknown = 10,
    /// A kill switch is on. Limit 0, value: switches on.
    #[error("a kill switch is on; only cancels pass until it is turned off")]
    KillSwitch = 20,
    /// Too many messages. Limit and value: messages in the window.
    #[error("the account sent too many messages; wait for the next window")]
    MessageRate = 21,
    /// The quantity is not positive, or a replace asks for no more than what is filled. In units of 10⁻⁸.
    #[error("the quantity is too small; ask for more than zero and more than what is filled")]
    MinimumQuantity = 22,
    /// The quantity is too large. In units of 10⁻⁸.
    #[error("the quantity is over the account's limit of one order; split the order")]
    MaximumQuantity = 23,
    /// There is no reference price. Limit 1, value 0.
    #[error("there is no reference price; check the market data of the symbol")]
    NoReference = 24,
    /// The reference price is too old. In ticks.
    #[error("the reference price is too old; check the market data of the symbol")]
    StaleReference = 25,
    /// The limit price is too far from the reference. Distances in units of 10⁻⁸.
    #[error("the price is too far from the reference; price it within the collar")]
    PriceCollar = 26,
    /// The notional is too large. In units of 10⁻¹⁶.
    #[error("the notional is over the account's limit of one order; split the order")]
    Notional = 27,
    /// The position with all working orders would be too large. In units of 10⁻⁸.
    #[error("the position with working orders would pass the account's limit; cancel working orders or trade out")]
    Position = 28,
}

/// Runs the checks in the order of the table; the first that breaks denies.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), Refusal> {
    for check in &CHECKS {
        let (limit, value) = (check.measure)(facts);
        let passes = match check.bound {
            Bound::AtMost => value <= limit,
            Bound::AtLeast => value >= limit,
        };
        if !passes {
            return Err(Refusal { denial: check.denial, limit, value });
        }
    }
    Ok(())
}

/// One check: its denial, and its limit and value, in that order.
struct Check {
    denial: Denial,
    bound: Bound,
    measure: fn(&Facts<'_>) -> (i128, i128),
}

enum Bound {
    AtMost,
    AtLeast,
}

const CHECKS: [Check; 9] = [
    at_most(Denial::KillSwitch, |f| (0, f.kills.into())),
    at_most(Denial::MessageRate, |f| (f.rate_limit(), f.messages.into())),
    at_least(Denial::MinimumQuantity, |f| (f.minimum.into(), f.quantity.into())),
    at_most(Denial::MaximumQuantity, |f| (f.limits.max_order_quantity.0.into(), f.quantity.into())),
    at_least(Denial::NoReference, |f| (1, (f.reference_price != 0).into())),
    at_most(Denial::StaleReference, |f| (f.limits.max_reference_age.into(), f.reference_age.into())),
    at_most(Denial::PriceCollar, |f| (f.collar(), f.distance())),
    at_most(Denial::Notional, |f| (f.limits.max_notional(), f.notional())),
    at_most(Denial::Position, |f| (f.limits.max_position.0.into(), f.reach())),
];

/// What the checks look at.
pub(crate) struct Facts<'a> {
    pub(crate) limits: &'a AccountLimits,
    /// At least 1.
    pub(crate) multiplier: i64,
    pub(crate) kills: u8,
    /// In the open window, this one included.
    pub(crate) messages: u64,
    pub(crate) order_type: OrderType,
    pub(crate) price: i64,
    /// The total after the request.
    pub(crate) quantity: i64,
    /// The least total that makes sense.
    pub(crate) minimum: i64,
    /// How much exposure the request adds.
    pub(crate) increase: i64,
    /// How far the position reaches on the order's side without the increase.
    pub(crate) reach: i128,
    pub(crate) reference_price: i64,
    /// In ticks.
    pub(crate) reference_age: u64,
}

/// A denial with the limit and the value that broke it; both are zero where there is no measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) denial: Denial,
    pub(crate) limit: i128,
    pub(crate) value: i128,
}

impl Facts<'_> {
    fn rate_limit(&self) -> i128 {
        match self.limits.rate_limit {
            0 => i128::MAX,
            limit => limit.into(),
        }
    }

    fn collar(&self) -> i128 {
        i128::from(self.limits.collar) * i128::from(self.reference_price).abs() / 10_000
    }

    fn distance(&self) -> i128 {
        (self.limit_or_reference() - i128::from(self.reference_price)).abs()
    }

    fn notional(&self) -> i128 {
        let value = self.limit_or_reference() * i128::from(self.quantity);
        value.saturating_mul(self.multiplier.into()).saturating_abs()
    }

    /// A market order is valued at the reference.
    fn limit_or_reference(&self) -> i128 {
        match self.order_type {
            OrderType::Limit => self.price.into(),
            OrderType::Market => self.reference_price.into(),
        }
    }

    /// A replace that adds nothing passes, wherever the position stands.
    fn reach(&self) -> i128 {
        match self.increase {
            0 => self.reach.min(self.limits.max_position.0.into()),
            increase => self.reach + i128::from(increase),
        }
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Self { denial, limit: 0, value: 0 }
    }
}

impl Denial {
    /// All denials, in the order of their codes.
    pub const ALL: &'static [Self] = &[
        Self::Malformed,
        Self::Sequence,
        Self::MissingClientOrderId,
        Self::DuplicateClientOrderId,
        Self::UnknownAccount,
        Self::UnknownSymbol,
        Self::UnknownOrder,
        Self::TooLate,
        Self::AlreadyPending,
        Self::StateUnknown,
        Self::KillSwitch,
        Self::MessageRate,
        Self::MinimumQuantity,
        Self::MaximumQuantity,
        Self::NoReference,
        Self::StaleReference,
        Self::PriceCollar,
        Self::Notional,
        Self::Position,
    ];

    /// The code in an [`OrderDenied`](tickpath_market::OrderDenied).
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The denial with this code, if there is one.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|denial| denial.code() == code)
    }
}

const fn at_most(denial: Denial, measure: fn(&Facts<'_>) -> (i128, i128)) -> Check {
    Check { denial, bound: Bound::AtMost, measure }
}

const fn at_least(denial: Denial, measure: fn(&Facts<'_>) -> (i128, i128)) -> Check {
    Check { denial, bound: Bound::AtLeast, measure }
}
