//! Texts by which OKX knows the orders and the requests of an OMS.
//!
//! ```text
//!   clOrdId   tp 00a1b2 00000007 0000010000000c35     32 characters: mark, OMS, account, order
//!   reqId                        0000010000000c36     16 characters: request that amends
//! ```
//! The account stands in the text, because a line keeps nothing that must survive its process, and the report of an
//! order of an earlier process needs the account, too. Another OMS may use the same account of OKX with the same ids:
//! the text names the OMS. Its 24 bits of a hash keep apart those few that share an account.

use tickpath_market::AccountId;

use crate::decimal::{push_hex, read_hex};

const MARK: &str = "tp";
const OMS_DIGITS: usize = 6;
const ACCOUNT_DIGITS: usize = 8;
const ID_DIGITS: usize = 16;

/// Names of one OMS's orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OrderNaming {
    /// Hash of the OMS's id, 24 bits.
    oms: u64,
}

impl OrderNaming {
    /// Returns the names of this OMS's orders.
    pub fn of(oms: u64) -> Self {
        Self { oms: (oms ^ oms >> 24 ^ oms >> 48) & 0xff_ffff }
    }

    /// Appends the name of an order.
    pub fn push_order(&self, text: &mut String, account: AccountId, order: u64) {
        text.push_str(MARK);
        push_hex(text, self.oms, OMS_DIGITS);
        push_hex(text, account.0.into(), ACCOUNT_DIGITS);
        push_hex(text, order, ID_DIGITS);
    }

    /// Returns the name of an order.
    pub fn order(&self, account: AccountId, order: u64) -> String {
        let mut text = String::with_capacity(MARK.len() + OMS_DIGITS + ACCOUNT_DIGITS + ID_DIGITS);
        self.push_order(&mut text, account, order);
        text
    }

    /// Returns the account and the order that a text names; none if it names no order of this OMS.
    pub fn read_order(&self, text: &str) -> Option<(AccountId, u64)> {
        let rest = text.strip_prefix(MARK)?;
        let (oms, rest) = rest.split_at_checked(OMS_DIGITS)?;
        let (account, order) = rest.split_at_checked(ACCOUNT_DIGITS)?;
        if order.len() != ID_DIGITS || read_hex(oms)? != self.oms {
            return None;
        }
        let account = u32::try_from(read_hex(account)?).ok()?;
        Some((AccountId(account), read_hex(order)?))
    }
}

/// Appends the name of a request that amends an order.
pub(crate) fn push_request(text: &mut String, request: u64) {
    push_hex(text, request, ID_DIGITS);
}

/// Returns the request that a text names; none if it names none of any OMS.
pub(crate) fn read_request(text: &str) -> Option<u64> {
    if text.len() == ID_DIGITS { read_hex(text) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_fit_okx_and_are_read_again_by_their_oms_alone(oms: u64, other: u64, account: u32, order: u64) {
            let (naming, account) = (OrderNaming::of(oms), AccountId(account));
            let text = naming.order(account, order);
            prop_assert!(text.len() <= 32 && text.bytes().all(|b| b.is_ascii_alphanumeric()), "{}", text);
            prop_assert_eq!(naming.read_order(&text), Some((account, order)));
            let other = OrderNaming::of(other);
            prop_assert_eq!(other.read_order(&text).is_some(), other == naming);
        }

        #[test]
        fn other_texts_name_no_order(text in "[a-zA-Z0-9]{0,32}|tp[0-9a-f]{0,31}") {
            let naming = OrderNaming::of(7);
            if let Some((account, order)) = naming.read_order(&text) {
                prop_assert_eq!(naming.order(account, order), text);
            }
        }
    }
}
