//! The denial codes, and the table of checks. Design: `docs/design/order-path.md`.

use tickpath_market::OrderType;

use crate::AccountLimits;

/// Reason of a denial.
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
    /// The symbol has no instrument.
    #[error("the symbol is not defined; add the instrument")]
    UnknownSymbol = 6,
    /// The session and account have no such order, and the session may not name one with this id.
    #[error(
        "there is no such order in this session and account; name it by the id of its new order, or by the OMS's order id if the session may trade for its account"
    )]
    UnknownOrder = 7,
    /// The order has ended or is filled.
    #[error("the order has ended or is filled; there is nothing left to change")]
    TooLate = 8,
    /// Another request for this order is in flight.
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
    /// The OMS receives no ticks.
    #[error("this OMS sees no ticks, so no trigger would ever fire; name their topic in its file: ticks = \"TOPIC\"")]
    NoTicks = 15,
    /// The order has no trigger, or it has fired.
    #[error("the order waits for no trigger: it has none, or it has fired; replace its price and quantity alone")]
    NotArmed = 16,
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
    /// The request is too old. In nanoseconds.
    #[error("the request is too old: it waited on its way, or here; send it again if it is still meant")]
    RequestAge = 29,
    /// Too many orders are open. Limit and value: orders.
    #[error("the account has too many open orders; cancel some")]
    OpenOrders = 30,
    /// The account's traded and open value would be too large. In units of 10⁻¹⁶.
    #[error(
        "the account's credit is used up by what it traded and has open; cancel working orders or raise the credit"
    )]
    Credit = 31,
    /// The instrument does not trade now. Limit 1, value 0.
    #[error("the instrument does not trade at this time of the day; send it when it does")]
    TradingHours = 32,
    /// The symbol is restricted. Limit 0, value: restrictions.
    #[error("the symbol is restricted, for all or for this account; only cancels pass")]
    Restricted = 33,
    /// The instrument trades in another currency than the account. Limit 0, value 1.
    #[error("the instrument trades in another currency than the account; name an account of that currency")]
    Currency = 34,
    /// The price is no multiple of the tick size. Limit: the tick size, value: the price; units of 10⁻⁸.
    #[error("the price is no whole multiple of the tick size; round it")]
    TickSize = 35,
    /// The quantity is no multiple of the lot. Limit: the lot, value: the quantity; units of 10⁻⁸.
    #[error("the quantity is no whole multiple of the lot; round it")]
    Lot = 36,
    /// The price is below the band. In units of 10⁻⁸.
    #[error("the price is below the instrument's band; price it within")]
    LowestPrice = 37,
    /// The price is above the band. In units of 10⁻⁸.
    #[error("the price is above the instrument's band; price it within")]
    HighestPrice = 38,
    /// Too many messages of the session. Limit and value: messages in the window.
    #[error("the session sent too many messages; wait for the next window")]
    SessionRate = 39,
    /// Too many messages for the symbol. Limit and value: messages in the window.
    #[error("too many orders and replaces came for the symbol; wait for the next window")]
    SymbolRate = 40,
    /// Too many messages of the firm. Limit and value: messages in the window.
    #[error("the firm's accounts sent too many messages; wait for the next window")]
    FirmRate = 41,
    /// Too many messages for so few fills. Limit and value: messages of the day.
    #[error("the account sent too many messages today for what it traded; only cancels pass until more is filled")]
    OrderToTrade = 42,
    /// The order equals one that passed just before. Limit and value: nanoseconds.
    #[error("an order like this one was let through just before; send it again later if it is meant")]
    DuplicateOrder = 43,
    /// The quantity is over the session's limit. In units of 10⁻⁸.
    #[error("the quantity is over the session's limit of one order; split the order")]
    SessionQuantity = 44,
    /// The notional is over the session's limit. In units of 10⁻¹⁶.
    #[error("the notional is over the session's limit of one order; split the order")]
    SessionNotional = 45,
    /// The quantity is over the account's limit in the symbol. In units of 10⁻⁸.
    #[error("the quantity is over the account's limit of one order in this symbol; split the order")]
    SymbolQuantity = 46,
    /// The position in the symbol would be too large. In units of 10⁻⁸.
    #[error(
        "the position with working orders would pass the account's limit in this symbol; cancel working orders or trade out"
    )]
    SymbolPosition = 47,
    /// The account would be short. Limit 0, value: the short quantity, in units of 10⁻⁸.
    #[error("the account may not sell this symbol short; sell no more than it has, working orders included")]
    ShortSale = 48,
    /// The quantity is over the firm's limit. In units of 10⁻⁸.
    #[error("the quantity is over the firm's limit of one order; split the order")]
    FirmQuantity = 49,
    /// The notional is over the firm's limit. In units of 10⁻¹⁶.
    #[error("the notional is over the firm's limit of one order; split the order")]
    FirmNotional = 50,
    /// Too many orders of the firm are open. Limit and value: orders.
    #[error("the firm's accounts have too many open orders; cancel some")]
    FirmOpenOrders = 51,
    /// The firm's traded and open value would be too large. In units of 10⁻¹⁶.
    #[error(
        "the firm's credit is used up by what its accounts traded and have open; cancel working orders or raise the credit"
    )]
    FirmCredit = 52,
    /// The account would trade with itself. Limit: the price of the other order, value: that of this one; in units of 10⁻⁸.
    #[error(
        "the order would meet one of its own account on the other side; cancel that one first, or name another price"
    )]
    SelfMatch = 53,
    /// The account's positions would be worth too much. In units of 10⁻¹⁶.
    #[error(
        "the account's positions with working orders would be worth more than its limit; cancel working orders or trade out"
    )]
    GrossValue = 54,
    /// The account has lost too much today. In units of 10⁻¹⁶.
    #[error("the account has lost more today than it may; only cancels and orders that close positions pass")]
    DailyLoss = 55,
}

/// A row of the table of checks.
pub(crate) struct CheckRow {
    pub(crate) denial: Denial,
    /// File of the limit, its name there, and the measured value.
    pub(crate) place: &'static str,
    pub(crate) limit: &'static str,
    pub(crate) what: &'static str,
}

/// Unit of a denial's limit and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureUnit {
    /// No unit: the reason alone explains the denial.
    Nothing,
    /// Messages, orders, requests.
    Count,
    /// Prices and quantities, in units of 10⁻⁸.
    Decimal,
    /// Amounts of currency, in units of 10⁻¹⁶.
    Money,
    /// Times, in nanoseconds.
    Nanoseconds,
}

/// Makes the documentation and the checks from one table. The checks are inlined in sequence: called through pointers,
/// they took a third of the core's time.
macro_rules! checks {
    ($check:ident of $facts:ident, $table:ident;
     $($denial:ident: $value:expr, $bound:ident $limit:expr; $place:literal $name:literal, $what:literal;)+) => {
        pub(crate) const $table: &[CheckRow] =
            &[$(CheckRow { denial: Denial::$denial, place: $place, limit: $name, what: $what },)+];

        /// Runs the checks in the order of the table and returns the first denial.
        #[inline]
        pub fn $check(facts: &$facts<'_>) -> Result<(), Breach> {
            $(
                let limit: i128 = inlined::<$facts<'_>>($limit, facts);
                let value = || -> i128 { inlined::<$facts<'_>>($value, facts) };
                if !$bound(limit, value) {
                    return Err(Breach { denial: Denial::$denial, limit, value: value() });
                }
            )+
            Ok(())
        }
    };
}
pub(crate) use checks;

#[rustfmt::skip]
checks! {
    check of RiskFacts, CHECKS;
    DiskFailed: |f| f.disk_failed.into(), at_most |_| 0;
        "" "", "the journal's disk has failed";
    KillSwitch: |f| f.kills.into(), at_most |_| 0;
        "" "", "kill switches that cover the request: of all, of the account, of the symbol";
    MessageRate: |f| f.messages.into(), at_most |f| unless_zero(f.limits.rate_limit);
        "accounts.csv" "rate_limit", "messages of the account in a window of `rate_window_ns`";
    RequestAge: |f| f.request_age_ns.into(), at_most |f| unless_zero(f.limits.max_request_age_ns);
        "accounts.csv" "max_request_age_ns", "time since the client sent the request";
    MinimumQuantity: |f| f.quantity.into(), at_least |f| f.minimum.into();
        "" "", "the quantity: above zero, and above what is filled";
    MaximumQuantity: |f| f.quantity.into(), at_most |f| f.limits.max_order_quantity.0.into();
        "accounts.csv" "max_order_quantity", "the quantity of one order";
    NoReference: |f| (f.reference_price != 0).into(), at_least |_| 1;
        "" "", "that the symbol has a reference price";
    StaleReference: |f| f.reference_age_ns.into(), at_most |f| f.limits.max_reference_age_ns.into();
        "accounts.csv" "max_reference_age_ns", "age of the reference price";
    PriceCollar: |f| f.distance(), at_most |f| f.collar();
        "accounts.csv" "collar", "distance of the limit price from the reference, in basis points of it";
    Notional: |f| f.notional(), at_most |f| f.limits.max_notional();
        "accounts.csv" "max_notional", "price × quantity × multiplier of one order";
    Position: |f| f.position_if_filled(), at_most |f| f.limits.max_position.0.into();
        "accounts.csv" "max_position", "the position in the symbol if all that works on the order's side is filled";
    OpenOrders: |f| f.open_orders.into(), at_most |f| unless_zero(f.limits.max_open_orders);
        "accounts.csv" "max_open_orders", "live orders of the account, this one included";
    Credit: |f| f.credit_used(), at_most |f| f.limits.credit().unwrap_or(i128::MAX);
        "accounts.csv" "credit", "value of what the account traded since the day began and of what its open orders may still trade";
}

/// Computes no value where there is no limit.
#[inline(always)]
pub(crate) fn at_most(limit: i128, value: impl Fn() -> i128) -> bool {
    limit == i128::MAX || value() <= limit
}

#[inline(always)]
pub(crate) fn at_least(limit: i128, value: impl Fn() -> i128) -> bool {
    value() >= limit
}

/// Converts a limit of zero to none (`i128::MAX`).
#[inline(always)]
pub(crate) fn unless_zero(limit: impl Into<i128>) -> i128 {
    match limit.into() {
        0 => i128::MAX,
        limit => limit,
    }
}

/// Passes values that are whole multiples of the limit.
#[inline(always)]
pub(crate) fn divided_by(limit: i128, value: impl Fn() -> i128) -> bool {
    limit == 0 || value() % limit == 0
}

#[inline(always)]
pub(crate) fn inlined<F>(measure: impl Fn(&F) -> i128, facts: &F) -> i128 {
    measure(facts)
}

/// Cap on the value of an order, a fill or a position, so that sums over all slots fit 128 bits.
pub const MAX_VALUE: i128 = 1 << 94;

/// Returns a value times an instrument's multiplier, saturated at 128 bits.
#[inline]
pub fn times_multiplier(value: i128, multiplier: i64) -> i128 {
    // Most multipliers are 1, and a checked product costs as much as all other checks.
    if multiplier == 1 { value } else { value.saturating_mul(multiplier.into()) }
}

/// Facts for the checks. Prices and quantities are in units of 10⁻⁸, values in units of 10⁻¹⁶ of the currency.
pub struct RiskFacts<'a> {
    /// Limits of the order's account.
    pub limits: &'a AccountLimits,
    /// Multiplier of the instrument. At least 1.
    pub multiplier: i64,
    /// Number of kill switches that cover the request.
    pub kills: u8,
    /// The journal's disk has failed.
    pub disk_failed: bool,
    /// Messages of the account in the open window, this message included.
    pub messages: u64,
    /// Limit or market.
    pub order_type: OrderType,
    /// Limit price after the request.
    pub price: i64,
    /// Total quantity after the request.
    pub quantity: i64,
    /// Smallest total quantity that makes sense.
    pub minimum: i64,
    /// Quantity of exposure that the request adds.
    pub increase: i64,
    /// Position on the order's side with working orders, without the increase.
    pub worst_position: i128,
    /// Reference price; zero if there is none.
    pub reference_price: i64,
    /// Age of the reference price, in nanoseconds.
    pub reference_age_ns: u64,
    /// Time since the client sent the request, in nanoseconds.
    pub request_age_ns: u64,
    /// Live orders of the account, this order included.
    pub open_orders: u32,
    /// Traded and open value of the account without the request.
    pub used: i128,
    /// Quantity that the request adds to the open value.
    pub added_quantity: i64,
    /// Value that the order holds already.
    pub held_value: i128,
    /// Part of `used` that belongs to the request itself, because it has waited.
    pub own_used: i128,
}

/// A denial with its limit and the value that broke it; both are zero where there is no measure.
#[derive(Debug, Clone, Copy)]
pub struct Breach {
    /// Reason of the denial.
    pub denial: Denial,
    /// Limit, in the units of [`Denial::measure`].
    pub limit: i128,
    /// Value of the request, in the same units.
    pub value: i128,
}

impl RiskFacts<'_> {
    /// Returns the account's used credit with the order. An order that needs no more than it holds passes at any
    /// credit.
    #[inline]
    fn credit_used(&self) -> i128 {
        self.used_with(self.used)
    }

    /// Returns the used value with the order, given the value used without it.
    #[inline]
    pub(crate) fn used_with(&self, used: i128) -> i128 {
        let each = self.limit_or_reference().saturating_abs();
        let wanted = times_multiplier(each * i128::from(self.added_quantity), self.multiplier);
        match wanted <= self.held_value {
            true => 0,
            false => used.saturating_sub(self.held_value).saturating_add(wanted),
        }
    }

    #[inline]
    fn collar(&self) -> i128 {
        let (collar, reference) = (u64::from(self.limits.collar), self.reference_price.unsigned_abs());
        match collar.checked_mul(reference) {
            Some(product) => (product / 10_000).into(),
            None => i128::from(collar) * i128::from(reference) / 10_000,
        }
    }

    #[inline]
    fn distance(&self) -> i128 {
        (self.limit_or_reference() - i128::from(self.reference_price)).abs()
    }

    #[inline]
    pub(crate) fn notional(&self) -> i128 {
        times_multiplier(self.limit_or_reference() * i128::from(self.quantity), self.multiplier).saturating_abs()
    }

    /// Returns the price that values the order: the limit, or the reference of a market order.
    #[inline]
    pub fn limit_or_reference(&self) -> i128 {
        match self.order_type {
            OrderType::Limit => self.price.into(),
            OrderType::Market => self.reference_price.into(),
        }
    }

    /// Returns the position if the request is filled. A replace that adds nothing passes at any position.
    #[inline]
    fn position_if_filled(&self) -> i128 {
        match self.increase {
            0 => self.worst_position.min(self.limits.max_position.0.into()),
            increase => self.worst_position + i128::from(increase),
        }
    }
}

impl From<Denial> for Breach {
    #[inline]
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
        Self::NoTicks,
        Self::NotArmed,
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
        Self::TradingHours,
        Self::Restricted,
        Self::Currency,
        Self::TickSize,
        Self::Lot,
        Self::LowestPrice,
        Self::HighestPrice,
        Self::SessionRate,
        Self::SymbolRate,
        Self::FirmRate,
        Self::OrderToTrade,
        Self::DuplicateOrder,
        Self::SessionQuantity,
        Self::SessionNotional,
        Self::SymbolQuantity,
        Self::SymbolPosition,
        Self::ShortSale,
        Self::FirmQuantity,
        Self::FirmNotional,
        Self::FirmOpenOrders,
        Self::FirmCredit,
        Self::SelfMatch,
        Self::GrossValue,
        Self::DailyLoss,
    ];

    /// Returns the unit of its limit and value.
    pub const fn measure(self) -> MeasureUnit {
        match self {
            Self::Malformed
            | Self::Sequence
            | Self::MissingClientOrderId
            | Self::DuplicateClientOrderId
            | Self::UnknownAccount
            | Self::UnknownSymbol
            | Self::UnknownOrder
            | Self::TooLate
            | Self::AlreadyPending
            | Self::StateUnknown
            | Self::NotEntitled
            | Self::StillQueued
            | Self::NotPermitted
            | Self::NoTicks
            | Self::NotArmed
            | Self::DiskFailed
            | Self::KillSwitch
            | Self::NoReference
            | Self::TradingHours
            | Self::Restricted
            | Self::Currency => MeasureUnit::Nothing,
            Self::VenueQueue
            | Self::MessageRate
            | Self::OpenOrders
            | Self::SessionRate
            | Self::SymbolRate
            | Self::FirmRate
            | Self::OrderToTrade
            | Self::FirmOpenOrders => MeasureUnit::Count,
            Self::MinimumQuantity
            | Self::MaximumQuantity
            | Self::PriceCollar
            | Self::Position
            | Self::TickSize
            | Self::Lot
            | Self::LowestPrice
            | Self::HighestPrice
            | Self::SessionQuantity
            | Self::SymbolQuantity
            | Self::SymbolPosition
            | Self::ShortSale
            | Self::FirmQuantity
            | Self::SelfMatch => MeasureUnit::Decimal,
            Self::Notional
            | Self::Credit
            | Self::SessionNotional
            | Self::FirmNotional
            | Self::FirmCredit
            | Self::GrossValue
            | Self::DailyLoss => MeasureUnit::Money,
            Self::StaleReference | Self::RequestAge | Self::DuplicateOrder => MeasureUnit::Nanoseconds,
        }
    }

    /// Returns the code in an [`OrderDenied`](tickpath_market::OrderDenied).
    #[inline]
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// Returns the denial with this code, if there is one.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|denial| denial.code() == code)
    }
}
