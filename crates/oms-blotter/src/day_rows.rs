//! The rows of a replay: every order, fill and position of one day.
//!
//! ```text
//!   report ──> order's row ── filled now − filled before ──> fills ──> book of (account, symbol)
//!                              = what the fills count more, and what an operator has booked
//! ```
//! The key of a fill is (order, execution id), and amendments follow the core's rule: a duplicate fill changes nothing,
//! and of two amendments the one with the higher venue sequence holds. Quantity that the core counts beyond its fills
//! is a row of its own, with the state `resolved`, so the fills of an order always add up to the core's filled
//! quantity.
//!
//! A bust or a correction of an earlier day's fill is a row of the day on which it arrives. It counts the change of
//! quantity, at the price of the report.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tickpath_log::LogPath;
use tickpath_market::{
    AccountId, Currency, ExecId, ExecType, ExecutionReport, Liquidity, OrdStatus, OrderDenied, OrderId, Price,
    Quantity, Request, SymbolId, TextId,
};
use tickpath_oms_core::{At, ContractSize, Core, DetailRecord, EnterPosition, Input, OrderView, Output};
use tickpath_oms_journal::journal;

use crate::book::{PositionBook, traded};
use crate::cost::PositionCost;
use crate::denial;
use crate::row::{BlotterFill, BlotterOrder, BlotterPosition, BlotterStatus, FillState};

/// An input of a journal and the core's outputs.
pub(crate) struct AppliedInput {
    pub at: At,
    /// Time of the record, in nanoseconds since the Unix epoch.
    pub utc_ns: u64,
    pub input: Input,
    pub outputs: Vec<Output>,
}

/// Account and instrument.
pub(crate) type PositionKey = (AccountId, SymbolId);

/// An instrument as last defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstrumentName {
    pub name: String,
    pub size: ContractSize,
    /// Multiplier, and its decimals.
    pub multiplier: (i64, u8),
}

/// Rows that changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedRows {
    pub orders: BTreeSet<u64>,
    pub fills: BTreeSet<usize>,
    pub positions: BTreeSet<PositionKey>,
}

/// The rows of a day.
pub(crate) struct DayRows {
    journal: LogPath,
    /// Orders by id: an id is the epoch of a start and then a journal sequence, so this is the order of entry.
    orders: BTreeMap<u64, BlotterOrder>,
    /// Orders of the day: entered on it, open at its start, or changed on it.
    shown: BTreeSet<u64>,
    fills: Vec<BlotterFill>,
    by_exec: HashMap<(u64, u64), usize>,
    of_order: HashMap<u64, Vec<usize>>,
    books: BTreeMap<PositionKey, PositionBook>,
    names: BTreeMap<SymbolId, InstrumentName>,
    changed: ChangedRows,
}

impl DayRows {
    /// Creates the rows of a day from a core at its start.
    pub fn new(journal: &LogPath, core: &Core) -> Self {
        let mut rows = Self {
            journal: journal.clone(),
            orders: BTreeMap::new(),
            shown: BTreeSet::new(),
            fills: Vec::new(),
            by_exec: HashMap::new(),
            of_order: HashMap::new(),
            books: BTreeMap::new(),
            names: BTreeMap::new(),
            changed: ChangedRows::default(),
        };
        for (account, symbol, position) in core.positions() {
            rows.note_name(core, symbol);
            rows.books.insert((account, symbol), PositionBook::begin(PositionCost::carried(position.net, None)));
        }
        for view in core.open_orders() {
            rows.carry_order(core, &view, view.cumulative);
        }
        rows
    }

    /// Begins the next day: costs stay, and so do the orders that the core still knows.
    pub fn begin_day(&mut self, core: &Core) {
        self.fills.clear();
        self.by_exec.clear();
        self.of_order.clear();
        self.shown = core.open_orders().map(|view| view.id.0).collect();
        self.orders.retain(|&id, _| core.order(OrderId(id)).is_some());
        for order in self.orders.values_mut() {
            (order.is_carried, order.updated_ns) = (true, None);
            (order.filled_on_day, order.average_price) = (Quantity::ZERO, None);
        }
        self.books = std::mem::take(&mut self.books)
            .into_iter()
            .map(|(key, book)| (key, PositionBook::begin(book.end())))
            .collect();
        self.changed = ChangedRows::default();
    }

    /// Takes an input that the core has just applied.
    pub fn apply(&mut self, core: &Core, seen: &AppliedInput) {
        if let Input::Instrument(instrument) = &seen.input
            && self.names.contains_key(&instrument.symbol)
        {
            self.note_name(core, instrument.symbol);
        }
        if let Input::EnterPosition(entered) = &seen.input {
            self.enter_position(core, entered);
        }
        if let Input::ReportDetail(record) = &seen.input {
            self.add_detail(core, seen, record);
        }
        for output in &seen.outputs {
            match output {
                Output::Venue { .. } | Output::Extension { .. } => {}
                Output::Report { report, .. } => self.report(core, seen, report),
                Output::Denied { session, denied } => self.deny_order(core, seen, *session, denied),
            }
        }
    }

    /// Returns the orders of the day, in the order of their entry.
    pub fn orders(&self) -> impl Iterator<Item = &BlotterOrder> {
        self.shown.iter().filter_map(|id| self.orders.get(id))
    }

    /// Returns an order by its id.
    pub fn order(&self, id: u64) -> Option<&BlotterOrder> {
        self.orders.get(&id)
    }

    /// Returns the fills of the day, in the order of their first reports.
    pub fn fills(&self) -> &[BlotterFill] {
        &self.fills
    }

    /// Returns the positions that were not flat at the start of the day or have a fill on the day.
    pub fn positions(&self) -> impl Iterator<Item = PositionKey> {
        self.books.iter().filter(|(_, book)| book.is_shown()).map(|(&key, _)| key)
    }

    /// Returns a position's row, with these prices where they are given.
    pub fn position(&self, key: PositionKey, start_price: Option<i64>, mark: Option<i64>) -> Option<BlotterPosition> {
        let book = self.books.get(&key).filter(|book| book.is_shown())?;
        let (size, multiplier) =
            self.names.get(&key.1).map_or((ContractSize::default(), (1, 0)), |named| (named.size, named.multiplier));
        let row = book.row(key, &self.fills, size, start_price, mark);
        Some(BlotterPosition { multiplier, ..row })
    }

    /// Returns the price of the last own fill in an instrument on this day, without busted fills.
    pub fn last_price(&self, symbol: SymbolId) -> Option<i64> {
        let holds =
            |fill: &&BlotterFill| fill.symbol == symbol && fill.counted.0 != 0 && fill.state != FillState::Busted;
        self.fills.iter().rev().filter(holds).find_map(|fill| fill.price).map(|price| price.0)
    }

    /// Returns the name of an instrument that any row has, or its number if it never had a name.
    pub fn name(&self, symbol: SymbolId) -> String {
        let named = self.names.get(&symbol).map(|named| named.name.as_str()).filter(|name| !name.is_empty());
        named.map_or_else(|| symbol.0.to_string(), str::to_owned)
    }

    /// Returns the rows that changed since the last call.
    pub fn take_changed(&mut self) -> ChangedRows {
        std::mem::take(&mut self.changed)
    }

    fn note_name(&mut self, core: &Core, symbol: SymbolId) {
        if let Some(instrument) = core.instrument(symbol) {
            let named = InstrumentName {
                name: instrument.name().to_string(),
                size: instrument.contract_size().unwrap_or_default(),
                multiplier: (instrument.multiplier.max(1), instrument.multiplier_decimals),
            };
            self.names.insert(symbol, named);
        }
    }

    /// Adds the row of an order from before the day, with the quantity filled before.
    fn carry_order(&mut self, core: &Core, view: &OrderView, filled: Quantity) {
        let entered = journal::time_of(&self.journal, view.id.sequence());
        let row = BlotterOrder { is_carried: true, ..extended_row(core, BlotterOrder::of(view, entered, filled)) };
        self.orders.insert(view.id.0, row);
        self.shown.insert(view.id.0);
        self.note_name(core, view.symbol);
    }

    fn report(&mut self, core: &Core, seen: &AppliedInput, report: &ExecutionReport) {
        let (id, view) = (report.order_id, core.order(report.order_id));
        if !self.orders.contains_key(&id.0) {
            let Some(view) = &view else { return };
            self.add_order(core, seen, view, report);
        }
        let Some(row) = self.orders.get_mut(&id.0) else { return };
        let adds = report.cumulative_quantity.0.saturating_sub(row.filled.0);
        row.filled = report.cumulative_quantity;
        let before = row.clone();
        match &view {
            Some(view) => {
                (row.price, row.quantity, row.leaves) = (view.price, view.quantity, view.leaves);
                row.status = BlotterStatus::Fix(view.status);
            }
            // The order's day has ended with this report.
            None => {
                (row.price, row.leaves) = (report.price, report.leaves_quantity);
                row.status = OrdStatus::from_code(report.status).map_or(row.status, BlotterStatus::Fix);
            }
        }
        if row.status != BlotterStatus::Fix(OrdStatus::Rejected) {
            row.reason = None;
        } else if report.exec_type == ExecType::Rejected.code() {
            row.reason = Some(denial::rejection_text(report));
        }
        let has_changed = *row != before || adds != 0;
        let counted = self.apply_fill(seen, report, adds);
        if has_changed || counted {
            self.mark_changed(id, seen);
        }
    }

    /// Adds the details of a venue's report: to a fill its fee, to a rejected order the reason.
    fn add_detail(&mut self, core: &Core, seen: &AppliedInput, record: &DetailRecord) {
        let detail = &record.detail;
        let Some(view) = core.order_by_venue_id(record.source, detail.order_id.0) else { return };
        let id = view.id;
        if let Some(&index) = self.by_exec.get(&(id.0, detail.exec_id.0)).filter(|_| detail.exec_id.0 != 0) {
            let fill = &mut self.fills[index];
            (fill.fee, fill.fee_currency) = (Some(detail.fee()), detail.fee_currency);
            fill.liquidity = detail.liquidity().filter(|&role| role != Liquidity::Unknown);
            self.mark_changed(id, seen);
            return;
        }
        let text = detail.text();
        let Some(reason) = self.orders.get_mut(&id.0).and_then(|row| row.reason.as_mut()).filter(|_| !text.is_empty())
        else {
            return;
        };
        if !reason.ends_with(&*text) {
            *reason = format!("{reason}: {text}");
            self.mark_changed(id, seen);
        }
    }

    /// Adds the row of an order at its first report.
    fn add_order(&mut self, core: &Core, seen: &AppliedInput, view: &OrderView, report: &ExecutionReport) {
        if view.id.sequence() != seen.at.sequence {
            let is_fill = report.exec_type == ExecType::Trade.code();
            let brings = if is_fill { report.last_quantity.0 } else { 0 };
            let before = report.cumulative_quantity.0.saturating_sub(brings).max(0);
            return self.carry_order(core, view, Quantity(before));
        }
        let mut row = extended_row(core, BlotterOrder::of(view, Some(seen.utc_ns), Quantity::ZERO));
        if let Input::Request { envelope, .. } = &seen.input {
            let reference = Some(envelope.reference_price.0).filter(|&price| price != 0);
            row.valued = row.valued.or(reference);
        }
        self.orders.insert(view.id.0, row);
        self.note_name(core, view.symbol);
        self.mark_changed(view.id, seen);
    }

    /// Applies a report to the fills of its order, to which it adds `adds`; returns false if no fill has changed.
    fn apply_fill(&mut self, seen: &AppliedInput, report: &ExecutionReport, adds: i64) -> bool {
        let amends = match ExecType::from_code(report.exec_type) {
            Some(ExecType::Trade) => Some(false),
            Some(ExecType::TradeCorrect | ExecType::TradeCancel) => Some(true),
            _ => None,
        };
        let is_fill = report.exec_id.0 != 0 && report.last_quantity.0 > 0;
        let counted = match amends.filter(|_| is_fill) {
            None => None,
            Some(amends) => match self.by_exec.get(&(report.order_id.0, report.exec_id.0)) {
                Some(&index) if amends => self.amend(seen, report, index),
                // A duplicate.
                Some(_) => None,
                None => self.add_fill(seen, report, amends, adds),
            },
        };
        let beyond = adds.saturating_sub(counted.unwrap_or(0));
        if beyond != 0 {
            self.add_resolved(seen, report.order_id, beyond);
        }
        counted.is_some() || beyond != 0
    }

    /// Amends a fill of the day; returns the change of its counted quantity, or none if another amendment holds.
    fn amend(&mut self, seen: &AppliedInput, report: &ExecutionReport, index: usize) -> Option<i64> {
        let fill = &mut self.fills[index];
        let is_busted = report.exec_type == ExecType::TradeCancel.code();
        let holds = if is_busted { 0 } else { report.last_quantity.0 };
        let number = amendment_number(report);
        let is_later = match report.venue_sequence {
            0 => fill.amendment == 0 || fill.reported != holds,
            _ => number > fill.amendment,
        };
        if !is_later {
            return None;
        }
        let adds = holds.saturating_sub(fill.reported);
        fill.counted = Quantity(fill.counted.0.saturating_add(adds));
        (fill.reported, fill.amendment) = (holds, number.max(fill.amendment));
        fill.updated_ns = Some(seen.utc_ns);
        fill.state = if is_busted { FillState::Busted } else { FillState::Corrected };
        if !is_busted {
            (fill.quantity, fill.price) = (report.last_quantity, Some(report.last_price));
        }
        self.rebook(index);
        Some(adds)
    }

    /// Adds a fill; returns its counted quantity, or none if it brings nothing new. An amendment that arrives before
    /// its fill replaces it.
    fn add_fill(&mut self, seen: &AppliedInput, report: &ExecutionReport, amends: bool, adds: i64) -> Option<i64> {
        let id = report.order_id;
        let is_resolved = self.by_exec.contains_key(&(id.0, 0));
        let row = self.orders.get(&id.0)?;
        let is_busted = report.exec_type == ExecType::TradeCancel.code();
        let holds = if is_busted { 0 } else { report.last_quantity.0 };
        // The fill may be an earlier day's, whose counted quantity only the core knows.
        let counted = if row.is_carried && (amends || !is_resolved) { adds } else { holds };
        if row.is_carried && !amends && counted == 0 {
            return None;
        }
        let state = match (amends, is_busted) {
            (false, _) => FillState::Good,
            (true, false) => FillState::Corrected,
            (true, true) => FillState::Busted,
        };
        let mut fill = fill_of(row, seen.utc_ns)?;
        (fill.exec_id, fill.state, fill.counted) = (report.exec_id, state, Quantity(counted));
        (fill.quantity, fill.price) = (report.last_quantity, Some(report.last_price));
        (fill.reported, fill.amendment) = (holds, if amends { amendment_number(report) } else { 0 });
        self.push_fill(fill);
        Some(counted)
    }

    /// Counts the quantity that the core counts beyond an order's fills: an operator has resolved the order.
    fn add_resolved(&mut self, seen: &AppliedInput, id: OrderId, adds: i64) {
        if let Some(&index) = self.by_exec.get(&(id.0, 0)) {
            let fill = &mut self.fills[index];
            fill.counted = Quantity(fill.counted.0.saturating_add(adds));
            (fill.quantity, fill.updated_ns) = (fill.counted, Some(seen.utc_ns));
            return self.rebook(index);
        }
        let Some(row) = self.orders.get(&id.0) else { return };
        let price = row.valued.map(Price);
        let Some(fill) = fill_of(row, seen.utc_ns) else { return };
        self.push_fill(BlotterFill { price, quantity: Quantity(adds), counted: Quantity(adds), ..fill });
    }

    fn push_fill(&mut self, fill: BlotterFill) {
        let (index, key, order) = (self.fills.len(), (fill.account, fill.symbol), fill.order_id.0);
        self.books.entry(key).or_insert_with(|| PositionBook::begin(PositionCost::FLAT)).add(index, &fill);
        self.by_exec.insert((order, fill.exec_id.0), index);
        self.of_order.entry(order).or_default().push(index);
        self.fills.push(fill);
        self.changed.fills.insert(index);
        self.changed.positions.insert(key);
        self.sum_fills(order);
    }

    /// Recomputes the book of a fill that has changed.
    fn rebook(&mut self, index: usize) {
        let (key, order) = ((self.fills[index].account, self.fills[index].symbol), self.fills[index].order_id.0);
        if let Some(book) = self.books.get_mut(&key) {
            book.recompute(&self.fills);
        }
        self.changed.fills.insert(index);
        self.changed.positions.insert(key);
        self.sum_fills(order);
    }

    /// Sums the fills of an order.
    fn sum_fills(&mut self, order: u64) {
        let fills = self.of_order.get(&order).map_or(&[][..], Vec::as_slice);
        let (quantity, price) = traded(fills.iter().map(|&index| &self.fills[index]));
        if let Some(row) = self.orders.get_mut(&order) {
            row.filled_on_day = Quantity(i64::try_from(quantity).unwrap_or(i64::MAX));
            row.average_price = price;
        }
    }

    fn deny_order(&mut self, core: &Core, seen: &AppliedInput, session: u16, denied: &OrderDenied) {
        let (id, reason) = (denied.order_id, denial::denial_text(denied));
        if let Some(row) = self.orders.get_mut(&id.0) {
            // The order was waiting, for its venue or its trigger.
            (row.status, row.leaves, row.reason) = (BlotterStatus::Denied, Quantity::ZERO, Some(reason));
            return self.mark_changed(id, seen);
        }
        let Input::Request { request, .. } = &seen.input else { return };
        let order = match request {
            Request::New(order) => order,
            Request::Conditional(conditional) => &conditional.order,
            Request::Extended(extended) => &extended.order,
            _ => return,
        };
        let denied = BlotterOrder::denied(id, session, seen.utc_ns, order, reason);
        let extended = if let Request::Extended(extended) = request { Some(extended) } else { None };
        let (text_id, expires_ns) = known_fields(extended.map(|extended| (extended.text_id, extended.expire_ns)));
        self.orders.insert(id.0, BlotterOrder { text_id, expires_ns, ..denied });
        self.note_name(core, order.symbol);
        self.mark_changed(id, seen);
    }

    /// Sets a position to the core's, after an admin has entered it. The core has not changed the position if it
    /// refused the entry.
    fn enter_position(&mut self, core: &Core, entered: &EnterPosition) {
        let key = (entered.account, entered.symbol);
        let book = self.books.entry(key).or_insert_with(|| PositionBook::begin(PositionCost::FLAT));
        let change = core.position(key.0, key.1).net - book.end().net;
        if change != 0 {
            book.adjust_start(change, Some(entered.price.0).filter(|&price| price != 0), &self.fills);
            self.changed.positions.insert(key);
            self.note_name(core, key.1);
        }
    }

    fn mark_changed(&mut self, id: OrderId, seen: &AppliedInput) {
        if let Some(row) = self.orders.get_mut(&id.0) {
            row.updated_ns = Some(seen.utc_ns);
            self.shown.insert(id.0);
            self.changed.orders.insert(id.0);
        }
    }
}

/// Returns the row with the text id and the end time of its order.
fn extended_row(core: &Core, row: BlotterOrder) -> BlotterOrder {
    let extension = core.extension(row.id);
    let (text_id, expires_ns) = known_fields(extension.map(|extension| (extension.text_id, extension.expire_ns)));
    BlotterOrder { text_id, expires_ns, ..row }
}

/// Returns the text id and the end time that an order has.
fn known_fields(fields: Option<(TextId, u64)>) -> (Option<TextId>, Option<u64>) {
    let (text_id, expire_ns) = fields.unwrap_or_default();
    (Some(text_id).filter(|text_id| !text_id.is_none()), Some(expire_ns).filter(|&expire_ns| expire_ns != 0))
}

/// Returns the number of an amendment, as the core keeps it: zero stands for no amendment.
fn amendment_number(report: &ExecutionReport) -> u32 {
    report.venue_sequence.clamp(1, u32::MAX.into()) as u32
}

/// Returns a fill of an order that an operator has booked; none if the order has no side.
fn fill_of(row: &BlotterOrder, time_ns: u64) -> Option<BlotterFill> {
    Some(BlotterFill {
        time_ns,
        updated_ns: None,
        exec_id: ExecId(0),
        order_id: row.id,
        client_order_id: row.client_order_id,
        session: row.session,
        account: row.account,
        symbol: row.symbol,
        venue: row.venue,
        side: row.side?,
        quantity: Quantity::ZERO,
        price: None,
        state: FillState::Resolved,
        fee: None,
        fee_currency: Currency::default(),
        liquidity: None,
        counted: Quantity::ZERO,
        reported: 0,
        amendment: 0,
    })
}
