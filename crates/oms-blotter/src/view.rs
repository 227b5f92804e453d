//! The selection of rows and the tables with their columns; rows are selected by account, instrument, session and
//! status.

use std::collections::BTreeMap;

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

const fn shown_column(name: &'static str) -> BlotterColumn {
    BlotterColumn { name, is_for_people: true }
}

const fn hidden_column(name: &'static str) -> BlotterColumn {
    BlotterColumn { name, is_for_people: false }
}

/// Columns of orders.
pub const ORDERS: &[BlotterColumn] = &[
    shown_column("entered_utc"),
    shown_column("order_id"),
    shown_column("client_order_id"),
    shown_column("session"),
    shown_column("user"),
    shown_column("account"),
    shown_column("symbol"),
    hidden_column("venue"),
    shown_column("side"),
    shown_column("order_type"),
    hidden_column("time_in_force"),
    shown_column("price"),
    shown_column("quantity"),
    shown_column("filled"),
    hidden_column("filled_on_day"),
    shown_column("leaves"),
    shown_column("average_price"),
    shown_column("status"),
    hidden_column("updated_utc"),
    shown_column("reason"),
];

/// Columns of fills.
pub const FILLS: &[BlotterColumn] = &[
    shown_column("time_utc"),
    shown_column("exec_id"),
    shown_column("order_id"),
    hidden_column("client_order_id"),
    hidden_column("session"),
    shown_column("account"),
    shown_column("symbol"),
    shown_column("venue"),
    shown_column("side"),
    shown_column("quantity"),
    shown_column("price"),
    shown_column("state"),
    hidden_column("counted_quantity"),
    hidden_column("updated_utc"),
];

/// Columns of positions.
pub const POSITIONS: &[BlotterColumn] = &[
    shown_column("account"),
    shown_column("symbol"),
    hidden_column("multiplier"),
    shown_column("start_quantity"),
    hidden_column("start_price"),
    shown_column("bought_quantity"),
    shown_column("bought_price"),
    shown_column("sold_quantity"),
    shown_column("sold_price"),
    shown_column("end_quantity"),
    shown_column("average_price"),
    shown_column("mark_price"),
    shown_column("realised_profit"),
    shown_column("open_profit"),
];

impl BlotterView {
    /// Checks that every name is an instrument of the journal.
    pub fn check(&self, reading: &DayBlotter) -> Result<(), BlotterError> {
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
    pub fn tables(&self, reading: &DayBlotter) -> BlotterTables {
        let tape = reading.rows();
        let orders = tape.orders().filter(|row| self.selects_order(reading, row)).map(|row| self.order(reading, row));
        let fills =
            tape.fills().iter().filter(|row| self.selects_fill(reading, row)).map(|row| self.fill(reading, row));
        let positions = tape.positions().filter_map(|held| self.position(reading, held));
        tables(orders.collect(), fills.collect(), positions.collect())
    }

    /// Returns the rows that changed since the last call.
    pub fn changes(&self, reading: &mut DayBlotter) -> BlotterTables {
        let ChangedRows { orders, fills, positions } = reading.take_changed();
        let reading = &*reading;
        let tape = reading.rows();
        let orders = orders.iter().filter_map(|&id| tape.order(id));
        let orders = orders.filter(|row| self.selects_order(reading, row)).map(|row| self.order(reading, row));
        let fills = fills.iter().filter_map(|&place| tape.fills().get(place));
        let fills = fills.filter(|row| self.selects_fill(reading, row)).map(|row| self.fill(reading, row));
        let positions = positions.into_iter().filter_map(|held| self.position(reading, held));
        tables(orders.collect(), fills.collect(), positions.collect())
    }

    fn selects(&self, reading: &DayBlotter, (account, symbol): PositionKey) -> bool {
        self.account.is_none_or(|chosen| chosen == account.0)
            && self.symbol.as_ref().is_none_or(|chosen| *chosen == reading.rows().name(symbol))
    }

    fn selects_order(&self, reading: &DayBlotter, row: &BlotterOrder) -> bool {
        self.selects(reading, (row.account, row.symbol))
            && self.session.is_none_or(|chosen| chosen == row.session)
            && self.status.is_none_or(|chosen| chosen == row.status)
    }

    fn selects_fill(&self, reading: &DayBlotter, row: &BlotterFill) -> bool {
        reading.rows().order(row.order_id.0).is_some_and(|order| self.selects_order(reading, order))
    }

    fn order(&self, reading: &DayBlotter, row: &BlotterOrder) -> Vec<BlotterCell> {
        let is_market = row.order_type == Some(OrderType::Market);
        vec![
            or_nothing(row.entered_ns, BlotterCell::Time),
            id(row.id),
            number(row.client_order_id.0),
            number(row.session),
            or_nothing(self.users.get(&row.session).cloned(), BlotterCell::Text),
            number(row.account.0),
            BlotterCell::Text(reading.rows().name(row.symbol)),
            or_nothing(row.venue, |venue| number(venue.0)),
            or_nothing(row.side, |side| BlotterCell::Text(snake_case(side))),
            or_nothing(row.order_type, |order_type| BlotterCell::Text(snake_case(order_type))),
            or_nothing(row.time_in_force, |time_in_force| BlotterCell::Text(snake_case(time_in_force))),
            if is_market { BlotterCell::Nothing } else { units(row.price.0) },
            units(row.quantity.0),
            units(row.filled.0),
            units(row.filled_on_day.0),
            units(row.leaves.0),
            or_nothing(row.average_price, units),
            BlotterCell::Text(row.status.word()),
            or_nothing(row.updated_ns, BlotterCell::Time),
            or_nothing(row.reason.clone(), BlotterCell::Text),
        ]
    }

    fn fill(&self, reading: &DayBlotter, row: &BlotterFill) -> Vec<BlotterCell> {
        vec![
            BlotterCell::Time(row.time_ns),
            number(row.exec_id.0),
            id(row.order_id),
            number(row.client_order_id.0),
            number(row.session),
            number(row.account.0),
            BlotterCell::Text(reading.rows().name(row.symbol)),
            or_nothing(row.venue, |venue| number(venue.0)),
            BlotterCell::Text(snake_case(row.side)),
            units(row.quantity.0),
            or_nothing(row.price, |price| units(price.0)),
            BlotterCell::Text(snake_case(row.state)),
            units(row.counted.0),
            or_nothing(row.updated_ns, BlotterCell::Time),
        ]
    }

    fn position(&self, reading: &DayBlotter, held: PositionKey) -> Option<Vec<BlotterCell>> {
        let row = self.position_row(reading, held)?;
        Some(vec![
            number(row.account.0),
            BlotterCell::Text(reading.rows().name(row.symbol)),
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
    pub(crate) fn position_row(&self, reading: &DayBlotter, held: PositionKey) -> Option<BlotterPosition> {
        if !self.selects(reading, held) {
            return None;
        }
        let (tape, name) = (reading.rows(), reading.rows().name(held.1));
        let mark = self.marks.get(&name).copied().or_else(|| tape.last_price(held.1));
        tape.position(held, self.starts.get(&name).copied(), mark)
    }
}

impl DayBlotter {
    /// Returns the orders of the day that a view shows.
    pub fn orders<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = &'a BlotterOrder> {
        self.rows().orders().filter(|row| view.selects_order(self, row))
    }

    /// Returns the fills of the day that a view shows.
    pub fn fills<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = &'a BlotterFill> {
        self.rows().fills().iter().filter(|row| view.selects_fill(self, row))
    }

    /// Returns the positions of the day that a view shows, as it values them.
    pub fn positions<'a>(&'a self, view: &'a BlotterView) -> impl Iterator<Item = BlotterPosition> {
        self.rows().positions().filter_map(|held| view.position_row(self, held))
    }

    /// Returns the name of an instrument, or its number if it has none.
    pub fn symbol(&self, symbol: SymbolId) -> String {
        self.rows().name(symbol)
    }
}

impl BlotterTables {
    /// Returns all three tables, in the order of the document.
    pub fn all(&self) -> [&BlotterTable; 3] {
        [&self.orders, &self.fills, &self.positions]
    }
}

/// Returns one JSON document: the day, the method of profit, and the tables.
pub fn json_document(reading: &DayBlotter, tables: &[&BlotterTable]) -> Value {
    let day = reading.day();
    let mut document = json!({
        "schema": SCHEMA,
        "day": day.date,
        "first_record": day.first,
        "before_record": reading.next_record(),
        "replayed_from_record": reading.replayed_from(),
        "profit_method": "average_cost",
    });
    for table in tables {
        document[table.name] = table.json().into();
    }
    document
}

fn tables(
    orders: Vec<Vec<BlotterCell>>,
    fills: Vec<Vec<BlotterCell>>,
    positions: Vec<Vec<BlotterCell>>,
) -> BlotterTables {
    BlotterTables {
        orders: BlotterTable { name: "orders", columns: ORDERS, rows: orders },
        fills: BlotterTable { name: "fills", columns: FILLS, rows: fills },
        positions: BlotterTable { name: "positions", columns: POSITIONS, rows: positions },
    }
}

fn or_nothing<T>(value: Option<T>, cell: impl FnOnce(T) -> BlotterCell) -> BlotterCell {
    value.map_or(BlotterCell::Nothing, cell)
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
