//! The selection of rows and the tables with their columns; rows are selected by account, instrument, session and
//! status.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde_json::{Value, json};
use tickpath_market::{OrderId, OrderType, SymbolId};

use crate::BlotterError;
use crate::day_blotter::DayBlotter;
use crate::day_rows::{ChangedRows, PositionKey};
use crate::row::{BlotterFill, BlotterOrder, BlotterPosition, BlotterStatus, snake_case};
use crate::table::{BlotterCell, BlotterColumn, BlotterTable, decimal};

/// Version of the JSON document.
const SCHEMA: &str = "tickpath.blotter/1";

/// Decimals of prices and quantities, and of money: price × quantity.
const DECIMALS: u32 = 8;
const MONEY_DECIMALS: u32 = 16;

/// Upper bound of instrument numbers.
const SYMBOLS: u32 = 65_536;

/// Max instruments that an error names.
const MAX_NAMED: usize = 20;

/// A selection of rows, and the prices that value them.
#[derive(Debug, Clone, Default)]
pub struct BlotterView {
    /// Selects only rows of this account.
    pub account: Option<u32>,
    /// Selects only rows of this instrument, by its name.
    pub symbol: Option<String>,
    /// Selects only orders of this session, and their fills. Positions have no session.
    pub session: Option<u16>,
    /// Selects only orders of this status, and their fills. Positions have no status.
    pub status: Option<BlotterStatus>,
    /// Prices at which positions are valued, by the name of the instrument, in units of 10⁻⁸.
    pub marks: BTreeMap<String, i64>,
    /// Costs or values of positions at the start of the day, by the name of the instrument, in units of 10⁻⁸.
    pub starts: BTreeMap<String, i64>,
    /// Names of users by their sessions.
    pub users: BTreeMap<u16, String>,
}

/// The three tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlotterTables {
    /// Orders, in the order of their entry.
    pub orders: BlotterTable,
    /// Fills, in the order of their first reports.
    pub fills: BlotterTable,
    /// Positions, by account and number of the instrument.
    pub positions: BlotterTable,
}

/// Defines the columns of a table: the name of each, whether the text for people has it, and its cell of a row.
macro_rules! table {
    ($(#[$doc:meta])* $columns:ident, $cells:ident($view:ident, $blotter:ident, $row:ident: $Row:ty):
     $($name:literal, $is_for_people:literal => $cell:expr;)*) => {
        $(#[$doc])*
        pub const $columns: &[BlotterColumn] =
            &[$(BlotterColumn { name: $name, is_for_people: $is_for_people }),*];

        fn $cells($view: &BlotterView, $blotter: &DayBlotter, $row: &$Row) -> Vec<BlotterCell> {
            vec![$($cell),*]
        }
    };
}

table! {
    /// Columns of orders.
    ORDERS, order_cells(view, blotter, row: BlotterOrder):
    "entered_utc", true => or_nothing(row.entered_ns, BlotterCell::Time);
    "order_id", true => id(row.id);
    "client_order_id", true => number(row.client_order_id.0);
    "session", true => number(row.session);
    "user", true => or_nothing(view.users.get(&row.session).cloned(), BlotterCell::Text);
    "account", true => number(row.account.0);
    "symbol", true => BlotterCell::Text(blotter.rows.name(row.symbol));
    "venue", false => or_nothing(row.venue, |venue| number(venue.0));
    "side", true => code(row.side);
    "order_type", true => code(row.order_type);
    "time_in_force", false => code(row.time_in_force);
    "price", true => if row.order_type == Some(OrderType::Market) { BlotterCell::Nothing } else { units(row.price.0) };
    "quantity", true => units(row.quantity.0);
    "filled", true => units(row.filled.0);
    "filled_on_day", false => units(row.filled_on_day.0);
    "leaves", true => units(row.leaves.0);
    "average_price", true => or_nothing(row.average_price, units);
    "status", true => BlotterCell::Text(row.status.word());
    "updated_utc", false => or_nothing(row.updated_ns, BlotterCell::Time);
    "reason", true => or_nothing(row.reason.clone(), BlotterCell::Text);
    "expires_utc", false => or_nothing(row.expires_ns, BlotterCell::Time);
    "client_id", false => or_nothing(row.text_id.map(|text_id| text_id.to_string()), BlotterCell::Text);
}

table! {
    /// Columns of fills.
    FILLS, fill_cells(_view, blotter, row: BlotterFill):
    "time_utc", true => BlotterCell::Time(row.time_ns);
    "exec_id", true => number(row.exec_id.0);
    "order_id", true => id(row.order_id);
    "client_order_id", false => number(row.client_order_id.0);
    "session", false => number(row.session);
    "account", true => number(row.account.0);
    "symbol", true => BlotterCell::Text(blotter.rows.name(row.symbol));
    "venue", true => or_nothing(row.venue, |venue| number(venue.0));
    "side", true => BlotterCell::Text(snake_case(row.side));
    "quantity", true => units(row.quantity.0);
    "price", true => or_nothing(row.price, |price| units(price.0));
    "state", true => BlotterCell::Text(snake_case(row.state));
    "fee", false => or_nothing(row.fee, money);
    "fee_currency", false => or_nothing(row.fee.map(|_| row.fee_currency.to_string()), BlotterCell::Text);
    "liquidity", false => or_nothing(row.liquidity.map(snake_case), BlotterCell::Text);
    "counted_quantity", false => units(row.counted.0);
    "updated_utc", false => or_nothing(row.updated_ns, BlotterCell::Time);
}

table! {
    /// Columns of positions.
    POSITIONS, position_cells(_view, blotter, row: BlotterPosition):
    "account", true => number(row.account.0);
    "symbol", true => BlotterCell::Text(blotter.rows.name(row.symbol));
    "multiplier", false => BlotterCell::Decimal(decimal(row.multiplier.0.into(), row.multiplier.1.into()));
    "start_quantity", true => units(row.start_quantity);
    "start_price", false => or_nothing(row.start_price, units);
    "bought_quantity", true => units(row.bought_quantity);
    "bought_price", true => or_nothing(row.bought_price, units);
    "sold_quantity", true => units(row.sold_quantity);
    "sold_price", true => or_nothing(row.sold_price, units);
    "end_quantity", true => units(row.end_quantity);
    "average_price", true => or_nothing(row.average_price, units);
    "mark_price", true => or_nothing(row.mark, units);
    "realised_profit", true => or_nothing(row.realised, money);
    "open_profit", true => or_nothing(row.open, money);
}

impl BlotterView {
    /// Checks that every name is an instrument of the journal.
    pub fn check(&self, blotter: &DayBlotter) -> Result<(), BlotterError> {
        let mut named = self.symbol.iter().chain(self.marks.keys()).chain(self.starts.keys()).peekable();
        if named.peek().is_none() {
            return Ok(());
        }
        let defined = (0..SYMBOLS).filter_map(|number| blotter.core.instrument(SymbolId(number)));
        let names = defined.map(|instrument| instrument.name().to_string());
        let known: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        match named.find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => Err(BlotterError::UnknownSymbol { name: name.clone(), known: instruments(&known) }),
        }
    }

    /// Returns all rows.
    pub fn tables(&self, blotter: &DayBlotter) -> BlotterTables {
        let rows = &blotter.rows;
        self.select(blotter, rows.orders(), rows.fills().iter(), rows.positions())
    }

    /// Returns the rows that changed since the last call.
    pub fn changes(&self, blotter: &mut DayBlotter) -> BlotterTables {
        let ChangedRows { orders, fills, positions } = blotter.rows.take_changed();
        let blotter = &*blotter;
        let rows = &blotter.rows;
        let orders = orders.iter().filter_map(|&id| rows.order(id));
        let fills = fills.iter().filter_map(|&index| rows.fills().get(index));
        self.select(blotter, orders, fills, positions.into_iter())
    }

    fn select<'a>(
        &self,
        blotter: &DayBlotter,
        orders: impl Iterator<Item = &'a BlotterOrder>,
        fills: impl Iterator<Item = &'a BlotterFill>,
        positions: impl Iterator<Item = PositionKey>,
    ) -> BlotterTables {
        let orders = orders.filter(|row| self.selects_order(blotter, row)).map(|row| order_cells(self, blotter, row));
        let fills = fills.filter(|row| self.selects_fill(blotter, row)).map(|row| fill_cells(self, blotter, row));
        let positions = positions.filter_map(|key| self.position_row(blotter, key));
        let positions = positions.map(|row| position_cells(self, blotter, &row));
        BlotterTables {
            orders: BlotterTable { name: "orders", columns: ORDERS, rows: orders.collect() },
            fills: BlotterTable { name: "fills", columns: FILLS, rows: fills.collect() },
            positions: BlotterTable { name: "positions", columns: POSITIONS, rows: positions.collect() },
        }
    }

    fn selects(&self, blotter: &DayBlotter, (account, symbol): PositionKey) -> bool {
        self.account.is_none_or(|chosen| chosen == account.0)
            && self.symbol.as_ref().is_none_or(|chosen| *chosen == blotter.rows.name(symbol))
    }

    fn selects_order(&self, blotter: &DayBlotter, row: &BlotterOrder) -> bool {
        self.selects(blotter, (row.account, row.symbol))
            && self.session.is_none_or(|chosen| chosen == row.session)
            && self.status.is_none_or(|chosen| chosen == row.status)
    }

    fn selects_fill(&self, blotter: &DayBlotter, row: &BlotterFill) -> bool {
        blotter.rows.order(row.order_id.0).is_some_and(|order| self.selects_order(blotter, order))
    }

    /// Returns a position as the view values it; none if the view leaves it out.
    pub(crate) fn position_row(&self, blotter: &DayBlotter, key: PositionKey) -> Option<BlotterPosition> {
        if !self.selects(blotter, key) {
            return None;
        }
        let (rows, name) = (&blotter.rows, blotter.rows.name(key.1));
        let mark = self.marks.get(&name).copied().or_else(|| rows.last_price(key.1));
        rows.position(key, self.starts.get(&name).copied(), mark)
    }
}

impl DayBlotter {
    /// Returns the orders of the day that a view shows.
    pub fn orders<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = &'a BlotterOrder> {
        self.rows.orders().filter(|row| view.selects_order(self, row))
    }

    /// Returns the fills of the day that a view shows.
    pub fn fills<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = &'a BlotterFill> {
        self.rows.fills().iter().filter(|row| view.selects_fill(self, row))
    }

    /// Returns the positions of the day that a view shows, as it values them.
    pub fn positions<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = BlotterPosition> {
        self.rows.positions().filter_map(|key| view.position_row(self, key))
    }

    /// Returns the name of an instrument, or its number if it has none.
    pub fn symbol(&self, symbol: SymbolId) -> String {
        self.rows.name(symbol)
    }
}

impl BlotterTables {
    /// Returns all three tables, in the order of the document.
    pub fn all(&self) -> [&BlotterTable; 3] {
        [&self.orders, &self.fills, &self.positions]
    }
}

/// Returns one JSON document: the day, the method of profit, and the tables.
pub fn json_document(blotter: &DayBlotter, tables: &[&BlotterTable]) -> Value {
    let day = blotter.day();
    let mut document = json!({
        "schema": SCHEMA,
        "day": day.date,
        "first_record": day.first,
        "before_record": blotter.next_record(),
        "replayed_from_record": blotter.replayed_from(),
        "profit_method": "average_cost",
    });
    for table in tables {
        document[table.name] = table.json().into();
    }
    document
}

fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> BlotterCell) -> BlotterCell {
    value.map_or(BlotterCell::Nothing, cell)
}

fn code(code: Option<impl Debug>) -> BlotterCell {
    or_nothing(code, |code| BlotterCell::Text(snake_case(code)))
}

fn number(number: impl Into<u64>) -> BlotterCell {
    BlotterCell::Number(number.into())
}

fn units(units: impl Into<i128>) -> BlotterCell {
    BlotterCell::Decimal(decimal(units.into(), DECIMALS))
}

fn money(units: i128) -> BlotterCell {
    BlotterCell::Decimal(decimal(units, MONEY_DECIMALS))
}

/// Returns an order's id as `tickpath orders` prints it and `order cancel --order-id` takes it.
fn id(id: OrderId) -> BlotterCell {
    BlotterCell::Text(format!("{}.{}", id.epoch(), id.sequence()))
}

fn instruments(known: &[String]) -> String {
    match known.len() {
        0 => "no instrument is defined in it".to_owned(),
        count if count <= MAX_NAMED => format!("its instruments are {}", known.join(", ")),
        count => format!("it has {count} instruments, among them {}", known[..MAX_NAMED].join(", ")),
    }
}
