//! Which OMS an order is of. Order ids are unique within an OMS only, so that two OMSes may use the same ids.
//!
//! ```text
//!   a line's id ── inward ──> the venue's id ──> Venue ──> its reports ── told ──> the line's id, and the way to its owner
//! ```
//!
//! * **The common space** is that of lanes, and of lines that name no OMS: the venue has their ids as they are, and any of
//!   these lines may change any of these orders.
//! * **Each OMS that names itself** has a space of its own: the venue gives each of its orders the next id from 2^63 on,
//!   which is also what an id of the common space gets that is so large. A journal replays to the same ids.
//! * **An OMS that came without a name before** (its lines were of an older version) goes on with the orders that it has in
//!   the common space. From then on no other OMS that names itself can change those.
//! * An id that an owner never used is an unknown order to that owner, whatever orders others have.

use tickpath_market::{ClientOrderId, ExecutionReport, OrderId, Request};

use crate::Venue;
use crate::input::LANES;
use crate::used::{IdMap, Used};

/// The owner of the common space.
pub(crate) const COMMON: u64 = 0;
/// The venue's own ids begin here. This one stands for each order that was done on an earlier day.
const FORGOTTEN: u64 = 1 << 63;
/// The venue's id of what was never ordered.
const NEVER: u64 = u64::MAX;
/// The way of a line that is forgotten: its reports go nowhere.
const NOWHERE: u32 = u32::MAX;

/// All owners, and the ways to them.
#[derive(Debug)]
pub(crate) struct Owners {
    /// The owner that comes by each way; [`COMMON`] for the lanes and where there is none.
    by_way: Vec<u64>,
    spaces: IdMap<u64, Space>,
    /// Owner and line's id of each order that the venue calls otherwise.
    names: IdMap<u64, (u64, u64)>,
    /// The last of the venue's own ids.
    last: u64,
    /// By the venue's id of an order: the way of its last request, where that is not the lanes.
    ways: IdMap<u64, u32>,
}

/// The ids of an owner.
#[derive(Debug)]
struct Space {
    /// The venue's ids of the orders that the venue knows.
    ids: IdMap<u64, u64>,
    /// The ids of orders that the venue has forgotten.
    used: Used,
    /// The owner had orders in the common space before it had a name.
    is_heir: bool,
}

/// A request as the venue takes it, and what it named its order by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Meant {
    /// The venue's id, and the line's.
    id: u64,
    name: u64,
    is_new: bool,
    /// It asks for all orders: the whole answer goes the way that the question came.
    is_all: bool,
}

/// How the reports of one input read to their owners.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    owners: &'a Owners,
    way: usize,
    meant: Meant,
}

/// A report as its owner reads it, and where it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    to: To,
    pub report: ExecutionReport,
}

/// Where a report goes: the way of an order may change while a report is held back.
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
    /// The owner that comes by a way.
    pub fn of(&self, way: usize) -> u64 {
        self.by_way.get(way).copied().unwrap_or(COMMON)
    }

    /// A way is this owner's from now on.
    pub fn set(&mut self, way: usize, owner: u64) {
        if way >= self.by_way.len() {
            self.by_way.resize(way + 1, COMMON);
        }
        self.by_way[way] = owner;
    }

    /// The owner has come by a way that it had without a name.
    pub fn inherit(&mut self, way: usize, owner: u64) {
        self.set(way, owner);
        self.spaces.entry(owner).or_default().is_heir = true;
    }

    /// Another line comes by this way: what happens to orders of the line before goes nowhere.
    pub fn forget(&mut self, way: usize) {
        self.set(way, COMMON);
        for of_order in self.ways.values_mut().filter(|of_order| **of_order as usize == way) {
            *of_order = NOWHERE;
        }
    }

    /// For each way below `ways`, whether an order of it rests.
    pub fn resting(&self, ways: usize, venue: &Venue) -> Vec<bool> {
        let mut rests = vec![false; ways];
        for (&order, &way) in &self.ways {
            if let Some(rests) = rests.get_mut(way as usize) {
                *rests |= venue.rests(order);
            }
        }
        rests
    }

    /// Takes a request that came by a way, and makes the venue's of it.
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
            // It must count as used.
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

    /// What a request named, and what is no order, has no way.
    #[inline]
    pub fn done(&mut self, meant: Meant, venue: &Venue) {
        if !meant.is_new && !self.ways.is_empty() && !venue.knows(meant.id) {
            self.ways.remove(&meant.id);
        }
    }

    /// How the reports of an input that came by a way read.
    pub fn view(&self, way: usize, meant: Meant) -> View<'_> {
        View { owners: self, way, meant }
    }

    /// The way that a report goes; [`usize::MAX`] for nowhere.
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

    /// A day has ended: of orders that the venue has forgotten only this is kept, that their ids were used.
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
        // Nobody is left to use its ids again.
        let Self { by_way, spaces, .. } = self;
        spaces.retain(|owner, space| !space.ids.is_empty() || *owner == COMMON || by_way.contains(owner));
    }

    /// The venue's id of what an owner calls so.
    #[inline]
    fn id(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if owner == COMMON && name < FORGOTTEN {
            return match self.may(COMMON, name) {
                true => name,
                // The id is used, and the order's reports stay with its owner.
                false if is_new => FORGOTTEN,
                false => NEVER,
            };
        }
        self.id_in_space(owner, name, is_new)
    }

    fn id_in_space(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if name == 0 && is_new {
            // It means none, and is refused.
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

    /// Whether an owner may change what has this id in the common space: what came by a way of its own; and by that of a
    /// line without a name, if the owner has none either, or had none before.
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
    /// Whether an order is of the owner whose request this is.
    #[inline]
    pub fn is_mine(&self, order: OrderId) -> bool {
        let owner = self.owners.of(self.way);
        match self.owners.names.get(&order.0) {
            Some((of, _)) => *of == owner,
            None => self.owners.may(owner, order.0),
        }
    }

    /// A report of the venue as its owner reads it.
    #[inline]
    pub fn told(&self, mut report: ExecutionReport) -> Told {
        let (id, Meant { id: meant, name, is_new, is_all }) = (report.order_id.0, self.meant);
        // Without a number a report is no event of an order: it answers the request alone.
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
