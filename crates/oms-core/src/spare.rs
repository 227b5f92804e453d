//! Memory for the next orders, which a thread other than the core's can build.

use tickpath_oms_slots::{IndexPage, Linked, blank};

use crate::core::Core;
use crate::open::{Link, ORDERS};
use crate::order::{Fill, Order};

/// Pages that the indexes together need while [`ORDERS`] orders arrive, each with a fill.
const BUCKET_PAGES: usize = 6;

/// Memory for the next 4096 orders, built and touched on a thread other than the core's.
pub struct Page {
    orders: Box<[Linked<Order, Link>]>,
    fills: Box<[Fill]>,
    buckets: Vec<IndexPage>,
}

impl Page {
    /// Builds a page.
    pub fn new() -> Self {
        Self {
            orders: blank(Linked::new(Order::EMPTY, Link::EMPTY), ORDERS),
            fills: blank(Fill::EMPTY, ORDERS),
            buckets: (0..BUCKET_PAGES).map(|_| IndexPage::new()).collect(),
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::new()
    }
}

impl Core {
    /// Returns whether the core will need a [`Page`] soon. Without one the core builds its own when it needs it.
    pub fn wants_page(&self) -> bool {
        self.orders.wants_page()
    }

    /// Adds memory for the next orders. The results are the same with and without it.
    pub fn give_page(&mut self, page: Page) {
        self.orders.give_page(page.orders);
        self.fills.give_page(page.fills);
        for (turn, buckets) in page.buckets.into_iter().enumerate() {
            match turn % 3 {
                0 => self.by_id.give_page(buckets),
                1 => self.by_client.give_page(buckets),
                _ => self.by_exec.give_page(buckets),
            }
        }
    }
}
