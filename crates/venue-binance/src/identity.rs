//! Texts by which the exchange knows the orders. A text has all that a report needs, so that a line in another process
//! reads it.
//!
//! ```text
//!   t 3K 0000000Qa1Z 7             an order: tag of the OMS, order id, account
//!   t 3K 0000000Qa1Z 7-2-5yc1      its second replacement, and the quantity that was filled before it
//!   c … , r …                      the order after a cancel, and after a cancel for a replacement
//! ```
//!
//! The spaces are only shown here; digits are those of base 62. A cancel gives the canceled order a new text at the
//! exchange, so this text must be computable too.

use tickpath_market::AccountId;

/// Digits of base 62, in the order of their values.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Max length of a text at the exchange; the longest text here has this length.
const MAX_BYTES: usize = 36;
/// Digits of an order id, which 64 bits always fit.
const ORDER_DIGITS: usize = 11;
const SEPARATOR: u8 = b'-';
/// Last generation that has a text: three digits.
pub(crate) const MAX_GENERATION: u32 = 62 * 62 * 62 - 1;

/// Two characters for an OMS, which keep its orders apart from those of another OMS on the same account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OmsTag([u8; 2]);

/// State that the first letter of a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextUse {
    /// The order as it was placed.
    Order,
    /// The order after a cancel.
    Canceled,
    /// The order after a cancel for a replacement.
    Replaced,
}

/// Identity of an order at the exchange: an order of the OMS, in one of its generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderIdentity {
    /// Id of the order, as the OMS sends it.
    pub(crate) order: u64,
    pub(crate) account: AccountId,
    /// Number of replacements so far: each is an order of its own at the exchange.
    pub(crate) generation: u32,
    /// Quantity that was filled in earlier generations.
    pub(crate) base: i64,
}

/// Text of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderText {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl OmsTag {
    /// Returns the tag of an OMS with this journal id.
    pub(crate) fn of(oms: u64) -> Self {
        let mixed = oms.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Self([digit(mixed / 62), digit(mixed)])
    }
}

impl TextUse {
    const fn letter(self) -> u8 {
        match self {
            Self::Order => b't',
            Self::Canceled => b'c',
            Self::Replaced => b'r',
        }
    }

    fn of(letter: u8) -> Option<Self> {
        [Self::Order, Self::Canceled, Self::Replaced].into_iter().find(|text_use| text_use.letter() == letter)
    }
}

impl OrderIdentity {
    /// Returns an order as it is first placed.
    pub(crate) fn first(order: u64, account: AccountId) -> Self {
        Self { order, account, generation: 0, base: 0 }
    }

    /// Returns the next generation, after this one has been filled by `filled`.
    pub(crate) fn next(self, filled: i64) -> Self {
        Self { generation: self.generation + 1, base: self.base.saturating_add(filled), ..self }
    }

    /// Returns the text of the order.
    pub(crate) fn text(&self, tag: OmsTag, text_use: TextUse) -> OrderText {
        let mut text = OrderText { bytes: [0; MAX_BYTES], length: 0 };
        [text_use.letter(), tag.0[0], tag.0[1]].into_iter().for_each(|byte| text.push(byte));
        text.push_number(self.order, ORDER_DIGITS);
        text.push_number(self.account.0.into(), 1);
        if self.generation > 0 {
            text.push(SEPARATOR);
            text.push_number(self.generation.into(), 1);
            text.push(SEPARATOR);
            text.push_number(self.base.unsigned_abs(), 1);
        }
        text
    }

    /// Reads a text; none if it is not of an order of this OMS.
    #[inline]
    pub(crate) fn read(text: &[u8], tag: OmsTag) -> Option<(TextUse, Self)> {
        let (&letter, rest) = text.split_first()?;
        let text_use = TextUse::of(letter)?;
        let (order, rest) = rest.strip_prefix(&tag.0)?.split_at_checked(ORDER_DIGITS)?;
        let order = read_number(order)?;
        let mut parts = rest.split(|byte| *byte == SEPARATOR);
        let account = AccountId(u32::try_from(read_short(parts.next()?)?).ok()?);
        let (mut generation, mut base) = (0, 0);
        if let Some(part) = parts.next() {
            generation = u32::try_from(read_short(part)?).ok().filter(|generation| *generation > 0)?;
            base = i64::try_from(read_short(parts.next()?)?).ok()?;
        }
        parts.next().is_none().then_some((text_use, Self { order, account, generation, base }))
    }
}

impl OrderText {
    /// Returns the text.
    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.length) {
            *free = byte;
            self.length += 1;
        }
    }

    fn push_number(&mut self, value: u64, min_digits: usize) {
        let (mut digits, mut rest, mut begin) = ([b'0'; ORDER_DIGITS], value, ORDER_DIGITS);
        while rest > 0 {
            begin -= 1;
            digits[begin] = digit(rest);
            rest /= 62;
        }
        digits[begin.min(ORDER_DIGITS - min_digits)..].iter().for_each(|byte| self.push(*byte));
    }
}

/// Returns the last digit of a number.
fn digit(number: u64) -> u8 {
    DIGITS[(number % 62) as usize]
}

/// Reads a number without zeros before it, so that each number has one text.
fn read_short(text: &[u8]) -> Option<u64> {
    let is_short = !text.is_empty() && (text.len() == 1 || text[0] != b'0');
    if is_short { read_number(text) } else { None }
}

fn read_number(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |number, byte| {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            b'a'..=b'z' => byte - b'a' + 36,
            _ => return None,
        };
        number.checked_mul(62)?.checked_add(value.into())
    })
}
