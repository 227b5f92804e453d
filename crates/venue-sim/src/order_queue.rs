//! First-in, first-out queues of orders, linked through one slab, so that an order leaves its queue from any position
//! at the same cost, and its slot is reused.

use crate::BookOrder;

/// Slot of a resting order in its book, valid until the order leaves the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookSlot(u32);

#[derive(Debug)]
pub(crate) struct OrderQueue {
    /// Open quantity of all its orders, in 128 bits because hostile quantities overflow 64.
    pub open: i128,
    head: u32,
    tail: u32,
}

#[derive(Debug)]
pub(crate) struct OrderSlab {
    nodes: Vec<OrderNode>,
    /// First free node; the other free nodes follow through `next`.
    free: u32,
}

/// Order in its queue, with its neighbours.
#[derive(Debug, Clone, Copy)]
struct OrderNode {
    order: BookOrder,
    previous: u32,
    next: u32,
}

/// Keeps the node small, because a book has many.
const _: () = assert!(size_of::<OrderNode>() == 64);

const NONE: u32 = u32::MAX;

impl OrderQueue {
    pub fn new() -> Self {
        Self { open: 0, head: NONE, tail: NONE }
    }

    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn first(&self) -> Option<BookSlot> {
        (self.head != NONE).then_some(BookSlot(self.head))
    }
}

impl OrderSlab {
    pub fn with_capacity(orders: usize) -> Self {
        Self { nodes: Vec::with_capacity(orders), free: NONE }
    }

    pub fn get(&self, slot: BookSlot) -> &BookOrder {
        &self.nodes[slot.0 as usize].order
    }

    pub fn get_mut(&mut self, slot: BookSlot) -> &mut BookOrder {
        &mut self.nodes[slot.0 as usize].order
    }

    /// Returns the orders of a queue, by time.
    pub fn iter(&self, queue: &OrderQueue) -> impl Iterator<Item = (BookSlot, &BookOrder)> {
        let mut index = queue.head;
        std::iter::from_fn(move || {
            let slot = (index != NONE).then_some(BookSlot(index))?;
            let node = &self.nodes[index as usize];
            index = node.next;
            Some((slot, &node.order))
        })
    }

    pub fn push(&mut self, queue: &mut OrderQueue, order: BookOrder) -> BookSlot {
        let index = self.insert_node(OrderNode { order, previous: queue.tail, next: NONE });
        match queue.tail {
            NONE => queue.head = index,
            tail => self.nodes[tail as usize].next = index,
        }
        queue.tail = index;
        queue.open += i128::from(order.open().0);
        BookSlot(index)
    }

    pub fn remove(&mut self, queue: &mut OrderQueue, slot: BookSlot) -> BookOrder {
        let OrderNode { order, previous, next } = self.nodes[slot.0 as usize];
        match previous {
            NONE => queue.head = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => queue.tail = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        queue.open -= i128::from(order.open().0);
        self.nodes[slot.0 as usize].next = self.free;
        self.free = slot.0;
        order
    }

    fn insert_node(&mut self, node: OrderNode) -> u32 {
        let index = self.free;
        if index != NONE {
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            return index;
        }
        let index = self.nodes.len();
        assert!(index < NONE as usize, "a book holds fewer than 2³² orders; 256 GiB of memory end before");
        self.nodes.push(node);
        index as u32
    }
}
