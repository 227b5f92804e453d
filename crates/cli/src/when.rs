//! What an order waits for, as a person writes it: `BTCUSDT last >= 65000 and ETHUSDT bid <= 3000`.

use tickpath_market::{Condition, Price, SymbolId, Trigger, TriggerDirection, TriggerJoin, TriggerPriceType};

use crate::args::Usage;

/// What `--when` means, for the help of who asks for all of it.
pub const WHEN_HELP: &str = "\
What must hold before the order leaves: NAME last|bid|ask >=|<= PRICE, one condition, or two joined by 'and' or 'or'

  --when 'BTCUSDT last >= 65000'
  --when 'BTCUSDT bid <= 60000 or ETHUSDT ask >= 3000'

The order waits at the OMS, armed, and no venue hears of it. It fires once, with the first tick at which the trigger holds:
last is the price of the last trade, bid and ask are those of the last top of book, and of two conditions joined by 'and'
both must hold by the latest price of each. A trigger that holds already fires at once, with the last tick that the OMS has
seen; after a start of the OMS its next tick decides. All pre-trade checks are made when it fires: one that fails denies the
order. Until then it counts among the account's open orders, and as nothing in its position and credit.

An armed order survives any restart of the OMS. It is changed by `order replace`, with another trigger or without, and
canceled like any order, at the end of the day too if it is no gtc order. The OMS needs ticks: the topic 'ticks' in its file.";

/// Reads a trigger, with the number of each instrument that is named.
pub fn read(text: &str, symbol: impl Fn(&str) -> Result<SymbolId, Usage>) -> anyhow::Result<Trigger> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let one = |words: &[&str]| condition(words, &symbol);
    match words[..] {
        [_, _, _, _] => Ok(Trigger::on(one(&words)?)),
        [_, _, _, _, join, _, _, _, _] => {
            let join = match join {
                "and" => TriggerJoin::And,
                "or" => TriggerJoin::Or,
                _ => return Err(wrong(join, "joins nothing: 'and' and 'or' do")),
            };
            Ok(Trigger::joined(one(&words[..4])?, join, one(&words[5..])?))
        }
        _ => Err(wrong(text, "is no trigger")),
    }
}

/// Writes a trigger, with the name of each instrument.
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

/// Four words.
fn condition(words: &[&str], symbol: impl Fn(&str) -> Result<SymbolId, Usage>) -> anyhow::Result<Condition> {
    let [name, price_type, direction, price] = words else {
        return Err(wrong(&words.join(" "), "is no condition"));
    };
    let price_type = match *price_type {
        "last" => TriggerPriceType::Last,
        "bid" => TriggerPriceType::Bid,
        "ask" => TriggerPriceType::Ask,
        other => return Err(wrong(other, "is no price of an instrument: last, bid and ask are")),
    };
    let direction = match *direction {
        ">=" => TriggerDirection::Up,
        "<=" => TriggerDirection::Down,
        other => return Err(wrong(other, "compares nothing: >= and <= do")),
    };
    let price: Price = price.parse().map_err(|_| wrong(price, "is no decimal number"))?;
    Ok(Condition {
        price,
        symbol: symbol(name)?,
        price_type: price_type.code(),
        direction: direction.code(),
        reserved: [0; 2],
    })
}

fn wrong(what: &str, why: &str) -> anyhow::Error {
    let form = "write it like 'BTCUSDT last >= 65000', or two such joined by 'and' or 'or'";
    Usage(format!("--when: '{what}' {why}; {form}")).into()
}
