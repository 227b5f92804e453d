//! Memory for the next orders, which a thread other than the core's can build.

use tickpath_oms_slots::{IndexPage, Linked, empty_page};

use crate::open_orders::{ORDERS_PER_PAGE, OrderLink};
use crate::order::{Fill, Order};

/// Pages that the indexes together need while [`ORDERS_PER_PAGE`] orders arrive, each with a fill.
const BUCKET_PAGES: usize = 6;

/// Memory for the next 4096 orders, built and touched on a thread other than the core's.
pub struct SparePage {
    pub(crate) orders: Box<[Linked<Order, OrderLink>]>,
    pub(crate) fills: Box<[Fill]>,
    pub(crate) buckets: Vec<IndexPage>,
}

impl SparePage {
    /// Builds a page.
    pub fn new() -> Self {
        Self {
            orders: empty_page(Linked::new(Order::EMPTY, OrderLink::EMPTY), ORDERS_PER_PAGE),
            fills: empty_page(Fill::EMPTY, ORDERS_PER_PAGE),
            buckets: (0..BUCKET_PAGES).map(|_| IndexPage::default()).collect(),
        }
    }
}

impl Default for SparePage {
    fn default() -> Self {
        Self::new()
    }
}
