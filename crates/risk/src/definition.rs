//! What can be traded, by whom, where, and how much of it: definitions, which hold until they are defined anew or end.

use tickpath_market::{AccountId, Price, Quantity, Symbol, SymbolId, VenueId};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// An instrument. Only ids below 65,536 and multipliers from 1 are taken; others are ignored and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Instrument {
    /// Its number.
    pub symbol: SymbolId,
    /// Where it trades. An order keeps the venue that it was admitted for.
    pub venue: VenueId,
    /// Zero.
    pub reserved: u16,
    /// Its name.
    pub name: Symbol,
    /// Whole currency units a point: notional = price × quantity × multiplier.
    pub multiplier: i64,
    /// Limit prices are whole multiples of it; zero turns the check off.
    pub tick_size: Price,
    /// Quantities are whole multiples of it; zero turns the check off.
    pub lot: Quantity,
    /// The band of limit prices; two zeros turn the check off.
    pub lowest_price: Price,
    /// Its upper end.
    pub highest_price: Price,
    /// When it trades; it always does if neither says anything.
    pub hours: [Hours; 2],
    /// What its prices are in, as ISO 4217 has it, padded with zeros; zeros turn the check off.
    pub currency: [u8; 4],
    /// New orders and replaces of all accounts a window; zero turns the check off.
    pub rate_limit: u32,
    /// The window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// 1 if nobody may trade it: cancels pass.
    pub restricted: u8,
    /// Zero.
    pub reserved_end: [u8; 7],
}

/// A part of each day, in seconds since midnight UTC; over midnight if it closes before it opens, and none if it closes when
/// it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Hours {
    /// Its first second.
    pub opens_s: u32,
    /// The first second after it.
    pub closes_s: u32,
}

impl Hours {
    /// Whether it is no part of the day at all.
    pub const fn is_none(&self) -> bool {
        self.opens_s == self.closes_s
    }

    /// Whether this second of the day is in it.
    pub const fn holds(&self, second: u32) -> bool {
        match self.opens_s <= self.closes_s {
            true => self.opens_s <= second && second < self.closes_s,
            false => self.opens_s <= second || second < self.closes_s,
        }
    }
}

/// The limits of one account; a limit of zero is off where its line says so. Only ids below 65,536 are taken; others are
/// ignored and counted. Times are nanoseconds, so that they mean the same after a reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AccountLimits {
    /// Whose limits.
    pub account: AccountId,
    /// Messages a window; zero turns the check off.
    pub rate_limit: u32,
    /// The window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian.
    pub max_notional: [u8; 16],
    /// Largest sum of what the account has traded since the day began and of what its open orders may still trade, in
    /// the same unit; zero turns the check off.
    pub credit: [u8; 16],
    /// Farthest limit price from the reference, in basis points of the reference.
    pub collar: u32,
    /// Most orders that are open at once; zero turns the check off.
    pub max_open_orders: u32,
    /// Oldest reference price, in nanoseconds.
    pub max_reference_age_ns: u64,
    /// Oldest request, from when its client sent it to when it is checked; zero turns the check off. In nanoseconds.
    pub max_request_age_ns: u64,
    /// Largest position in one symbol, long or short, working orders included.
    pub max_position: Quantity,
    /// What the account trades in: instruments of another currency are denied. Zeros turn the check off.
    pub currency: [u8; 4],
    /// Messages a day for each fill, beside those that are free; with no free ones, zero turns the check off.
    pub order_trade_ratio: u32,
    /// Messages a day that are free.
    pub order_trade_free: u32,
    /// 1 if it may not trade with itself.
    pub no_self_match: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// A new order like one before it, in symbol, side, type, price and quantity, is denied for so long, in nanoseconds; zero
    /// turns the check off.
    pub duplicate_window_ns: u64,
    /// Largest sum of its positions' values at the latest prices, long and short, working orders included, in units of 10⁻¹⁶
    /// of the currency, 128 bits little-endian; zero turns the check off.
    pub max_gross_value: [u8; 16],
    /// What it may lose in a day at the latest prices, in the same unit; zero turns the check off.
    pub max_loss: [u8; 16],
}

/// What an account may do in one symbol; zero turns a check off. Only ids below 65,536 are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SymbolLimits {
    /// Which account.
    pub account: AccountId,
    /// Which symbol.
    pub symbol: SymbolId,
    /// Largest position, long or short, working orders included.
    pub max_position: Quantity,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// 1 if it may not trade it: cancels pass.
    pub restricted: u8,
    /// 1 if it may not sell what it does not have, working orders included.
    pub no_short: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

/// The limits of the firm: of all accounts together. Zero turns a check off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FirmLimits {
    /// Messages a window.
    pub rate_limit: u32,
    /// Most orders that are open at once.
    pub max_open_orders: u32,
    /// The window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
    /// Largest quantity of one order.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian.
    pub max_notional: [u8; 16],
    /// Largest sum of what was traded since the day began and of what open orders may still trade, in the same unit.
    pub credit: [u8; 16],
}

/// How a venue behaves, and how much may wait for it here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VenueRules {
    /// Its number.
    pub venue: VenueId,
    /// 1 if it numbers the events of each order: then a rejection without a number is no event of the order.
    pub numbered: u8,
    /// 1 if it answers status requests.
    pub answers_status: u8,
    /// New orders and replaces that may wait here while the venue takes nothing; one more is denied.
    pub max_queued: u32,
    /// How long a number may be missing from an order's events before the order is in doubt, in nanoseconds.
    pub max_gap_ns: u64,
}

impl VenueRules {
    /// Of a venue that nobody has defined: it numbers its events and answers questions, as ours does.
    pub const fn of(venue: VenueId) -> Self {
        Self { venue, numbered: 1, answers_status: 1, max_queued: 1024, max_gap_ns: 1_000_000_000 }
    }
}

/// What a session asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SessionRules {
    /// Its number.
    pub session: u16,
    /// 1 if its orders are canceled when it is lost.
    pub cancel_on_disconnect: u8,
    /// What must hold an input before its outputs leave: the shell's number, which the core only keeps.
    pub level: u8,
    /// The kinds of request that it may not make: the sum of [`MAY_NEW`] and its like.
    pub withheld: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Largest quantity of one order; zero turns the check off.
    pub max_order_quantity: Quantity,
    /// Largest notional of one order, units of 10⁻¹⁶ of the currency, 128 bits little-endian; zero turns the check off.
    pub max_notional: [u8; 16],
    /// Messages a window; zero turns the check off.
    pub rate_limit: u32,
    /// Zero.
    pub reserved_end: u32,
    /// The window, in nanoseconds. It opens with its first message.
    pub rate_window_ns: u64,
}

/// [`SessionRules::withheld`]: new orders.
pub const MAY_NEW: u8 = 1;
/// [`SessionRules::withheld`]: cancels.
pub const MAY_CANCEL: u8 = 2;
/// [`SessionRules::withheld`]: replaces.
pub const MAY_REPLACE: u8 = 4;
/// [`SessionRules::withheld`]: mass cancels.
pub const MAY_MASS_CANCEL: u8 = 8;
/// [`SessionRules::withheld`]: status requests.
pub const MAY_STATUS: u8 = 16;

/// That a session may trade for an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Grant {
    /// The account; [`ALL_ACCOUNTS`] for every one.
    pub account: AccountId,
    /// The session.
    pub session: u16,
    /// Zero.
    pub reserved: u16,
}

/// A [`Grant`] for every account that is defined.
pub const ALL_ACCOUNTS: AccountId = AccountId(u32::MAX);

/// That a definition has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Ended {
    /// Its symbol, account or venue; of a [`SymbolLimits`] its symbol.
    pub id: u32,
    /// Its session, if it is a session's; of a [`SymbolLimits`] its account.
    pub session: u16,
    /// What kind of definition: the code of its record in the journal.
    pub kind: u8,
    /// Zero.
    pub reserved: u8,
}

/// [`RejectRule::action`]: the order is over, as it is after any code that has no rule.
pub const GIVE_UP: u8 = 0;
/// [`RejectRule::action`]: it is tried again, by whichever line is ready.
pub const RETRY: u8 = 1;
/// [`RejectRule::action`]: it is tried again by another line than the one that brought the refusal, if another is up.
pub const OTHER_LINE: u8 = 2;

/// What is done with a new order that its venue refuses with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RejectRule {
    /// Whose code it is.
    pub venue: VenueId,
    /// The venue's code: `reason` of its report.
    pub code: u16,
    /// [`GIVE_UP`], [`RETRY`] or [`OTHER_LINE`].
    pub action: u8,
    /// An order that was tried again so often, for whatever codes, is over.
    pub times: u8,
    /// Zero.
    pub reserved: u16,
}

/// The name of a venue, or of the user of a session. Not an input: the shell knows by it whether a number would be given to
/// another venue or user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Name {
    /// The number of the venue or of the session.
    pub number: u16,
    /// [`NAME_VENUE`] or [`NAME_SESSION`].
    pub of: u8,
    /// Zero.
    pub reserved: [u8; 5],
    /// UTF-8, padded with zeros. A longer name is cut.
    pub name: [u8; NAME_BYTES],
}

/// [`Name::of`]: a venue.
pub const NAME_VENUE: u8 = 1;
/// [`Name::of`]: a session, which is named by its user.
pub const NAME_SESSION: u8 = 2;
/// Bytes of a name in the journal.
const NAME_BYTES: usize = 64;

impl Name {
    /// The name of a venue or of a session's user.
    pub fn new(of: u8, number: u16, text: &str) -> Self {
        let mut name = [0; NAME_BYTES];
        let bytes = &text.as_bytes()[..text.len().min(NAME_BYTES)];
        name[..bytes.len()].copy_from_slice(bytes);
        Self { number, of, reserved: [0; 5], name }
    }

    /// The name as text; a character that was cut is shown as one that is unknown.
    pub fn text(&self) -> String {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }
}

/// Bytes of an [`Instrument`] up to core version 3: what lies behind them is what [`check_rare`](crate::check_rare) looks at.
pub const INSTRUMENT_BYTES: usize = 32;
/// The same of [`AccountLimits`].
pub const ACCOUNT_BYTES: usize = 88;
/// The same of [`SessionRules`].
pub const SESSION_BYTES: usize = 8;

/// Whether a definition says anything behind so many bytes.
pub fn says_more(definition: &(impl IntoBytes + Immutable), behind: usize) -> bool {
    definition.as_bytes()[behind..].iter().any(|&byte| byte != 0)
}

impl FirmLimits {
    /// The largest notional of one order; none if the check is off.
    #[inline]
    pub fn max_notional(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_notional)).filter(|&most| most != 0)
    }

    /// The largest sum of traded and open notional; none if the check is off.
    #[inline]
    pub fn credit(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.credit)).filter(|&credit| credit != 0)
    }
}

impl SessionRules {
    /// The largest notional of one order; none if the check is off.
    #[inline]
    pub fn max_notional(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_notional)).filter(|&most| most != 0)
    }
}

impl AccountLimits {
    /// The largest notional of one order, in units of 10⁻¹⁶ of the currency.
    #[inline]
    pub fn max_notional(&self) -> i128 {
        i128::from_le_bytes(self.max_notional)
    }

    /// The largest sum of traded and open notional, in the same unit; none if the check is off.
    #[inline]
    pub fn credit(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.credit)).filter(|&credit| credit != 0)
    }

    /// The largest value of all positions, in the same unit; none if the check is off.
    pub fn max_gross_value(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_gross_value)).filter(|&most| most != 0)
    }

    /// What may be lost in a day, in the same unit; none if the check is off.
    pub fn max_loss(&self) -> Option<i128> {
        Some(i128::from_le_bytes(self.max_loss)).filter(|&most| most != 0)
    }
}
