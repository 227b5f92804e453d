//! The denial codes, and the table of checks. Design: `docs/design/order-path.md`.

use tickpath_market::OrderType;

use crate::{AccountLimits, ContractSize};

/// Defines [`Denial`]: each reason with its code, the unit of its limit and value, and its text.
macro_rules! denials {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $unit:ident, $text:literal;)+) => {
        /// Reason of a denial.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        #[repr(u16)]
        pub enum Denial {
            $(
                #[doc = $text]
                #[doc = ""]
                $(#[$doc])*
                #[error($text)]
                $name = $code,
            )+
        }

        impl Denial {
            /// All denials, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns the unit of its limit and value.
            pub const fn measure(self) -> MeasureUnit {
                match self {
                    $(Self::$name => MeasureUnit::$unit,)+
                }
            }
        }
    };
}

denials! {
    Malformed = 1, Nothing, "the request holds an unknown code; check whether the client is of another version";
    Sequence = 2, Nothing,
        "the journal sequence does not rise, or has more than 40 bits; the journal is damaged, start from its last \
         good record, or it is full, begin a new one";
    MissingClientOrderId = 3, Nothing, "the client order id is zero; number requests from 1";
    DuplicateClientOrderId = 4, Nothing, "the client order id was used before in this session; use a new one";
    UnknownAccount = 5, Nothing, "the account is not defined; give it limits";
    UnknownSymbol = 6, Nothing, "the symbol is not defined; add the instrument";
    UnknownOrder = 7, Nothing,
        "there is no such order in this session and account; name it by the id of its new order, or by the OMS's \
         order id if the session may trade for its account";
    TooLate = 8, Nothing, "the order has ended or is filled; there is nothing left to change";
    AlreadyPending = 9, Nothing, "another request for this order is in flight; wait for its answer";
    StateUnknown = 10, Nothing, "the state of the order is unknown; cancel it or ask the venue";
    NotEntitled = 11, Nothing, "the session may not trade for this account; grant the right, or name another account";
    StillQueued = 12, Nothing, "the order still waits in the OMS for its venue; cancel it, or wait until it has left";
    /// Limit and value: requests.
    VenueQueue = 13, Count,
        "the venue accepts no requests, and its queue is full; send the request again when the venue is back";
    /// Value: the kind, as in [`SessionRules::withheld`](crate::SessionRules::withheld).
    NotPermitted = 14, Nothing, "the session may not make requests of this kind; have the kind added to its rights";
    NoTicks = 15, Nothing,
        "this OMS receives no ticks, so no trigger would ever fire; set ticks = \"TOPIC\" in its file";
    NotArmed = 16, Nothing,
        "the order waits for no trigger: it has none, or it has fired; replace its price and quantity alone";
    DuplicateTextId = 17, Nothing,
        "an open order of the account has this client id; use a new one, or wait until that order has ended";
    EndTimePassed = 18, Nothing, "the end time of the order has passed; give a later one";
    DiskFailed = 19, Nothing,
        "the journal's disk has failed; only cancels pass until the OMS is started on a sound one";
    /// Limit 0, value: switches on.
    KillSwitch = 20, Nothing, "a kill switch is on; only cancels pass until it is turned off";
    /// Limit and value: messages in the window.
    MessageRate = 21, Count, "the account sent too many messages; wait for the next window";
    MinimumQuantity = 22, Decimal, "the quantity is too small; ask for more than zero and more than what is filled";
    MaximumQuantity = 23, Decimal, "the quantity is over the account's limit of one order; split the order";
    /// Limit 1, value 0.
    NoReference = 24, Nothing, "there is no reference price; check the market data of the symbol";
    StaleReference = 25, Nanoseconds, "the reference price is too old; check the market data of the symbol";
    PriceCollar = 26, Price, "the price is too far from the reference; price it within the collar";
    Notional = 27, Money, "the notional is over the account's limit of one order; split the order";
    Position = 28, Decimal,
        "the position with working orders would pass the account's limit; cancel working orders or trade out";
    RequestAge = 29, Nanoseconds,
        "the request is too old: it waited in transit or in the OMS; send it again if it is still wanted";
    /// Limit and value: orders.
    OpenOrders = 30, Count, "the account has too many open orders; cancel some";
    Credit = 31, Money,
        "the account's credit is used up by what it traded and has open; cancel working orders or raise the credit";
    /// Limit 1, value 0.
    TradingHours = 32, Nothing, "the instrument does not trade at this time of the day; send it when it does";
    /// Limit 0, value: restrictions.
    Restricted = 33, Nothing, "the symbol is restricted, for all or for this account; only cancels pass";
    /// Limit 0, value 1.
    Currency = 34, Nothing,
        "the instrument trades in another currency than the account; name an account of that currency";
    /// Limit: the tick size, value: the price.
    TickSize = 35, Price, "the price is no whole multiple of the tick size; round it";
    /// Limit: the lot, value: the quantity.
    Lot = 36, Decimal, "the quantity is no whole multiple of the lot; round it";
    LowestPrice = 37, Price, "the price is below the instrument's band; price it within";
    HighestPrice = 38, Price, "the price is above the instrument's band; price it within";
    /// Limit and value: messages in the window.
    SessionRate = 39, Count, "the session sent too many messages; wait for the next window";
    /// Limit and value: messages in the window.
    SymbolRate = 40, Count, "too many orders and replaces were sent for the symbol; wait for the next window";
    /// Limit and value: messages in the window.
    FirmRate = 41, Count, "the firm's accounts sent too many messages; wait for the next window";
    /// Limit and value: messages of the day.
    OrderToTrade = 42, Count,
        "the account sent too many messages today for what it traded; only cancels pass until more is filled";
    DuplicateOrder = 43, Nanoseconds, "an equal order passed just before; send this one again later if it is intended";
    SessionQuantity = 44, Decimal, "the quantity is over the session's limit of one order; split the order";
    SessionNotional = 45, Money, "the notional is over the session's limit of one order; split the order";
    SymbolQuantity = 46, Decimal,
        "the quantity is over the account's limit of one order in this symbol; split the order";
    SymbolPosition = 47, Decimal,
        "the position with working orders would pass the account's limit in this symbol; cancel working orders or \
         trade out";
    /// Limit 0, value: the short quantity.
    ShortSale = 48, Decimal,
        "the account may not sell this symbol short; sell no more than it has, working orders included";
    FirmQuantity = 49, Decimal, "the quantity is over the firm's limit of one order; split the order";
    FirmNotional = 50, Money, "the notional is over the firm's limit of one order; split the order";
    /// Limit and value: orders.
    FirmOpenOrders = 51, Count, "the firm's accounts have too many open orders; cancel some";
    FirmCredit = 52, Money,
        "the firm's credit is used up by what its accounts traded and have open; cancel working orders or raise the \
         credit";
    /// Limit: the price of the other order, value: that of this one.
    SelfMatch = 53, Price,
        "the order would meet one of its own account on the other side; cancel that one first, or name another price";
    GrossValue = 54, Money,
        "the account's positions with working orders would be worth more than its limit; cancel working orders or \
         trade out";
    DailyLoss = 55, Money,
        "the account has lost more today than it may; only cancels and orders that close positions pass";
    SmallestQuantity = 56, Decimal, "the quantity is below the instrument's smallest; order more";
    SmallestNotional = 57, Money, "the notional is below the instrument's smallest; order more";
}

/// A row of the table of checks.
pub(crate) struct CheckRow {
    pub(crate) denial: Denial,
    /// Files or section that set the limit.
    pub(crate) file: &'static str,
    /// Names of the limit in them.
    pub(crate) limit: &'static str,
    pub(crate) measured: &'static str,
}

/// Unit of a denial's limit and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureUnit {
    /// No unit: the reason alone explains the denial.
    Nothing,
    /// Messages, orders, requests.
    Count,
    /// Quantities, in units of 10⁻⁸.
    Decimal,
    /// Prices, in the units of their instrument.
    Price,
    /// Amounts of currency, in units of 10⁻¹⁶.
    Money,
    /// Times, in nanoseconds.
    Nanoseconds,
}

/// Makes the documentation and the checks from one table. The checks are inlined in sequence: called through pointers,
/// they took a third of the core's time.
macro_rules! checks {
    ($check:ident of $facts:ident, $table:ident;
     $($denial:ident: $value:expr, $bound:ident $limit:expr; $file:literal $name:literal, $measured:literal;)+) => {
        pub(crate) const $table: &[CheckRow] =
            &[$(CheckRow { denial: Denial::$denial, file: $file, limit: $name, measured: $measured },)+];

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
    MinimumQuantity: |f| f.quantity(), at_least |f| f.size.quantity(f.minimum.into());
        "" "", "the quantity: above zero, and above what is filled";
    MaximumQuantity: |f| f.quantity(), at_most |f| f.limits.max_order_quantity.0.into();
        "accounts.csv" "max_order_quantity", "the quantity of one order";
    NoReference: |f| (f.reference_price != 0).into(), at_least |_| 1;
        "" "", "that the symbol has a reference price";
    StaleReference: |f| f.reference_age_ns.into(), at_most |f| f.limits.max_reference_age_ns.into();
        "accounts.csv" "max_reference_age_ns", "age of the reference price";
    PriceCollar: |f| f.distance(), at_most |f| f.collar();
        "accounts.csv" "collar", "distance of the limit price from the reference, in basis points of it";
    Notional: |f| f.notional(), at_most |f| f.limits.max_notional();
        "accounts.csv" "max_notional", "price × quantity × contract size of one order";
    Position: |f| f.position_if_filled(), at_most |f| f.limits.max_position.0.into();
        "accounts.csv" "max_position", "the position in the symbol if all working orders on the order's side are filled";
    OpenOrders: |f| f.open_orders.into(), at_most |f| unless_zero(f.limits.max_open_orders);
        "accounts.csv" "max_open_orders", "live orders of the account, this one included";
    Credit: |f| f.credit_used(), at_most |f| f.limits.credit().unwrap_or(i128::MAX);
        "accounts.csv" "credit", "value traded by the account today, and value that its open orders may still trade";
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

/// Facts for the checks. Prices and quantities are in the units of their instrument, values in units of 10⁻¹⁶ of the
/// currency.
pub struct RiskFacts<'a> {
    /// Limits of the order's account.
    pub limits: &'a AccountLimits,
    /// Contract size of the instrument.
    pub size: ContractSize,
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
        let wanted = self.size.value(each * i128::from(self.added_quantity));
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
        self.size.value(self.limit_or_reference() * i128::from(self.quantity)).saturating_abs()
    }

    /// Returns the price that values the order: the limit, or the reference of a market order.
    #[inline]
    pub fn limit_or_reference(&self) -> i128 {
        match self.order_type {
            OrderType::Limit => self.price.into(),
            OrderType::Market => self.reference_price.into(),
        }
    }

    /// Returns the total quantity after the request, in units of 10⁻⁸.
    #[inline]
    pub(crate) fn quantity(&self) -> i128 {
        self.size.quantity(self.quantity.into())
    }

    /// Returns the position if the request is filled, in units of 10⁻⁸. A replace that adds nothing passes at any
    /// position.
    #[inline]
    fn position_if_filled(&self) -> i128 {
        match self.increase {
            0 => self.size.quantity(self.worst_position).min(self.limits.max_position.0.into()),
            increase => self.size.quantity(self.worst_position + i128::from(increase)),
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
