//! Balances, positions and fills of the accounts, and the arithmetic of amounts. Amounts are in units of 10⁻⁸.

use std::collections::BTreeMap;

use tickpath_market::{Notional, Price, Quantity, SCALE, Side};

use super::listing::{SimAccount, SimInstrument};
use super::order::DeskFill;

/// Units of a fee rate in the whole notional.
const RATE_SCALE: i128 = 1_000_000;

/// Accounts of a desk, by their index.
pub(super) struct Ledger {
    accounts: Vec<AccountLedger>,
}

struct AccountLedger {
    balances: BTreeMap<String, Holding>,
    /// Signed position per instrument, in units of a quantity.
    positions: Vec<i64>,
    fills: Vec<DeskFill>,
}

/// Holding of a currency.
#[derive(Default)]
struct Holding {
    total: i128,
    reserved: i128,
}

impl Ledger {
    pub fn new(accounts: &[SimAccount], instruments: usize) -> Self {
        let open = |account: &SimAccount| {
            let mut balances: BTreeMap<String, Holding> = BTreeMap::new();
            for (currency, amount) in &account.balances {
                balances.entry(currency.clone()).or_default().total += i128::from(amount.0);
            }
            AccountLedger { balances, positions: vec![0; instruments], fills: Vec::new() }
        };
        Self { accounts: accounts.iter().map(open).collect() }
    }

    /// Books a fill with its fee, which is a part of what the account receives, or of the quote currency's balance
    /// for a derivative.
    pub fn book(&mut self, account: usize, listing: &SimInstrument, fill: DeskFill) {
        let Some(ledger) = self.accounts.get_mut(account) else { return };
        let (quantity, fee) = (i128::from(fill.quantity.0), i128::from(fill.fee));
        let value = value(listing, fill.price, fill.quantity);
        let direction: i64 = match fill.side {
            Side::Buy => 1,
            Side::Sell => -1,
        };
        if listing.is_derivative {
            if let Some(position) = ledger.positions.get_mut(fill.instrument) {
                *position = position.saturating_add(direction * fill.quantity.0);
            }
        } else {
            ledger.add(&listing.base, i128::from(direction) * quantity);
            ledger.add(&listing.quote, -i128::from(direction) * value);
        }
        ledger.add(&fill.fee_currency, -fee);
        ledger.fills.push(fill);
    }

    /// Changes the reserved amount of a currency.
    pub fn reserve(&mut self, account: usize, currency: &str, change: i128) {
        if let Some(ledger) = self.accounts.get_mut(account).filter(|_| change != 0) {
            ledger.holding(currency).reserved += change;
        }
    }

    /// Returns the amount of a currency that is not reserved.
    pub fn available(&self, account: usize, currency: &str) -> i128 {
        let holding = self.accounts.get(account).and_then(|ledger| ledger.balances.get(currency));
        holding.map_or(0, |holding| holding.total - holding.reserved)
    }

    /// Returns the currencies of an account with the total and the available amount.
    pub fn balances(&self, account: usize) -> impl Iterator<Item = (&str, Quantity, Quantity)> {
        let balances = self.accounts.get(account).into_iter().flat_map(|ledger| &ledger.balances);
        balances.map(|(currency, holding)| {
            let available = holding.total - holding.reserved;
            (currency.as_str(), Quantity(units(holding.total)), Quantity(units(available)))
        })
    }

    pub fn position(&self, account: usize, instrument: usize) -> i64 {
        self.accounts.get(account).and_then(|ledger| ledger.positions.get(instrument)).copied().unwrap_or(0)
    }

    pub fn fills(&self, account: usize) -> &[DeskFill] {
        match self.accounts.get(account) {
            Some(ledger) => &ledger.fills,
            None => &[],
        }
    }
}

impl AccountLedger {
    fn add(&mut self, currency: &str, amount: i128) {
        if amount != 0 {
            self.holding(currency).total += amount;
        }
    }

    fn holding(&mut self, currency: &str) -> &mut Holding {
        self.balances.entry(currency.to_owned()).or_default()
    }
}

/// Returns the value of a quantity in the quote currency, cut to eight decimals.
pub(super) fn value(listing: &SimInstrument, price: Price, quantity: Quantity) -> i128 {
    let value = Notional::of(price, quantity).0 / i128::from(SCALE);
    match listing.is_derivative {
        true => value.saturating_mul(listing.contract_value.0.into()) / i128::from(SCALE),
        false => value,
    }
}

/// Returns the value of a quantity in the quote currency, rounded up: never less than the sum of its parts by [`value`].
pub(super) fn value_rounded_up(listing: &SimInstrument, price: Price, quantity: Quantity) -> i128 {
    let value = divide_up(Notional::of(price, quantity).0, SCALE.into());
    match listing.is_derivative {
        true => divide_up(value.saturating_mul(listing.contract_value.0.into()), SCALE.into()),
        false => value,
    }
}

/// Returns the currency of a fill's fee, and the fee, cut to eight decimals: from the received currency, or for a
/// derivative from the quote currency.
pub(super) fn fee(listing: &SimInstrument, side: Side, price: Price, quantity: Quantity, rate_e6: i64) -> (&str, i64) {
    let (currency, amount) = match side {
        Side::Buy if !listing.is_derivative => (listing.base.as_str(), i128::from(quantity.0)),
        Side::Buy | Side::Sell => (listing.quote.as_str(), value(listing, price, quantity)),
    };
    (currency, units(amount.saturating_mul(rate_e6.into()) / RATE_SCALE))
}

/// Returns the currency that an open quantity reserves, and the amount. Spot reserves what it gives away, a derivative
/// its fee at this rate.
pub(super) fn reservation(
    listing: &SimInstrument,
    side: Side,
    price: Price,
    open: Quantity,
    rate_e6: i64,
) -> (&str, i128) {
    match side {
        _ if listing.is_derivative => {
            let fee = value_rounded_up(listing, price, open).saturating_mul(rate_e6.max(0).into());
            (listing.quote.as_str(), divide_up(fee, RATE_SCALE))
        }
        Side::Buy => (listing.quote.as_str(), value_rounded_up(listing, price, open)),
        Side::Sell => (listing.base.as_str(), open.0.into()),
    }
}

/// Returns an amount in 64 bits; one that does not fit is the largest or smallest that does.
fn units(amount: i128) -> i64 {
    amount.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn divide_up(amount: i128, by: i128) -> i128 {
    amount / by + i128::from(amount % by > 0)
}
