//! First-in, first-out queues of orders, linked through one slab, so that an order leaves its queue from any position
//! at the same cost, and its slot is reused.

use crate::Order;

/// Slot of a resting order in its book, valid until the order leaves the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// Orders at one price, by time.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Open quantity of all its orders, in 128 bits because hostile quantities overflow 64.
    pub open: i128,
    head: u32,
    tail: u32,
}

/// Storage of all resting orders of a book.
#[derive(Debug)]
pub(crate) struct Slab {
    nodes: Vec<Node>,
    /// First free node; the other free nodes follow through `next`.
    free: u32,
}

/// Node of 64 bytes.
#[derive(Debug, Clone, Copy)]
struct Node {
    order: Order,
    previous: u32,
    next: u32,
}

/// Marks the end of a list.
const NONE: u32 = u32::MAX;

impl Queue {
    pub fn new() -> Self {
        Self { open: 0, head: NONE, tail: NONE }
    }

    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Returns the oldest order.
    pub fn first(&self) -> Option<Slot> {
        (self.head != NONE).then_some(Slot(self.head))
    }
}

impl Slab {
    pub fn with_capacity(orders: usize) -> Self {
        Self { nodes: Vec::with_capacity(orders), free: NONE }
    }

    pub fn get(&self, slot: Slot) -> &Order {
        &self.nodes[slot.0 as usize].order
    }

    pub fn get_mut(&mut self, slot: Slot) -> &mut Order {
        &mut self.nodes[slot.0 as usize].order
    }

    /// Returns the orders of a queue, by time.
    pub fn iter(&self, queue: &Queue) -> impl Iterator<Item = (Slot, &Order)> {
        let mut at = queue.head;
        std::iter::from_fn(move || {
            let slot = (at != NONE).then_some(Slot(at))?;
            let node = &self.nodes[at as usize];
            at = node.next;
            Some((slot, &node.order))
        })
    }

    /// Appends an order to a queue.
    pub fn push(&mut self, queue: &mut Queue, order: Order) -> Slot {
        let at = self.place(Node { order, previous: queue.tail, next: NONE });
        match queue.tail {
            NONE => queue.head = at,
            tail => self.nodes[tail as usize].next = at,
        }
        queue.tail = at;
        queue.open += i128::from(order.open().0);
        Slot(at)
    }

    /// Removes an order from its queue.
    pub fn remove(&mut self, queue: &mut Queue, slot: Slot) -> Order {
        let Node { order, previous, next } = self.nodes[slot.0 as usize];
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

    fn place(&mut self, node: Node) -> u32 {
        let at = self.free;
        if at != NONE {
            self.free = self.nodes[at as usize].next;
            self.nodes[at as usize] = node;
            return at;
        }
        let at = self.nodes.len();
        assert!(at < NONE as usize, "a book holds fewer than 2³² orders; 256 GiB of memory end before");
        self.nodes.push(node);
        at as u32
    }
}
