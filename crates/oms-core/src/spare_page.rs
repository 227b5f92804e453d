//! Memory for the next orders, which a thread other than the core's can build.

use tickpath_oms_slots::{IndexPage, Linked, empty_page};

use crate::core::Core;
use crate::open_orders::{ORDERS_PER_PAGE, OrderLink};
use crate::order::{Fill, Order};

/// Pages that the indexes together need while [`ORDERS_PER_PAGE`] orders arrive, each with a fill.
const BUCKET_PAGES: usize = 6;

/// Memory for the next 4096 orders, built and touched on a thread other than the core's.
pub struct SparePage {
    orders: Box<[Linked<Order, OrderLink>]>,
    fills: Box<[Fill]>,
    buckets: Vec<IndexPage>,
}

impl SparePage {
    /// Builds a page.
    pub fn new() -> Self {
        Self {
            orders: empty_page(Linked::new(Order::EMPTY, OrderLink::EMPTY), ORDERS_PER_PAGE),
            fills: empty_page(Fill::EMPTY, ORDERS_PER_PAGE),
            buckets: (0..BUCKET_PAGES).map(|_| IndexPage::new()).collect(),
        }
    }
}

impl Default for SparePage {
    fn default() -> Self {
        Self::new()
    }
}

impl Core {
    /// Returns whether the core will need a [`SparePage`] soon. Without one the core builds its own when it needs it.
    pub fn needs_page(&self) -> bool {
        self.orders.needs_page()
    }

    /// Adds memory for the next orders. The results are the same with and without it.
    pub fn add_page(&mut self, page: SparePage) {
        self.orders.add_page(page.orders);
        self.fills.add_page(page.fills);
        for (turn, buckets) in page.buckets.into_iter().enumerate() {
            match turn % 3 {
                0 => self.by_id.add_page(buckets),
                1 => self.by_client.add_page(buckets),
                _ => self.by_exec.add_page(buckets),
            }
        }
    }
}
