//! Lists of REST that come in pages, the latest row first: open orders, and fills.

use tickpath_web_client::{HttpRequest, HttpResponse};

use crate::fill_row::{FillRow, RawFill};
use crate::order_ledger::OrderLedger;
use crate::order_update::{OrderUpdate, RawOrder};
use crate::signed_rest::{RestCall, RestFailure, RestLimit, SignedRest, read_rows};

/// Rows of a full page.
const PAGE: usize = 100;
/// Pages after which a list is given up.
const MAX_PAGES: usize = 2_000;

/// A row of a list.
pub(crate) trait PageRow: Sized {
    /// Reads a page.
    fn read_page(response: &HttpResponse, ledger: &OrderLedger) -> Result<Page<Self>, RestFailure>;
}

/// A page of a list.
pub(crate) struct Page<T> {
    /// Rows of this OMS's orders.
    rows: Vec<T>,
    /// Number of all rows, and id of the last one.
    count: usize,
    last: String,
}

/// A list that is being read.
#[derive(Debug)]
pub(crate) struct PageWalk<T> {
    path: String,
    limit: RestLimit,
    rows: Vec<T>,
    /// Id of the last row so far.
    last: String,
    pages: usize,
    call: Option<RestCall>,
}

impl PageWalk<OrderUpdate> {
    /// Begins to read the open orders of the account.
    pub fn of_open_orders() -> Self {
        Self::new(RestLimit::OpenOrders, format!("/api/v5/trade/orders-pending?limit={PAGE}"))
    }
}

impl PageWalk<FillRow> {
    /// Begins to read the fills of the account since a time of OKX, in nanoseconds since the Unix epoch.
    pub fn of_fills_since(venue_ns: u64) -> Self {
        let begin_ms = venue_ns / 1_000_000;
        Self::new(RestLimit::Fills, format!("/api/v5/trade/fills?begin={begin_ms}&limit={PAGE}"))
    }

    /// Begins to read the fills of an order, by OKX's own id of it: those of three days, or those of three months,
    /// which OKX lists by the type of the instrument only.
    pub fn of_order(kind: &str, venue_id: u64, is_of_history: bool) -> Self {
        let order = format!("ordId={venue_id}&limit={PAGE}");
        match (kind, is_of_history) {
            ("", _) => Self::new(RestLimit::Fills, format!("/api/v5/trade/fills?{order}")),
            (kind, false) => Self::new(RestLimit::Fills, format!("/api/v5/trade/fills?instType={kind}&{order}")),
            (kind, true) => {
                let path = format!("/api/v5/trade/fills-history?instType={kind}&{order}");
                Self::new(RestLimit::FillsHistory, path)
            }
        }
    }
}

impl<T: PageRow> PageWalk<T> {
    fn new(limit: RestLimit, path: String) -> Self {
        Self { path, limit, rows: Vec::new(), last: String::new(), pages: 0, call: None }
    }

    /// Returns the number of pages that have arrived.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Takes the next step. Returns all rows once the last page is there. After a failure that may pass, the next call
    /// requests the same page again.
    pub fn advance(&mut self, rest: &mut SignedRest, ledger: &OrderLedger) -> Result<Option<Vec<T>>, RestFailure> {
        let Some(call) = &mut self.call else {
            if !rest.has_room(self.limit) {
                return Ok(None);
            }
            let after = if self.last.is_empty() { String::new() } else { format!("&after={}", self.last) };
            self.call = rest.start(self.limit, HttpRequest::get(&format!("{}{after}", self.path)));
            return Ok(None);
        };
        let Some(answer) = rest.finish(call) else { return Ok(None) };
        self.call = None;
        let page = T::read_page(&answer?, ledger)?;
        self.rows.extend(page.rows);
        self.pages += 1;
        if page.count < PAGE || page.last.is_empty() || page.last == self.last {
            return Ok(Some(std::mem::take(&mut self.rows)));
        }
        if self.pages == MAX_PAGES {
            let text = format!("a list has more than {MAX_PAGES} pages of {PAGE} rows");
            return Err(RestFailure::Refused { code: u32::MAX, text });
        }
        self.last = page.last;
        Ok(None)
    }
}

impl PageRow for OrderUpdate {
    fn read_page(response: &HttpResponse, ledger: &OrderLedger) -> Result<Page<Self>, RestFailure> {
        let rows: Vec<RawOrder<'_>> = read_rows(response)?;
        let last = rows.last().map_or(String::new(), |row| row.ord_id.clone().into_owned());
        let read = rows.iter().map(|row| read_state(row, ledger));
        let known: Vec<Option<Self>> = read.collect::<Result<_, _>>()?;
        Ok(Page { count: rows.len(), rows: known.into_iter().flatten().collect(), last })
    }
}

impl PageRow for FillRow {
    fn read_page(response: &HttpResponse, ledger: &OrderLedger) -> Result<Page<Self>, RestFailure> {
        let rows: Vec<RawFill<'_>> = read_rows(response)?;
        let last = rows.last().map_or(String::new(), |row| row.bill_id.clone().into_owned());
        let read = rows.iter().map(|row| Self::read(row, &ledger.instruments, ledger.naming).map_err(unreadable));
        let known: Vec<Option<Self>> = read.collect::<Result<_, _>>()?;
        Ok(Page { count: rows.len(), rows: known.into_iter().flatten().collect(), last })
    }
}

/// Reads the state of an order; none if it is not one of this OMS. The last fill of such a row is no event.
pub(crate) fn read_state(raw: &RawOrder<'_>, ledger: &OrderLedger) -> Result<Option<OrderUpdate>, RestFailure> {
    let read = OrderUpdate::read(raw, &ledger.instruments, ledger.naming).map_err(unreadable)?;
    Ok(read.map(|update| OrderUpdate { fill: None, amendment: None, ..update }))
}

fn unreadable(text: String) -> RestFailure {
    RestFailure::Refused { code: u32::MAX, text }
}
