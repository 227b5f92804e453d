//! The instruments of a simulated exchange: from a table, or a few of the best-known ones.

use std::path::Path;

use tickpath_exchanges::OrderExchange;
use tickpath_market::{Price, Quantity, SymbolId};
use tickpath_settings::{TORN_CELL, read_text, table_cells, table_lines};
use tickpath_venue_sim_web::SimInstrument;

use tickpath_cli_terminal::args::{CliUsageError, bail_usage};

/// Quantity of the quotes at the start, in smallest quantities of an order.
const QUOTED_MINIMUMS: i64 = 100_000;

/// Columns of a table that are read; the first two are required.
const COLUMNS: [&str; 8] =
    ["symbol", "number", "tick_size", "lot", "minimum_quantity", "multiplier", "currency", "code"];

/// Instruments without a table: name, tick size, lot, minimum, contract size, price.
const OKX: [[&str; 6]; 3] = [
    ["BTC-USDT", "0.1", "0.00000001", "0.00001", "1", "61800"],
    ["ETH-USDT", "0.01", "0.000001", "0.0001", "1", "3300"],
    ["BTC-USDT-SWAP", "0.1", "0.01", "0.01", "0.01", "61800"],
];
const BINANCE: [[&str; 6]; 2] =
    [["BTCUSDT", "0.01", "0.00001", "0.00001", "1", "61800"], ["ETHUSDT", "0.01", "0.0001", "0.0001", "1", "3300"]];
/// Code of the first instrument without a table.
const FIRST_CODE: u64 = 10_001;

/// Price of an instrument at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialPrice {
    name: String,
    price: Price,
}

/// Parses NAME=PRICE.
pub fn initial_price(text: &str) -> Result<InitialPrice, String> {
    let (name, price) = text.split_once('=').ok_or("write NAME=PRICE, like BTC-USDT=61800")?;
    let price = price.parse::<Price>().map_err(|why| why.to_string())?;
    if name.is_empty() || price <= Price::ZERO {
        return Err("write a name and a price above zero, like BTC-USDT=61800".to_owned());
    }
    Ok(InitialPrice { name: name.to_owned(), price })
}

/// Returns a few instruments, at these prices instead of their own.
pub fn default_instruments(
    protocol: OrderExchange,
    prices: &[InitialPrice],
) -> Result<Vec<SimInstrument>, CliUsageError> {
    let rows: &[[&str; 6]] = match protocol {
        OrderExchange::Okx => &OKX,
        OrderExchange::Binance => &BINANCE,
    };
    check_known(prices, |name| rows.iter().any(|row| row[0] == name), "an instrument without --instruments FILE")?;
    let instruments = rows.iter().enumerate().map(|(index, [name, tick, lot, minimum, contract, price])| {
        let row = InstrumentRow {
            name,
            number: index as u32 + 1,
            cells: [*tick, *lot, *minimum, *contract],
            currency: "USDT",
            code: FIRST_CODE + index as u64,
        };
        let given = prices.iter().find(|given| given.name == *name).map(|given| given.price);
        let price = given.map_or_else(|| price.parse::<Price>().map_err(|why| why.to_string()), Ok);
        price.and_then(|price| row.instrument(protocol, price))
    });
    instruments.collect::<Result<_, String>>().map_err(CliUsageError)
}

/// Reads the instruments of a table that have a price.
pub fn read_instruments(
    file: &Path,
    protocol: OrderExchange,
    prices: &[InitialPrice],
) -> Result<Vec<SimInstrument>, CliUsageError> {
    let text = read_text(file).map_err(|e| CliUsageError(e.to_string()))?;
    let at = |line: usize, why: String| CliUsageError(format!("{}:{line}: {why}", file.display()));
    let mut lines = table_lines(&text).map(|(line, text)| (line, table_cells(text)));
    let Some((_, Some(head))) = lines.next() else {
        bail_usage!("{}: the first line names the columns; fetch a table first", file.display());
    };
    let columns = COLUMNS.map(|name| head.iter().position(|cell| cell == name));
    if columns[..2].contains(&None) {
        bail_usage!("{}: the columns symbol and number are missing; fetch a table first", file.display());
    }
    let mut instruments = Vec::new();
    for (line, cells) in lines {
        let cells = cells.ok_or_else(|| at(line, TORN_CELL.to_owned()))?;
        let [name, number, tick, lot, minimum, contract, currency, code] =
            columns.map(|column| column.and_then(|index| cells.get(index)).unwrap_or_default());
        let Some(given) = prices.iter().find(|given| given.name == name) else { continue };
        let whole = || at(line, format!("'{number}' and '{code}' must be whole numbers; correct them"));
        let row = InstrumentRow {
            name,
            number: number.parse().map_err(|_| whole())?,
            cells: [tick, lot, minimum, contract],
            currency,
            code: if code.is_empty() { 0 } else { code.parse().map_err(|_| whole())? },
        };
        instruments.push(row.instrument(protocol, given.price).map_err(|why| at(line, why))?);
    }
    let is_read = |name: &str| instruments.iter().any(|instrument: &SimInstrument| instrument.name == name);
    check_known(prices, is_read, &format!("in {}", file.display()))?;
    Ok(instruments)
}

/// Refuses a price of an instrument that is not there.
fn check_known(
    prices: &[InitialPrice],
    is_known: impl Fn(&str) -> bool,
    where_it_is_not: &str,
) -> Result<(), CliUsageError> {
    match prices.iter().find(|given| !is_known(&given.name)) {
        Some(InitialPrice { name, .. }) => bail_usage!("--prices: {name} is not {where_it_is_not}; correct the name"),
        None => Ok(()),
    }
}

/// An instrument as a table has it.
struct InstrumentRow<'a> {
    name: &'a str,
    number: u32,
    /// Tick size, lot, minimum quantity, contract size; empty for none.
    cells: [&'a str; 4],
    currency: &'a str,
    code: u64,
}

impl InstrumentRow<'_> {
    fn instrument(&self, protocol: OrderExchange, price: Price) -> Result<SimInstrument, String> {
        let Self { name, number, code, .. } = *self;
        let [tick, lot, minimum, contract] = self.cells.map(decimal);
        let units = [tick?, lot?, minimum?, contract?];
        let [tick, lot, minimum, contract] = units.map(|units| units.unwrap_or(0));
        let (base, quote, is_derivative) = self.currencies(protocol)?;
        let step = tick.max(1);
        if price.0 % step != 0 {
            return Err(format!("the price {price} of {name} is no multiple of its tick size; round it"));
        }
        let (lot, minimum) = (Quantity(lot), Quantity(minimum.max(lot).max(1)));
        Ok(SimInstrument {
            name: name.to_owned(),
            symbol: SymbolId(number),
            code: if code == 0 { number.into() } else { code },
            base,
            quote,
            tick: Price(tick),
            lot,
            minimum,
            is_derivative,
            contract_value: if contract > 0 { Quantity(contract) } else { Quantity::from_whole(1) },
            bid: price,
            ask: Price(price.0.saturating_add(step)),
            size: Quantity(minimum.0.saturating_mul(QUOTED_MINIMUMS)),
        })
    }

    /// Returns the base and the quote currency, and whether the instrument is a derivative, as the exchange's names show
    /// it.
    fn currencies(&self, protocol: OrderExchange) -> Result<(String, String, bool), String> {
        let parts: Vec<&str> = self.name.split('-').collect();
        let found = match (protocol, &parts[..]) {
            (OrderExchange::Okx, [base, quote, rest @ ..]) => Some((*base, *quote, !rest.is_empty())),
            (OrderExchange::Okx, _) => None,
            (OrderExchange::Binance, _) => {
                self.name.strip_suffix(self.currency).map(|base| (base, self.currency, false))
            }
        };
        let (base, quote, is_derivative) =
            found.filter(|(base, quote, _)| !base.is_empty() && !quote.is_empty()).ok_or_else(|| {
                let (name, currency, exchange) = (self.name, self.currency, protocol.name());
                format!("'{name}' with the currency '{currency}' is no instrument of {exchange}; fetch its table")
            })?;
        Ok((base.to_owned(), quote.to_owned(), is_derivative))
    }
}

/// Reads a decimal of eight digits; none from an empty cell.
fn decimal(cell: &str) -> Result<Option<i64>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    let units = cell.parse::<Quantity>().map_err(|why| format!("'{cell}': {why}"))?.0;
    if units < 0 { Err(format!("'{cell}' is below zero; correct it")) } else { Ok(Some(units)) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn prices(list: &[&str]) -> Vec<InitialPrice> {
        list.iter().map(|text| initial_price(text).expect("it is a price")).collect()
    }

    #[test]
    fn the_default_instruments_are_quoted_at_their_prices() {
        let okx = default_instruments(OrderExchange::Okx, &prices(&["ETH-USDT=4000.5"])).expect("it is known");
        let text = |one: &SimInstrument| {
            let SimInstrument { name, symbol, code, base, quote, bid, ask, size, .. } = one;
            format!("{name} {symbol} {code} {base} {quote} {bid} {ask} {size} {}", one.is_derivative)
        };
        let found: Vec<String> = okx.iter().map(text).collect();
        let expected = [
            "BTC-USDT 1 10001 BTC USDT 61800 61800.1 1 false",
            "ETH-USDT 2 10002 ETH USDT 4000.5 4000.51 10 false",
            "BTC-USDT-SWAP 3 10003 BTC USDT 61800 61800.1 1000 true",
        ];
        assert_eq!(found, expected);
        let binance = default_instruments(OrderExchange::Binance, &[]).expect("they are sound");
        assert_eq!(text(&binance[0]), "BTCUSDT 1 10001 BTC USDT 61800 61800.01 1 false");
    }

    #[test]
    fn a_table_gives_the_instruments_that_have_a_price() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("instruments.csv");
        let table = "# A table.\nsymbol,number,venue,multiplier,tick_size,lot,minimum_quantity,currency,code\n\
                     SOL-USDT,7,OKX,1,0.01,0.001,0.01,USDT,77\nSOL-USDT-SWAP,8,OKX,0.1,0.01,1,1,USDT,\n";
        fs::write(&file, table).expect("the folder is ours");
        let read = |list: &[&str]| read_instruments(&file, OrderExchange::Okx, &prices(list));
        let swap = &read(&["SOL-USDT-SWAP=150"]).expect("it is there")[0];
        assert_eq!((swap.symbol, swap.code, swap.is_derivative), (SymbolId(8), 8, true));
        assert_eq!(swap.contract_value.to_string(), "0.1");
        assert_eq!(read(&["SOL-USDT=150", "SOL-USDT-SWAP=150"]).expect("both are there").len(), 2);
        for (list, words) in [(["SOL-USDT=150.005"], "round it"), (["ADA-USDT=1"], "ADA-USDT is not in")] {
            let refused = read(&list).expect_err("it is wrong").to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
