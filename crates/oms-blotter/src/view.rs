//! The selection of rows and the tables with their columns; rows are selected by account, instrument, session and
//! status.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tickpath_market::{OrderId, OrderType, SymbolId};

use crate::BlotterError;
use crate::reading::Reading;
use crate::row::{FillRow, OrderRow, PositionRow, Status, word};
use crate::table::{Cell, Column, Table, decimal};
use crate::tape::{Changed, Held};

/// Version of the JSON document.
const SCHEMA: &str = "tickpath.blotter/1";

/// Decimals of prices and quantities, and of money: price × quantity.
const DECIMALS: u32 = 8;
const MONEY_DECIMALS: u32 = 16;

/// Upper bound of instrument numbers.
const SYMBOLS: u32 = 65_536;

/// Max instruments that an error names.
const MOST_NAMED: usize = 20;

/// A selection of rows, and the prices that value them.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Selects only rows of this account.
    pub account: Option<u32>,
    /// Selects only rows of this instrument, by its name.
    pub symbol: Option<String>,
    /// Selects only orders of this session, and their fills. Positions have no session.
    pub session: Option<u16>,
    /// Selects only orders of this status, and their fills. Positions have no status.
    pub status: Option<Status>,
    /// Prices at which positions are valued, by the name of the instrument, in units of 10⁻⁸.
    pub marks: BTreeMap<String, i64>,
    /// Costs or values of positions at the start of the day, by the name of the instrument, in units of 10⁻⁸.
    pub starts: BTreeMap<String, i64>,
    /// Names of users by their sessions.
    pub users: BTreeMap<u16, String>,
}

/// The three tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// Orders, in the order of their entry.
    pub orders: Table,
    /// Fills, in the order of their first reports.
    pub fills: Table,
    /// Positions, by account and number of the instrument.
    pub positions: Table,
}

const fn seen(name: &'static str) -> Column {
    Column { name, is_for_people: true }
}

const fn more(name: &'static str) -> Column {
    Column { name, is_for_people: false }
}

/// Columns of orders.
pub const ORDERS: &[Column] = &[
    seen("entered_utc"),
    seen("order_id"),
    seen("client_order_id"),
    seen("session"),
    seen("user"),
    seen("account"),
    seen("symbol"),
    more("venue"),
    seen("side"),
    seen("order_type"),
    more("time_in_force"),
    seen("price"),
    seen("quantity"),
    seen("filled"),
    more("filled_on_day"),
    seen("leaves"),
    seen("average_price"),
    seen("status"),
    more("updated_utc"),
    seen("reason"),
];

/// Columns of fills.
pub const FILLS: &[Column] = &[
    seen("time_utc"),
    seen("exec_id"),
    seen("order_id"),
    more("client_order_id"),
    more("session"),
    seen("account"),
    seen("symbol"),
    seen("venue"),
    seen("side"),
    seen("quantity"),
    seen("price"),
    seen("state"),
    more("counted_quantity"),
    more("updated_utc"),
];

/// Columns of positions.
pub const POSITIONS: &[Column] = &[
    seen("account"),
    seen("symbol"),
    more("multiplier"),
    seen("start_quantity"),
    more("start_price"),
    seen("bought_quantity"),
    seen("bought_price"),
    seen("sold_quantity"),
    seen("sold_price"),
    seen("end_quantity"),
    seen("average_price"),
    seen("mark_price"),
    seen("realised_profit"),
    seen("open_profit"),
];

impl View {
    /// Checks that every name is an instrument of the journal.
    pub fn check(&self, reading: &Reading) -> Result<(), BlotterError> {
        let mut named = self.symbol.iter().chain(self.marks.keys()).chain(self.starts.keys()).peekable();
        if named.peek().is_none() {
            return Ok(());
        }
        let defined = (0..SYMBOLS).filter_map(|number| reading.core().instrument(SymbolId(number)));
        let known: Vec<String> =
            defined.map(|instrument| instrument.name.to_string()).filter(|name| !name.is_empty()).collect();
        match named.find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => Err(BlotterError::UnknownSymbol { name: name.clone(), known: instruments(&known) }),
        }
    }

    /// Returns all rows.
    pub fn tables(&self, reading: &Reading) -> Tables {
        let tape = reading.tape();
        let orders = tape.orders().filter(|row| self.has_order(reading, row)).map(|row| self.order(reading, row));
        let fills = tape.fills().iter().filter(|row| self.has_fill(reading, row)).map(|row| self.fill(reading, row));
        let positions = tape.positions().filter_map(|held| self.position(reading, held));
        tables(orders.collect(), fills.collect(), positions.collect())
    }

    /// Returns the rows that changed since the last call.
    pub fn changes(&self, reading: &mut Reading) -> Tables {
        let Changed { orders, fills, positions } = reading.take_changed();
        let reading = &*reading;
        let tape = reading.tape();
        let orders = orders.iter().filter_map(|&id| tape.order(id));
        let orders = orders.filter(|row| self.has_order(reading, row)).map(|row| self.order(reading, row));
        let fills = fills.iter().filter_map(|&place| tape.fills().get(place));
        let fills = fills.filter(|row| self.has_fill(reading, row)).map(|row| self.fill(reading, row));
        let positions = positions.into_iter().filter_map(|held| self.position(reading, held));
        tables(orders.collect(), fills.collect(), positions.collect())
    }

    fn has(&self, reading: &Reading, (account, symbol): Held) -> bool {
        self.account.is_none_or(|chosen| chosen == account.0)
            && self.symbol.as_ref().is_none_or(|chosen| *chosen == reading.tape().name(symbol))
    }

    fn has_order(&self, reading: &Reading, row: &OrderRow) -> bool {
        self.has(reading, (row.account, row.symbol))
            && self.session.is_none_or(|chosen| chosen == row.session)
            && self.status.is_none_or(|chosen| chosen == row.status)
    }

    fn has_fill(&self, reading: &Reading, row: &FillRow) -> bool {
        reading.tape().order(row.order_id.0).is_some_and(|order| self.has_order(reading, order))
    }

    fn order(&self, reading: &Reading, row: &OrderRow) -> Vec<Cell> {
        let is_market = row.order_type == Some(OrderType::Market);
        vec![
            or_nothing(row.entered_ns, Cell::Time),
            id(row.id),
            number(row.client_order_id.0),
            number(row.session),
            or_nothing(self.users.get(&row.session).cloned(), Cell::Text),
            number(row.account.0),
            Cell::Text(reading.tape().name(row.symbol)),
            or_nothing(row.venue, |venue| number(venue.0)),
            or_nothing(row.side, |side| Cell::Text(word(side))),
            or_nothing(row.order_type, |order_type| Cell::Text(word(order_type))),
            or_nothing(row.time_in_force, |time_in_force| Cell::Text(word(time_in_force))),
            if is_market { Cell::Nothing } else { units(row.price.0) },
            units(row.quantity.0),
            units(row.filled.0),
            units(row.filled_on_day.0),
            units(row.leaves.0),
            or_nothing(row.average_price, units),
            Cell::Text(row.status.word()),
            or_nothing(row.updated_ns, Cell::Time),
            or_nothing(row.reason.clone(), Cell::Text),
        ]
    }

    fn fill(&self, reading: &Reading, row: &FillRow) -> Vec<Cell> {
        vec![
            Cell::Time(row.time_ns),
            number(row.exec_id.0),
            id(row.order_id),
            number(row.client_order_id.0),
            number(row.session),
            number(row.account.0),
            Cell::Text(reading.tape().name(row.symbol)),
            or_nothing(row.venue, |venue| number(venue.0)),
            Cell::Text(word(row.side)),
            units(row.quantity.0),
            or_nothing(row.price, |price| units(price.0)),
            Cell::Text(word(row.state)),
            units(row.counted.0),
            or_nothing(row.updated_ns, Cell::Time),
        ]
    }

    fn position(&self, reading: &Reading, held: Held) -> Option<Vec<Cell>> {
        let row = self.position_row(reading, held)?;
        Some(vec![
            number(row.account.0),
            Cell::Text(reading.tape().name(row.symbol)),
            number(row.multiplier.unsigned_abs()),
            units(row.start_quantity),
            or_nothing(row.start_price, units),
            units(row.bought_quantity),
            or_nothing(row.bought_price, units),
            units(row.sold_quantity),
            or_nothing(row.sold_price, units),
            units(row.end_quantity),
            or_nothing(row.average_price, units),
            or_nothing(row.mark, units),
            or_nothing(row.realised, money),
            or_nothing(row.open, money),
        ])
    }

    /// Returns a position as the view values it; none if the view leaves it out.
    pub(crate) fn position_row(&self, reading: &Reading, held: Held) -> Option<PositionRow> {
        if !self.has(reading, held) {
            return None;
        }
        let (tape, name) = (reading.tape(), reading.tape().name(held.1));
        let mark = self.marks.get(&name).copied().or_else(|| tape.last_price(held.1));
        tape.position(held, self.starts.get(&name).copied(), mark)
    }
}

impl Reading {
    /// Returns the orders of the day that a view shows.
    pub fn orders<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a OrderRow> {
        self.tape().orders().filter(|row| view.has_order(self, row))
    }

    /// Returns the fills of the day that a view shows.
    pub fn fills<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a FillRow> {
        self.tape().fills().iter().filter(|row| view.has_fill(self, row))
    }

    /// Returns the positions of the day that a view shows, as it values them.
    pub fn positions<'a>(&'a self, view: &'a View) -> impl Iterator<Item = PositionRow> {
        self.tape().positions().filter_map(|held| view.position_row(self, held))
    }

    /// Returns the name of an instrument, or its number if it has none.
    pub fn symbol(&self, symbol: SymbolId) -> String {
        self.tape().name(symbol)
    }
}

impl Tables {
    /// Returns all three tables, in the order of the document.
    pub fn all(&self) -> [&Table; 3] {
        [&self.orders, &self.fills, &self.positions]
    }
}

/// Returns one JSON document: the day, the method of profit, and the tables.
pub fn document(reading: &Reading, tables: &[&Table]) -> Value {
    let day = reading.day();
    let mut document = json!({
        "schema": SCHEMA,
        "day": day.date,
        "first_record": day.first,
        "before_record": reading.before(),
        "replayed_from_record": reading.from(),
        "profit_method": "average_cost",
    });
    for table in tables {
        document[table.name] = table.json().into();
    }
    document
}

fn tables(orders: Vec<Vec<Cell>>, fills: Vec<Vec<Cell>>, positions: Vec<Vec<Cell>>) -> Tables {
    Tables {
        orders: Table { name: "orders", columns: ORDERS, rows: orders },
        fills: Table { name: "fills", columns: FILLS, rows: fills },
        positions: Table { name: "positions", columns: POSITIONS, rows: positions },
    }
}

fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
    value.map_or(Cell::Nothing, cell)
}

fn number(number: impl Into<u64>) -> Cell {
    Cell::Number(number.into())
}

fn units(units: impl Into<i128>) -> Cell {
    Cell::Decimal(decimal(units.into(), DECIMALS))
}

fn money(units: i128) -> Cell {
    Cell::Decimal(decimal(units, MONEY_DECIMALS))
}

/// Returns an order's id as `tickpath orders` prints it and `order cancel --order-id` takes it.
fn id(id: OrderId) -> Cell {
    Cell::Text(format!("{}.{}", id.epoch(), id.sequence()))
}

fn instruments(known: &[String]) -> String {
    match known.len() {
        0 => "no instrument is defined in it".to_owned(),
        count if count <= MOST_NAMED => format!("its instruments are {}", known.join(", ")),
        count => format!("it has {count} instruments, among them {}", known[..MOST_NAMED].join(", ")),
    }
}
