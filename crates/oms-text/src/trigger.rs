//! Triggers in the form that a user writes: `BTCUSDT last >= 65000 and ETHUSDT bid <= 3000`.

use tickpath_market::{Condition, Price, SymbolId, Trigger, TriggerDirection, TriggerJoin, TriggerPriceType};

/// Remedy of each error.
const FORM: &str = "write it like 'BTCUSDT last >= 65000', or two such joined by 'and' or 'or'";

/// Errors of a text that is not a trigger. Each carries the unreadable words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// The text has neither the four words of one condition nor the nine of two.
    #[error("'{0}' is no trigger; {form}", form = FORM)]
    Words(String),
    /// The word between two conditions is not `and` or `or`.
    #[error("'{0}' joins no conditions; use 'and' or 'or'; {form}", form = FORM)]
    Join(String),
    /// The word for the compared price is not `last`, `bid` or `ask`.
    #[error("'{0}' is no price of an instrument; use last, bid or ask; {form}", form = FORM)]
    PriceType(String),
    /// The sign of the comparison is not `>=` or `<=`.
    #[error("'{0}' is no comparison; use >= or <=; {form}", form = FORM)]
    Direction(String),
    /// The price of the comparison is not a decimal.
    #[error("'{0}' is no decimal number; {form}", form = FORM)]
    Price(String),
}

/// Reads a trigger; `symbol` returns the number of each named instrument.
pub fn read<E: From<TriggerError>>(text: &str, symbol: impl Fn(&str) -> Result<SymbolId, E>) -> Result<Trigger, E> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let wrong = || TriggerError::Words(text.to_owned());
    let (first, rest) = words.split_first_chunk::<4>().ok_or_else(wrong)?;
    let Some((join, second)) = rest.split_first() else { return Ok(Trigger::on(condition(first, &symbol)?)) };
    let second: &[&str; 4] = second.try_into().map_err(|_| wrong())?;
    let join = match *join {
        "and" => TriggerJoin::And,
        "or" => TriggerJoin::Or,
        other => return Err(TriggerError::Join(other.to_owned()).into()),
    };
    Ok(Trigger::joined(condition(first, &symbol)?, join, condition(second, &symbol)?))
}

/// Formats a trigger as [`read`] reads it; `name` returns the name of each instrument.
pub fn text(trigger: &Trigger, name: impl Fn(SymbolId) -> String) -> String {
    let one = |condition: Condition| {
        let price_type = match TriggerPriceType::from_code(condition.price_type) {
            Some(TriggerPriceType::Ask) => "ask",
            Some(TriggerPriceType::Last) => "last",
            Some(TriggerPriceType::Bid) => "bid",
            None => "?",
        };
        let direction = match TriggerDirection::from_code(condition.direction) {
            Some(TriggerDirection::Up) => ">=",
            Some(TriggerDirection::Down) => "<=",
            None => "?",
        };
        format!("{} {price_type} {direction} {}", name(condition.symbol), condition.price)
    };
    let join = if trigger.join == TriggerJoin::And.code() { " and " } else { " or " };
    trigger.conditions().map(one).collect::<Vec<_>>().join(join)
}

fn condition<E: From<TriggerError>>(
    words: &[&str; 4],
    symbol: impl Fn(&str) -> Result<SymbolId, E>,
) -> Result<Condition, E> {
    let [name, price_type, direction, price] = *words;
    let price_type = match price_type {
        "last" => TriggerPriceType::Last,
        "bid" => TriggerPriceType::Bid,
        "ask" => TriggerPriceType::Ask,
        other => return Err(TriggerError::PriceType(other.to_owned()).into()),
    };
    let direction = match direction {
        ">=" => TriggerDirection::Up,
        "<=" => TriggerDirection::Down,
        other => return Err(TriggerError::Direction(other.to_owned()).into()),
    };
    let price: Price = price.parse().map_err(|_| TriggerError::Price(price.to_owned()))?;
    Ok(Condition {
        price,
        symbol: symbol(name)?,
        price_type: price_type.code(),
        direction: direction.code(),
        reserved: [0; 2],
    })
}
