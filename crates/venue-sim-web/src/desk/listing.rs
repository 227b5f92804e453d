//! Configuration of a desk: instruments, accounts, fees.

use std::fmt;

use tickpath_market::{Price, Quantity, SymbolId};

/// Configuration of a desk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimDeskConfig {
    /// Instruments; calls and events name them by their index.
    pub instruments: Vec<SimInstrument>,
    /// Accounts; calls and events name them by their index.
    pub accounts: Vec<SimAccount>,
    /// Fee of a maker, in 10⁻⁶ of the notional; negative for a rebate.
    pub maker_fee_e6: i64,
    /// Fee of a taker, in 10⁻⁶ of the notional.
    pub taker_fee_e6: i64,
}

/// An instrument of a desk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimInstrument {
    /// Name at the exchange.
    pub name: String,
    /// Number in the table of a client.
    pub symbol: SymbolId,
    /// Number at the exchange.
    pub code: u64,
    /// Currency that is traded.
    pub base: String,
    /// Currency of the price.
    pub quote: String,
    /// Step of prices; zero for any price.
    pub tick: Price,
    /// Step of quantities; zero for any quantity.
    pub lot: Quantity,
    /// Min quantity of an order.
    pub minimum: Quantity,
    /// Whether orders change a position, and not balances.
    pub is_derivative: bool,
    /// Base units of a contract. Not read for spot, where it is 1.
    pub contract_value: Quantity,
    /// Bid at the start.
    pub bid: Price,
    /// Offer at the start.
    pub ask: Price,
    /// Quantity of both at the start.
    pub size: Quantity,
}

/// An account of a desk.
#[derive(Clone, PartialEq, Eq)]
pub struct SimAccount {
    /// Name.
    pub name: String,
    /// API key, by which the protocol knows the account.
    pub api_key: String,
    /// Secret of the API key.
    pub secret: String,
    /// Passphrase of the API key.
    pub passphrase: String,
    /// Balances at the start: currency and amount.
    pub balances: Vec<(String, Quantity)>,
}

impl fmt::Debug for SimAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimAccount").field("name", &self.name).field("balances", &self.balances).finish_non_exhaustive()
    }
}
