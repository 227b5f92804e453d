//! Triggers as text: `BTCUSDT last >= 65000 and ETHUSDT bid <= 3000`.

use tickpath_market::{Condition, SymbolId, Trigger, TriggerDirection, TriggerJoin, TriggerPriceType};

/// Writes a trigger as `tickpath order new --when` reads it, with the name of each instrument.
pub(crate) fn text(trigger: &Trigger, name: impl Fn(SymbolId) -> String) -> String {
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
