//! Ownership of orders. Order ids are unique within an OMS only, so that two OMSes may use the same ids.
//!
//! ```text
//!   line's id ── inward ──> venue's id ──> Venue ──> reports ── outward ──> line's id, and the way to its owner
//! ```
//!
//! * **The common space** belongs to lanes, and to lines that name no OMS: the venue uses their ids unchanged, and each
//!   of these lines may change each of these orders.
//! * **Each OMS that names itself** has a space of its own: the venue gives each of its orders the next id from 2^63
//!   on, and does the same for common ids from 2^63 on. A journal replays to the same ids.
//! * **An OMS that logged on without a name before** (with an older version) keeps the orders that it has in the common
//!   space. Once it has a name, no other named OMS can change those orders.
//! * An id that an owner never used is an unknown order to that owner, even if another owner has such an order.

use tickpath_market::{ClientOrderId, ExecutionReport, OrderId, Request};

use crate::Venue;
use crate::input::LANES;
use crate::used::{IdMap, Used};

/// Owner of the common space.
pub(crate) const COMMON: u64 = 0;
/// First of the ids that the venue assigns. This id itself stands for every order that ended on an earlier day.
const FORGOTTEN: u64 = 1 << 63;
/// Venue's id for orders that never existed.
const NEVER: u64 = u64::MAX;
/// Way of a forgotten line: its reports are dropped.
const NOWHERE: u32 = u32::MAX;

/// All owners, and the ways of their orders.
#[derive(Debug)]
pub(crate) struct Owners {
    /// Owner of each way; [`COMMON`] for the lanes and for lines without a named OMS.
    by_way: Vec<u64>,
    spaces: IdMap<u64, Space>,
    /// Owner and client's id of each order with an id that the venue assigned.
    names: IdMap<u64, (u64, u64)>,
    /// Last id that the venue assigned.
    last: u64,
    /// Way of each order's last request by the venue's id, if that is not the way of the lanes.
    ways: IdMap<u64, u32>,
}

/// Order ids of an owner.
#[derive(Debug)]
struct Space {
    /// Venue's ids of the orders that the venue knows, by the client's id.
    ids: IdMap<u64, u64>,
    /// Client's ids of orders that the venue has forgotten.
    used: Used,
    /// Whether the owner used the common space before it named itself.
    is_heir: bool,
}

/// Order that a request addresses, by the venue's id and by the client's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meant {
    /// Venue's id.
    id: u64,
    /// Client's id.
    name: u64,
    is_new: bool,
    /// Whether it is a status request for all orders: the whole answer goes back by the request's way.
    is_all: bool,
}

/// Translation of one input's reports to their owners' ids and ways.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    owners: &'a Owners,
    way: usize,
    meant: Meant,
}

/// Report with its owner's ids, and its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    to: To,
    pub report: ExecutionReport,
}

/// Destination of a report. An order's way is resolved late, because it may change while a report is held back.
#[derive(Debug, Clone, Copy)]
enum To {
    Way(usize),
    Order(u64),
}

impl Default for Owners {
    fn default() -> Self {
        let (spaces, names, ways) = (IdMap::default(), IdMap::default(), IdMap::default());
        Self { by_way: Vec::new(), spaces, names, last: FORGOTTEN, ways }
    }
}

impl Default for Space {
    fn default() -> Self {
        Self { ids: IdMap::default(), used: Used::with_capacity(0), is_heir: false }
    }
}

impl Owners {
    /// Returns the owner of a way.
    pub fn of(&self, way: usize) -> u64 {
        self.by_way.get(way).copied().unwrap_or(COMMON)
    }

    /// Assigns a way to an owner.
    pub fn set(&mut self, way: usize, owner: u64) {
        if way >= self.by_way.len() {
            self.by_way.resize(way + 1, COMMON);
        }
        self.by_way[way] = owner;
    }

    /// Assigns a way to the owner that used it before without a name, and leaves it its orders of the common space.
    pub fn inherit(&mut self, way: usize, owner: u64) {
        self.set(way, owner);
        self.spaces.entry(owner).or_default().is_heir = true;
    }

    /// Frees a way for another line. Later reports of the old line's orders are dropped.
    pub fn forget(&mut self, way: usize) {
        self.set(way, COMMON);
        for of_order in self.ways.values_mut().filter(|of_order| **of_order as usize == way) {
            *of_order = NOWHERE;
        }
    }

    /// Returns for each way below `ways` whether an order of it rests.
    pub fn resting(&self, ways: usize, venue: &Venue) -> Vec<bool> {
        let mut rests = vec![false; ways];
        for (&order, &way) in &self.ways {
            if let Some(rests) = rests.get_mut(way as usize) {
                *rests |= venue.rests(order);
            }
        }
        rests
    }

    /// Replaces the client's order id in a request that came by `way` with the venue's id. Makes `way` the order's way.
    #[inline]
    pub fn take(&mut self, way: usize, request: &mut Request, venue: &mut Venue) -> Meant {
        let (id, is_new) = match request {
            Request::New(new) => (&mut new.client_order_id.0, true),
            Request::Conditional(new) => (&mut new.order.client_order_id.0, true),
            Request::Cancel(cancel) => (&mut cancel.original.0, false),
            Request::Replace(replace) => (&mut replace.original.0, false),
            Request::Status(status) if status.is_about_all() => return Meant { is_all: true, ..Meant::default() },
            Request::Status(status) => (&mut status.original.0, false),
            Request::ReplaceConditional(replace) => (&mut replace.original.0, false),
            Request::MassCancel(_) => return Meant::default(),
        };
        let (name, owner) = (*id, self.of(way));
        *id = self.id(owner, name, is_new);
        let meant = Meant { id: *id, name, is_new, is_all: false };
        match meant.id {
            // The id must count as used, so that the venue rejects a new order with it.
            FORGOTTEN => venue.keep_used(FORGOTTEN),
            NEVER => {}
            order if way != LANES => {
                self.ways.insert(order, way as u32);
            }
            order if !self.ways.is_empty() => {
                self.ways.remove(&order);
            }
            _ => {}
        }
        meant
    }

    /// Drops the way that a request gave to an order that the venue does not know.
    #[inline]
    pub fn done(&mut self, meant: Meant, venue: &Venue) {
        if !meant.is_new && !self.ways.is_empty() && !venue.knows(meant.id) {
            self.ways.remove(&meant.id);
        }
    }

    /// Returns the translation for the reports of an input that came by `way`.
    pub fn view(&self, way: usize, meant: Meant) -> View<'_> {
        View { owners: self, way, meant }
    }

    /// Returns the way of a report; [`usize::MAX`] if it is to be dropped.
    #[inline]
    pub fn way_of(&self, told: &Told) -> usize {
        match told.to {
            To::Way(way) => way,
            To::Order(order) => match self.ways.get(&order) {
                Some(&NOWHERE) => usize::MAX,
                Some(&way) => way as usize,
                None => LANES,
            },
        }
    }

    /// Ends the day: keeps nothing but the used ids of orders that the venue has forgotten.
    pub fn end_day(&mut self, venue: &Venue) {
        self.ways.retain(|&order, _| venue.knows(order));
        for space in self.spaces.values_mut() {
            let Space { ids, used, .. } = space;
            ids.retain(|&name, &mut id| {
                let is_known = venue.knows(id);
                if !is_known && venue.has_used(id) {
                    used.insert(OrderId(name));
                }
                is_known
            });
        }
        self.names.retain(|&id, _| venue.knows(id));
        // Drops spaces without orders and without a way: no line is left that could reuse their ids.
        let Self { by_way, spaces, .. } = self;
        spaces.retain(|owner, space| !space.ids.is_empty() || *owner == COMMON || by_way.contains(owner));
    }

    /// Returns the venue's id of an owner's order; a new order may get a fresh id.
    #[inline]
    fn id(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if owner == COMMON && name < FORGOTTEN {
            return match self.may(COMMON, name) {
                true => name,
                // The id belongs to another owner: the new order is a duplicate, and the order keeps its way.
                false if is_new => FORGOTTEN,
                false => NEVER,
            };
        }
        self.id_in_space(owner, name, is_new)
    }

    fn id_in_space(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if name == 0 && is_new {
            // Zero is no order id, and the venue rejects it.
            return 0;
        }
        let space = self.spaces.get(&owner);
        if let Some(&id) = space.and_then(|space| space.ids.get(&name)) {
            return id;
        }
        if space.is_some_and(|space| space.used.contains(OrderId(name))) {
            return FORGOTTEN;
        }
        let is_inherited = name < FORGOTTEN && space.is_some_and(|space| space.is_heir);
        let came_by_it = |way: &u32| *way != NOWHERE && self.of(*way as usize) == owner;
        let is_there = match is_new {
            true => self.ways.get(&name).is_some_and(came_by_it),
            false => self.may(owner, name),
        };
        if is_inherited && is_there {
            return name;
        }
        if !is_new {
            return NEVER;
        }
        self.last += 1;
        self.spaces.entry(owner).or_default().ids.insert(name, self.last);
        self.names.insert(self.last, (owner, name));
        self.last
    }

    /// Returns whether an owner may change the order with this id in the common space. It may if the order's way is its
    /// own, or that of a line without a name while the owner has no name or had none before.
    fn may(&self, owner: u64, id: u64) -> bool {
        let by = match self.ways.get(&id) {
            Some(&NOWHERE) => return false,
            Some(&way) => self.of(way as usize),
            None => COMMON,
        };
        by == owner || (by == COMMON && self.spaces.get(&owner).is_some_and(|space| space.is_heir))
    }
}

impl View<'_> {
    /// Returns whether an order belongs to the owner of this input's way.
    #[inline]
    pub fn is_mine(&self, order: OrderId) -> bool {
        let owner = self.owners.of(self.way);
        match self.owners.names.get(&order.0) {
            Some((of, _)) => *of == owner,
            None => self.owners.may(owner, order.0),
        }
    }

    /// Translates a report of the venue for its owner.
    #[inline]
    pub fn told(&self, mut report: ExecutionReport) -> Told {
        let (id, Meant { id: meant, name, is_new, is_all }) = (report.order_id.0, self.meant);
        // A report without a sequence number is no event of an order: it answers the request alone.
        let to = if id == 0 || report.venue_sequence == 0 || is_all { To::Way(self.way) } else { To::Order(id) };
        if meant != name && id == meant {
            report.order_id = OrderId(name);
            if is_new && report.client_order_id.0 == meant {
                report.client_order_id = ClientOrderId(name);
            }
        } else if id >= FORGOTTEN
            && let Some((_, name)) = self.owners.names.get(&id)
        {
            report.order_id = OrderId(*name);
        }
        Told { to, report }
    }
}
