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
    /// The journal sequence does not rise, or fits no id.
    #[error(
        "the journal sequence does not rise, or has more than 40 bits; the journal is damaged, start from its last good record, or it is full, begin a new one"
    )]
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
    /// There is no such order of this session and account, nor one with this id that the session may name.
    #[error(
        "there is no such order in this session and account; name it by the id of its new order, or by the OMS's order id if the session may trade for its account"
    )]
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
    /// The session may not trade for the account.
    #[error("the session may not trade for this account; have it granted, or name another account")]
    NotEntitled = 11,
    /// The order waits here for its venue.
    #[error("the order still waits here for its venue; cancel it, or wait until it has left")]
    StillQueued = 12,
    /// Too many requests wait for the venue. Limit and value: requests.
    #[error("the venue takes nothing, and enough requests wait for it already; send again when it is back")]
    VenueQueue = 13,
    /// The session may not make requests of this kind. Value: the kind, as in
    /// [`SessionRules::withheld`](crate::SessionRules::withheld).
    #[error("the session may not make requests of this kind; have the kind added to its rights")]
    NotPermitted = 14,
    /// The journal's disk has failed.
    #[error("the journal's disk has failed; only cancels pass until the OMS is started on a sound one")]
    DiskFailed = 19,
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
    /// The reference price is too old. In nanoseconds.
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
    /// The request was sent too long ago. In nanoseconds.
    #[error("the request is too old: it waited on its way, or here; send it again if it is still meant")]
    RequestAge = 29,
    /// Too many orders are open. Limit and value: orders.
    #[error("the account has too many open orders; cancel some")]
    OpenOrders = 30,
    /// What the account has traded and has open would be worth too much. In units of 10⁻¹⁶.
    #[error(
        "the account's credit is used up by what it traded and has open; cancel working orders or raise the credit"
    )]
    Credit = 31,
}

/// One row of the table of the checks.
struct Check {
    denial: Denial,
    /// What its limit is called in the configuration, and what it measures.
    limit: &'static str,
    what: &'static str,
}

/// From one table its documentation, and the checks one after the other: called through pointers they took a third of
/// the core's time.
macro_rules! checks {
    ($($denial:ident: $value:expr, $bound:ident $limit:expr; $name:literal, $what:literal;)+) => {
        const CHECKS: &[Check] = &[$(Check { denial: Denial::$denial, limit: $name, what: $what },)+];

        /// Runs the checks in the order of the table; the first that breaks denies.
        #[inline]
        pub(crate) fn check(facts: &Facts<'_>) -> Result<(), Refusal> {
            $(
                let limit: i128 = inlined($limit, facts);
                let value = || -> i128 { inlined($value, facts) };
                if !$bound(limit, value) {
                    return Err(Refusal { denial: Denial::$denial, limit, value: value() });
                }
            )+
            Ok(())
        }
    };
}

#[rustfmt::skip]
checks! {
    DiskFailed: |f| f.disk_failed.into(), at_most |_| 0;
        "", "the journal's disk has failed";
    KillSwitch: |f| f.kills.into(), at_most |_| 0;
        "", "kill switches that cover the request: of all, of the account, of the symbol";
    MessageRate: |f| f.messages.into(), at_most |f| unless_zero(f.limits.rate_limit);
        "rate_limit", "messages of the account in a window of `rate_window_ns`";
    RequestAge: |f| f.request_age_ns.into(), at_most |f| unless_zero(f.limits.max_request_age_ns);
        "max_request_age_ns", "time since the client sent the request";
    MinimumQuantity: |f| f.quantity.into(), at_least |f| f.minimum.into();
        "", "the quantity: above zero, and above what is filled";
    MaximumQuantity: |f| f.quantity.into(), at_most |f| f.limits.max_order_quantity.0.into();
        "max_order_quantity", "the quantity of one order";
    NoReference: |f| (f.reference_price != 0).into(), at_least |_| 1;
        "", "that the symbol has a reference price";
    StaleReference: |f| f.reference_age_ns.into(), at_most |f| f.limits.max_reference_age_ns.into();
        "max_reference_age_ns", "age of the reference price";
    PriceCollar: |f| f.distance(), at_most |f| f.collar();
        "collar", "distance of the limit price from the reference, in basis points of it";
    Notional: |f| f.notional(), at_most |f| f.limits.max_notional();
        "max_notional", "price × quantity × multiplier of one order";
    Position: |f| f.reach(), at_most |f| f.limits.max_position.0.into();
        "max_position", "the position in the symbol if all that works on the order's side is filled";
    OpenOrders: |f| f.open_orders.into(), at_most |f| unless_zero(f.limits.max_open_orders);
        "max_open_orders", "live orders of the account, this one included";
    Credit: |f| f.credit_used(), at_most |f| f.limits.credit().unwrap_or(i128::MAX);
        "credit", "value of what the account traded since the day began and of what its open orders may still trade";
}

/// Nothing is measured against no limit.
#[inline(always)]
fn at_most(limit: i128, value: impl Fn() -> i128) -> bool {
    limit == i128::MAX || value() <= limit
}

#[inline(always)]
fn at_least(limit: i128, value: impl Fn() -> i128) -> bool {
    value() >= limit
}

/// A limit of zero is none.
#[inline(always)]
fn unless_zero(limit: impl Into<i128>) -> i128 {
    match limit.into() {
        0 => i128::MAX,
        limit => limit,
    }
}

#[inline(always)]
fn inlined(measure: impl Fn(&Facts<'_>) -> i128, facts: &Facts<'_>) -> i128 {
    measure(facts)
}

/// A value times an instrument's multiplier, as far as 128 bits go.
#[inline]
pub(crate) fn times(value: i128, multiplier: i64) -> i128 {
    // Most have none, and a product with a check costs as much as all else.
    if multiplier == 1 { value } else { value.saturating_mul(multiplier.into()) }
}

/// The checks in the order in which they are made, as rows of a Markdown table.
pub fn checks_table() -> String {
    let mut table = String::from("| code | denial | limit | what is measured |\n|---|---|---|---|\n");
    for Check { denial, limit, what } in CHECKS {
        let limit = if limit.is_empty() { String::new() } else { format!("`{limit}`") };
        table.push_str(&format!("| {} | {denial:?} | {limit} | {what} |\n", denial.code()));
    }
    table
}

/// What the checks look at.
pub(crate) struct Facts<'a> {
    pub(crate) limits: &'a AccountLimits,
    /// At least 1.
    pub(crate) multiplier: i64,
    pub(crate) kills: u8,
    pub(crate) disk_failed: bool,
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
    pub(crate) reference_age_ns: u64,
    pub(crate) request_age_ns: u64,
    /// Live orders of the account with this one.
    pub(crate) open_orders: u32,
    /// What the account has traded and has open without the request.
    pub(crate) used: i128,
    /// What the order would add to that, and what it holds of it already.
    pub(crate) adds: i64,
    pub(crate) holds: i128,
}

/// A denial with the limit and the value that broke it; both are zero where there is no measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) denial: Denial,
    pub(crate) limit: i128,
    pub(crate) value: i128,
}

impl Facts<'_> {
    /// With the order as it would be; one that takes no more than it holds passes, however the account stands.
    fn credit_used(&self) -> i128 {
        let each = self.limit_or_reference().saturating_abs();
        let wanted = times(each * i128::from(self.adds), self.multiplier);
        match wanted <= self.holds {
            true => 0,
            false => self.used.saturating_sub(self.holds).saturating_add(wanted),
        }
    }

    fn collar(&self) -> i128 {
        let (collar, reference) = (u64::from(self.limits.collar), self.reference_price.unsigned_abs());
        match collar.checked_mul(reference) {
            Some(product) => (product / 10_000).into(),
            None => i128::from(collar) * i128::from(reference) / 10_000,
        }
    }

    fn distance(&self) -> i128 {
        (self.limit_or_reference() - i128::from(self.reference_price)).abs()
    }

    fn notional(&self) -> i128 {
        times(self.limit_or_reference() * i128::from(self.quantity), self.multiplier).saturating_abs()
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
        Self::NotEntitled,
        Self::StillQueued,
        Self::VenueQueue,
        Self::NotPermitted,
        Self::DiskFailed,
        Self::KillSwitch,
        Self::MessageRate,
        Self::MinimumQuantity,
        Self::MaximumQuantity,
        Self::NoReference,
        Self::StaleReference,
        Self::PriceCollar,
        Self::Notional,
        Self::Position,
        Self::RequestAge,
        Self::OpenOrders,
        Self::Credit,
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
