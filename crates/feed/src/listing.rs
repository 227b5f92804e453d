//! An instrument as an exchange lists it, in a form that all exchanges share.

/// An instrument of an exchange's list. Decimals are texts, as the exchange writes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedInstrument {
    /// The exchange's name of the instrument.
    pub name: String,
    /// The exchange's number of the instrument; zero if it has none.
    pub code: u64,
    /// Kind of the contract.
    pub contract: ContractKind,
    /// The instrument can be traded now.
    pub is_live: bool,
    /// Step of prices.
    pub tick_size: String,
    /// Step of quantities, in the unit of orders: contracts for derivatives, the base currency for spot.
    pub lot: String,
    /// Smallest quantity of an order; empty if there is none.
    pub minimum_quantity: String,
    /// Smallest notional of an order, in the quote currency; empty if there is none.
    pub minimum_notional: String,
    /// Value of one unit of quantity, in the currency of `value_currency`: "1" for spot.
    pub contract_value: String,
    /// Currency of the contract value: the base currency of a linear contract, the quote currency of an inverse one.
    pub value_currency: String,
    /// Currency of prices.
    pub quote_currency: String,
    /// Currency in which profit is settled.
    pub settle_currency: String,
}

/// Kind of a contract: how its value follows from price and quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContractKind {
    /// Price times quantity times contract value, in the quote currency.
    #[default]
    Linear,
    /// Quantity times contract value divided by the price, in the base currency.
    Inverse,
    /// As linear, but paid in another currency at a fixed rate.
    Quanto,
}

/// An exchange's list of instruments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Instruments in the order of the exchange.
    pub instruments: Vec<ListedInstrument>,
    /// Names of instruments that cannot be used, each with the reason as a sentence.
    pub refused: Vec<(String, String)>,
}

/// Errors of an answer that is not a list of instruments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// The answer is not JSON of the exchange's form.
    #[error("the answer is no list of instruments: {0}; save the exchange's answer unchanged, or check the address")]
    Malformed(String),
    /// The exchange reports an error.
    #[error("the exchange answers with an error: {0}")]
    Exchange(String),
}
