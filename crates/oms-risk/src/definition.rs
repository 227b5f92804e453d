//! Trading definitions: instruments, limits, rights, venues and retry rules. A definition holds until a later one
//! replaces or ends it.

use tickpath_market::{AccountId, Currency, DECIMALS, MAX_DECIMALS, Price, Quantity, Symbol, SymbolId, VenueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ContractSize;

/// An instrument. The core takes only ids below 65,536 and contract sizes above zero; it ignores and counts others.
///
/// Prices of the instrument are in units of 10⁻ᵖ and quantities in units of 10⁻ᑫ, where p and q are its
/// [`price_decimals`](Self::price_decimals) and [`quantity_decimals`](Self::quantity_decimals): 8 unless it needs others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Instrument {
    /// Number of the instrument.
    pub symbol: SymbolId,
    /// Venue of the instrument. An order keeps the venue that it was admitted for.
    pub venue: VenueId,
    /// Zero.
    pub reserved: u16,
    /// First bytes of the name; [`Self::name`] returns all of it.
    pub name_start: [u8; 16],
    /// Contract size, in units of 10 to the power of minus `multiplier_decimals`: notional = price × quantity × contract
    /// size.
    pub multiplier: i64,
    /// Tick size: limit prices are whole multiples of it. Zero turns the check off.
    pub tick_size: Price,
    /// Lot size: quantities are whole multiples of it. Zero turns the check off.
    pub lot: Quantity,
    /// Lower end of the band of limit prices; two zeros turn the check off.
    pub lowest_price: Price,
    /// Upper end of the band of limit prices.
    pub highest_price: Price,
    /// Trading hours; two empty parts mean the whole day.
    pub hours: [TradingHours; 2],
    /// First bytes of the currency; [`Self::currency`] returns all of it.
    pub currency_start: [u8; 4],
    /// Max new orders and replaces of all accounts per window; zero turns the check off.
    pub rate_limit: u32,
    /// Rate window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// 1 if the instrument is restricted for all accounts: only cancels pass.
    pub restricted: u8,
    /// Decimals of its prices beyond 8; negative for fewer.
    pub more_price_decimals: i8,
    /// Decimals of its quantities beyond 8; zero or negative.
    pub more_quantity_decimals: i8,
    /// Decimals of the contract size.
    pub multiplier_decimals: u8,
    /// Zero.
    pub reserved_end: [u8; 4],
    /// Smallest quantity of an order. Zero turns the check off.
    pub minimum_quantity: Quantity,
    /// Smallest notional of an order, units of 10⁻¹⁶ of the currency, 128 bits little-endian. Zero turns the check off.
    pub minimum_notional: [u8; 16],
    /// The other bytes of the name.
    pub name_end: [u8; 32],
    /// The other bytes of the currency.
    pub currency_end: [u8; 8],
}

impl Instrument {
    /// Returns an instrument with this name, and all else unset.
    pub fn named(name: Symbol) -> Self {
        Self::default().with_name(name)
    }

    /// Returns the instrument with another name.
    #[must_use]
    pub fn with_name(self, name: Symbol) -> Self {
        let (name_start, name_end) = halves(&name.0);
        Self { name_start, name_end, ..self }
    }

    /// Returns the name; empty if the instrument was defined without one.
    pub fn name(&self) -> Symbol {
        Symbol(joined(&self.name_start, &self.name_end))
    }

    /// Returns the currency of its prices; empty if the check is off.
    pub fn currency(&self) -> Currency {
        Currency(joined(&self.currency_start, &self.currency_end))
    }

    /// Returns the instrument with a currency.
    #[must_use]
    pub fn with_currency(self, currency: Currency) -> Self {
        let (currency_start, currency_end) = halves(&currency.0);
        Self { currency_start, currency_end, ..self }
    }

    /// Returns the decimals of its prices.
    pub fn price_decimals(&self) -> u8 {
        DECIMALS.saturating_add_signed(self.more_price_decimals)
    }

    /// Returns the decimals of its quantities.
    pub fn quantity_decimals(&self) -> u8 {
        DECIMALS.saturating_add_signed(self.more_quantity_decimals)
    }

    /// Returns the instrument with these decimals of its prices and quantities, of at most [`MAX_DECIMALS`].
    #[must_use]
    pub fn with_decimals(self, price: u8, quantity: u8) -> Self {
        let more = |decimals: u8| decimals as i8 - DECIMALS as i8;
        Self { more_price_decimals: more(price), more_quantity_decimals: more(quantity), ..self }
    }

    /// Returns the smallest notional of an order; none if the check is off.
    #[inline]
    pub fn minimum_notional(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.minimum_notional)).filter(|&minimum| minimum != 0)
    }

    /// Returns its contract size; none if that is not above zero or its decimals are out of range.
    pub fn contract_size(&self) -> Option<ContractSize> {
        let (price, quantity, own) = (self.price_decimals(), self.quantity_decimals(), self.multiplier_decimals);
        let is_valid = price <= MAX_DECIMALS && quantity <= DECIMALS && own <= MAX_DECIMALS && self.multiplier > 0;
        is_valid.then(|| ContractSize {
            multiplier: self.multiplier,
            exponent: 2 * DECIMALS as i8 - (price + quantity + own) as i8,
            quantity_exponent: DECIMALS - quantity,
        })
    }
}

/// Splits a text into its first bytes and the others.
fn halves<const N: usize, const A: usize, const B: usize>(text: &[u8; N]) -> ([u8; A], [u8; B]) {
    let (start, end) = text.split_at(A);
    (start.try_into().expect("it was split there"), end.try_into().expect("both make the whole"))
}

fn joined<const N: usize>(start: &[u8], end: &[u8]) -> [u8; N] {
    let mut text = [0; N];
    text[..start.len()].copy_from_slice(start);
    text[start.len()..].copy_from_slice(end);
    text
}

/// A part of each day, in seconds since midnight UTC; over midnight if it closes before it opens, and empty if it
/// closes when it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TradingHours {
    /// First second of the part.
    pub opens_s: u32,
    /// First second after the part.
    pub closes_s: u32,
}

impl TradingHours {
    /// Returns whether the part is empty.
    pub const fn is_none(&self) -> bool {
        self.opens_s == self.closes_s
    }

    /// Returns whether this second of the day is in the part.
    pub const fn contains(&self, second: u32) -> bool {
        match self.opens_s <= self.closes_s {
            true => self.opens_s <= second && second < self.closes_s,
            false => self.opens_s <= second || second < self.closes_s,
        }
    }
}

/// Limits of one account; a limit of zero is off where its field allows it. The core takes only ids below 65,536 and
/// ignores and counts others. Times are nanoseconds, so that their meaning survives a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AccountLimits {
    /// Limited account.
    pub account: AccountId,
    /// Max messages per window; zero turns the check off.
    pub rate_limit: u32,
    /// Rate window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian.
    pub max_notional: [u8; 16],
    /// Largest sum of the account's traded value since the day began and the open value of its orders, in the same
    /// unit; zero turns the check off.
    pub credit: [u8; 16],
    /// Largest distance of a limit price from the reference, in basis points of the reference.
    pub collar: u32,
    /// Max open orders; zero turns the check off.
    pub max_open_orders: u32,
    /// Max age of the reference price, in nanoseconds.
    pub max_reference_age_ns: u64,
    /// Max age of a request, from the client's send to the check, in nanoseconds; zero turns the check off.
    pub max_request_age_ns: u64,
    /// Largest position in one symbol, long or short, working orders included.
    pub max_position: Quantity,
    /// First bytes of the currency; [`Self::currency`] returns all of it.
    pub currency_start: [u8; 4],
    /// Messages a day allowed for each fill, beside the free messages; if both are zero, the check is off.
    pub order_trade_ratio: u32,
    /// Free messages a day.
    pub order_trade_free: u32,
    /// 1 to deny orders that would trade with the account's own orders (self-match prevention).
    pub no_self_match: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Time for which a new order equal to an earlier one in symbol, side, type, price and quantity is denied, in
    /// nanoseconds; zero turns the check off.
    pub duplicate_window_ns: u64,
    /// Largest sum of the values of the account's positions at the latest prices, long and short, working orders
    /// included, in units of 10⁻¹⁶ of the currency, 128 bits little-endian; zero turns the check off.
    pub max_gross_value: [u8; 16],
    /// Largest loss of the account in a day at the latest prices, in the same unit; zero turns the check off.
    pub max_loss: [u8; 16],
    /// The other bytes of the currency.
    pub currency_end: [u8; 8],
}

/// Limits of an account in one symbol; zero turns a check off. The core takes only ids below 65,536.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SymbolLimits {
    /// Limited account.
    pub account: AccountId,
    /// Symbol of the limits.
    pub symbol: SymbolId,
    /// Largest position, long or short, working orders included.
    pub max_position: Quantity,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// 1 if the symbol is restricted for the account: only cancels pass.
    pub restricted: u8,
    /// 1 if the account may not sell the symbol short, working orders included.
    pub no_short: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

/// Limits of the firm: of all accounts together. Zero turns a check off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FirmLimits {
    /// Max messages per window.
    pub rate_limit: u32,
    /// Max open orders.
    pub max_open_orders: u32,
    /// Rate window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian.
    pub max_notional: [u8; 16],
    /// Largest sum of the traded value since the day began and the open value of all orders, in the same unit.
    pub credit: [u8; 16],
}

/// Behavior of a venue, and the max number of requests that wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VenueRules {
    /// Number of the venue.
    pub venue: VenueId,
    /// 1 if the venue numbers the events of each order: then a rejection without a number is no event of the order.
    pub numbered: u8,
    /// 1 if the venue answers status requests.
    pub answers_status: u8,
    /// Max new orders and replaces that wait in the OMS while the venue accepts none; a further one is denied.
    pub max_queued: u32,
    /// Max time for which a number may be missing from an order's events before the order is in doubt, in nanoseconds.
    pub max_gap_ns: u64,
}

impl VenueRules {
    /// Returns the rules of a venue without a definition: it numbers its events and answers status requests, as
    /// Tickpath's own exchange does.
    pub const fn of(venue: VenueId) -> Self {
        Self { venue, numbered: 1, answers_status: 1, max_queued: 1024, max_gap_ns: 1_000_000_000 }
    }
}

/// Rules and limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SessionRules {
    /// Number of the session.
    pub session: u16,
    /// 1 to cancel the session's orders when the session is lost.
    pub cancel_on_disconnect: u8,
    /// Durability level that an input must reach before its outputs are sent: a number of the shell, which the core
    /// only keeps.
    pub level: u8,
    /// Kinds of request that the session may not make: the sum of [`MAY_NEW`] and the other flags.
    pub withheld: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Largest quantity of one order; zero turns the check off.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian; zero turns the check off.
    pub max_notional: [u8; 16],
    /// Max messages per window; zero turns the check off.
    pub rate_limit: u32,
    /// Zero.
    pub reserved_end: u32,
    /// Rate window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
}

/// Flag in [`SessionRules::withheld`]: new orders.
pub const MAY_NEW: u8 = 1;
/// Flag in [`SessionRules::withheld`]: cancels.
pub const MAY_CANCEL: u8 = 2;
/// Flag in [`SessionRules::withheld`]: replaces.
pub const MAY_REPLACE: u8 = 4;
/// Flag in [`SessionRules::withheld`]: mass cancels.
pub const MAY_MASS_CANCEL: u8 = 8;
/// Flag in [`SessionRules::withheld`]: status requests.
pub const MAY_STATUS: u8 = 16;

/// The right of a session to trade for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Grant {
    /// The account; [`ALL_ACCOUNTS`] for every account.
    pub account: AccountId,
    /// The session.
    pub session: u16,
    /// Zero.
    pub reserved: u16,
}

/// A [`Grant`] for every account that is defined.
pub const ALL_ACCOUNTS: AccountId = AccountId(u32::MAX);

/// The end of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DefinitionEnd {
    /// Symbol, account or venue of the definition; for [`SymbolLimits`] the symbol.
    pub id: u32,
    /// Session of a session's definition; for [`SymbolLimits`] the account.
    pub session: u16,
    /// Kind of the definition: the code of its record in the journal.
    pub kind: u8,
    /// Zero.
    pub reserved: u8,
}

/// Value of [`RejectRule::action`]: the order is rejected, as after any code without a rule.
pub const GIVE_UP: u8 = 0;
/// Value of [`RejectRule::action`]: the order is retried on any line that is ready.
pub const RETRY: u8 = 1;
/// Value of [`RejectRule::action`]: the order is retried on another line than the one that brought the rejection, if
/// another line is up.
pub const OTHER_LINE: u8 = 2;

/// A retry rule: the reaction to a venue's rejection of a new order with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RejectRule {
    /// Venue of the code.
    pub venue: VenueId,
    /// The venue's code: `reason` in its report.
    pub code: u16,
    /// [`GIVE_UP`], [`RETRY`] or [`OTHER_LINE`].
    pub action: u8,
    /// Max retries of an order, counted over all codes; after them the order is rejected.
    pub times: u8,
    /// Zero.
    pub reserved: u16,
}

/// The name of a venue, or of a session's user. It is no input: from it the shell detects that a number is about to be
/// given to another venue or user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NameRecord {
    /// Number of the venue or session.
    pub number: u16,
    /// [`NAME_VENUE`] or [`NAME_SESSION`].
    pub of: u8,
    /// Zero.
    pub reserved: [u8; 5],
    /// Name in UTF-8, padded with zeros. A longer name is cut.
    pub name: [u8; NAME_BYTES],
}

/// Value of [`NameRecord::of`]: a venue.
pub const NAME_VENUE: u8 = 1;
/// Value of [`NameRecord::of`]: a session, which is named by its user.
pub const NAME_SESSION: u8 = 2;
/// Bytes of a name in the journal.
const NAME_BYTES: usize = 64;

impl NameRecord {
    /// Creates the name of a venue or of a session's user.
    pub fn new(of: u8, number: u16, text: &str) -> Self {
        let mut name = [0; NAME_BYTES];
        let bytes = &text.as_bytes()[..text.len().min(NAME_BYTES)];
        name[..bytes.len()].copy_from_slice(bytes);
        Self { number, of, reserved: [0; 5], name }
    }

    /// Returns the name as text; a cut character shows as U+FFFD.
    pub fn text(&self) -> String {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// Bytes of an [`Instrument`] up to core version 3; [`check_optional`](crate::check_optional) reads the later bytes.
pub const INSTRUMENT_BYTES: usize = 32;
/// Bytes of an [`Instrument`] before it had decimals, from core version 4 on.
pub const EARLIER_INSTRUMENT_BYTES: usize = 104;
/// Bytes of an [`AccountLimits`] up to core version 3.
pub const ACCOUNT_BYTES: usize = 88;
/// Bytes of an [`AccountLimits`] before its currency had more than four bytes, from core version 4 on.
pub const EARLIER_ACCOUNT_BYTES: usize = size_of::<AccountLimits>() - 8;
/// Bytes of a [`SessionRules`] up to core version 3.
pub const SESSION_BYTES: usize = 8;

/// Returns whether a definition has a byte that is not zero after the first `base` bytes.
pub fn has_optional_fields(definition: &(impl IntoBytes + Immutable), base: usize) -> bool {
    definition.as_bytes()[base..].iter().any(|&byte| byte != 0)
}

impl FirmLimits {
    /// Returns the largest notional of one order; none if the check is off.
    #[inline]
    pub fn max_notional(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_notional)).filter(|&max| max != 0)
    }

    /// Returns the largest sum of traded and open notional; none if the check is off.
    #[inline]
    pub fn credit(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.credit)).filter(|&credit| credit != 0)
    }
}

impl SessionRules {
    /// Returns the largest notional of one order; none if the check is off.
    #[inline]
    pub fn max_notional(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_notional)).filter(|&max| max != 0)
    }
}

impl AccountLimits {
    /// Returns the currency of the account: orders in instruments of another currency are denied. Empty if the check is
    /// off.
    pub fn currency(&self) -> Currency {
        Currency(joined(&self.currency_start, &self.currency_end))
    }

    /// Returns the limits with a currency.
    #[must_use]
    pub fn with_currency(self, currency: Currency) -> Self {
        let (currency_start, currency_end) = halves(&currency.0);
        Self { currency_start, currency_end, ..self }
    }

    /// Returns the largest notional of one order, in units of 10⁻¹⁶ of the currency.
    #[inline]
    pub fn max_notional(&self) -> i128 {
        i128::from_le_bytes(self.max_notional)
    }

    /// Returns the largest sum of traded and open notional, in the same unit; none if the check is off.
    #[inline]
    pub fn credit(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.credit)).filter(|&credit| credit != 0)
    }

    /// Returns the largest value of all positions, in the same unit; none if the check is off.
    pub fn max_gross_value(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_gross_value)).filter(|&max| max != 0)
    }

    /// Returns the largest loss of a day, in the same unit; none if the check is off.
    pub fn max_loss(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_loss)).filter(|&max| max != 0)
    }
}
