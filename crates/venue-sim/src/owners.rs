//! Ownership of orders. Order ids are unique within an OMS only, so that two OMSes may use the same ids.
//!
//! ```text
//!   line's id ── inward ──> venue's id ──> Venue ──> reports ── outward ──> line's id, and the route to its owner
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

use crate::SimVenue;
use crate::input::LANES_ROUTE;
use crate::used_ids::{IdMap, UsedIds};

pub(crate) const COMMON: u64 = 0;
/// First of the ids that the venue assigns. This id itself stands for every order that ended on an earlier day.
const FORGOTTEN_ORDER: u64 = 1 << 63;
/// Venue's id for orders that never existed.
const NO_ORDER: u64 = u64::MAX;
/// Route of a forgotten line: its reports are dropped.
const NO_ROUTE: u32 = u32::MAX;

/// All owners, and the routes of their orders.
#[derive(Debug, Default)]
pub(crate) struct OrderOwners {
    /// Owner of each route; [`COMMON`] for the lanes and for lines without a named OMS.
    owner_by_route: Vec<u64>,
    spaces: IdMap<u64, IdSpace>,
    /// Owner and client's id of each order with an id that the venue assigned.
    client_ids: IdMap<u64, (u64, u64)>,
    /// Number of ids that the venue assigned.
    assigned: u64,
    /// Route of each order's last request by the venue's id, if that is not the route of the lanes.
    routes: IdMap<u64, u32>,
}

#[derive(Debug, Default)]
struct IdSpace {
    /// Venue's ids of the orders that the venue knows, by the client's id.
    ids: IdMap<u64, u64>,
    /// Client's ids of orders that the venue has forgotten.
    used: UsedIds,
    /// Whether the owner used the common space before it named itself.
    inherits_common: bool,
}

/// Order that a request addresses, by the venue's id and by the client's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResolvedRequest {
    id: u64,
    client_id: u64,
    is_new: bool,
    /// Whether it is a status request for all orders: the whole answer goes back by the request's route.
    covers_all: bool,
}

/// Translation of one input's reports to their owners' ids and routes.
#[derive(Clone, Copy)]
pub(crate) struct ReportTranslation<'a> {
    owners: &'a OrderOwners,
    route: usize,
    request: ResolvedRequest,
}

/// Report with its owner's ids, and its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutedReport {
    to: ReportDestination,
    pub report: ExecutionReport,
}

/// Destination of a report. An order's route is resolved late, because it may change while a report is held back.
#[derive(Debug, Clone, Copy)]
enum ReportDestination {
    Route(usize),
    Order(u64),
}

impl OrderOwners {
    pub fn owner_of(&self, route: usize) -> u64 {
        self.owner_by_route.get(route).copied().unwrap_or(COMMON)
    }

    pub fn assign(&mut self, route: usize, owner: u64) {
        if route >= self.owner_by_route.len() {
            self.owner_by_route.resize(route + 1, COMMON);
        }
        self.owner_by_route[route] = owner;
    }

    /// Assigns a route to the owner that used it before without a name, and leaves it its orders of the common space.
    pub fn inherit(&mut self, route: usize, owner: u64) {
        self.assign(route, owner);
        self.spaces.entry(owner).or_default().inherits_common = true;
    }

    /// Frees a route for another line. Later reports of the old line's orders are dropped.
    pub fn free_route(&mut self, route: usize) {
        self.assign(route, COMMON);
        for order_route in self.routes.values_mut().filter(|order_route| **order_route as usize == route) {
            *order_route = NO_ROUTE;
        }
    }

    /// Returns for each route below `routes` whether an order of it rests.
    pub fn routes_with_orders(&self, routes: usize, venue: &SimVenue) -> Vec<bool> {
        let mut rests = vec![false; routes];
        for (&order, &route) in &self.routes {
            if let Some(rests) = rests.get_mut(route as usize) {
                *rests |= venue.known_orders.location(OrderId(order)).is_some();
            }
        }
        rests
    }

    /// Replaces the client's order id in a request that came by `route` with the venue's id, and makes `route` the
    /// route of the order.
    #[inline]
    pub fn resolve(&mut self, route: usize, request: &mut Request, venue: &mut SimVenue) -> ResolvedRequest {
        let (id, is_new) = match request {
            Request::New(new) => (&mut new.client_order_id.0, true),
            Request::Conditional(new) => (&mut new.order.client_order_id.0, true),
            Request::Cancel(cancel) => (&mut cancel.original.0, false),
            Request::Replace(replace) => (&mut replace.original.0, false),
            Request::Status(status) if status.asks_for_all_orders() => {
                return ResolvedRequest { covers_all: true, ..ResolvedRequest::default() };
            }
            Request::Status(status) => (&mut status.original.0, false),
            Request::ReplaceConditional(replace) => (&mut replace.original.0, false),
            Request::Extended(new) => (&mut new.order.client_order_id.0, true),
            Request::MassCancel(_) | Request::ByTextId(_) => return ResolvedRequest::default(),
        };
        let (name, owner) = (*id, self.owner_of(route));
        *id = self.venue_id(owner, name, is_new);
        let resolved = ResolvedRequest { id: *id, client_id: name, is_new, covers_all: false };
        match resolved.id {
            // The id must count as used, so that the venue rejects a new order with it.
            FORGOTTEN_ORDER => {
                venue.used_ids.insert(OrderId(FORGOTTEN_ORDER));
            }
            NO_ORDER => {}
            order if route != LANES_ROUTE => {
                self.routes.insert(order, route as u32);
            }
            order if !self.routes.is_empty() => {
                self.routes.remove(&order);
            }
            _ => {}
        }
        resolved
    }

    /// Drops the route that a request gave to an order that the venue does not know.
    #[inline]
    pub fn drop_unknown_route(&mut self, request: ResolvedRequest, venue: &SimVenue) {
        if !request.is_new && !self.routes.is_empty() && !venue.is_known(request.id) {
            self.routes.remove(&request.id);
        }
    }

    /// Returns the translation for the reports of an input that came by `route`.
    pub fn translation(&self, route: usize, request: ResolvedRequest) -> ReportTranslation<'_> {
        ReportTranslation { owners: self, route, request }
    }

    /// Returns the route of a report; [`usize::MAX`] if it is to be dropped.
    #[inline]
    pub fn route_of(&self, routed: &RoutedReport) -> usize {
        match routed.to {
            ReportDestination::Route(route) => route,
            ReportDestination::Order(order) => match self.routes.get(&order) {
                Some(&NO_ROUTE) => usize::MAX,
                Some(&route) => route as usize,
                None => LANES_ROUTE,
            },
        }
    }

    /// Ends the day: keeps nothing but the used ids of orders that the venue has forgotten.
    pub fn end_day(&mut self, venue: &SimVenue) {
        self.routes.retain(|&order, _| venue.is_known(order));
        for space in self.spaces.values_mut() {
            let IdSpace { ids, used, .. } = space;
            ids.retain(|&name, &mut id| {
                let is_known = venue.is_known(id);
                if !is_known && venue.used_ids.contains(OrderId(id)) {
                    used.insert(OrderId(name));
                }
                is_known
            });
        }
        self.client_ids.retain(|&id, _| venue.is_known(id));
        // Drops spaces without orders and without a route: no line is left that could reuse their ids.
        let Self { owner_by_route, spaces, .. } = self;
        spaces.retain(|owner, space| !space.ids.is_empty() || *owner == COMMON || owner_by_route.contains(owner));
    }

    /// Returns the venue's id of an owner's order; a new order may get a fresh id.
    #[inline]
    fn venue_id(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if owner == COMMON && name < FORGOTTEN_ORDER {
            return match self.may_change(COMMON, name) {
                true => name,
                // The id belongs to another owner: the new order is a duplicate, and the order keeps its route.
                false if is_new => FORGOTTEN_ORDER,
                false => NO_ORDER,
            };
        }
        self.id_in_own_space(owner, name, is_new)
    }

    fn id_in_own_space(&mut self, owner: u64, name: u64, is_new: bool) -> u64 {
        if name == 0 && is_new {
            // Zero is no order id, and the venue rejects it.
            return 0;
        }
        let space = self.spaces.get(&owner);
        if let Some(&id) = space.and_then(|space| space.ids.get(&name)) {
            return id;
        }
        if space.is_some_and(|space| space.used.contains(OrderId(name))) {
            return FORGOTTEN_ORDER;
        }
        let is_inherited = name < FORGOTTEN_ORDER && space.is_some_and(|space| space.inherits_common);
        let is_by_owner = |route: &u32| *route != NO_ROUTE && self.owner_of(*route as usize) == owner;
        let is_reachable = match is_new {
            true => self.routes.get(&name).is_some_and(is_by_owner),
            false => self.may_change(owner, name),
        };
        if is_inherited && is_reachable {
            return name;
        }
        if !is_new {
            return NO_ORDER;
        }
        self.assigned += 1;
        let id = FORGOTTEN_ORDER + self.assigned;
        self.spaces.entry(owner).or_default().ids.insert(name, id);
        self.client_ids.insert(id, (owner, name));
        id
    }

    /// Returns whether an owner may change the order with this id in the common space. It may if the order's route is
    /// its own, or that of a line without a name while the owner has no name or had none before.
    fn may_change(&self, owner: u64, id: u64) -> bool {
        let by = match self.routes.get(&id) {
            Some(&NO_ROUTE) => return false,
            Some(&route) => self.owner_of(route as usize),
            None => COMMON,
        };
        by == owner || (by == COMMON && self.spaces.get(&owner).is_some_and(|space| space.inherits_common))
    }
}

impl ReportTranslation<'_> {
    /// Returns whether an order belongs to the owner of this input's route.
    #[inline]
    pub fn is_owned(&self, order: OrderId) -> bool {
        let owner = self.owners.owner_of(self.route);
        match self.owners.client_ids.get(&order.0) {
            Some((of, _)) => *of == owner,
            None => self.owners.may_change(owner, order.0),
        }
    }

    /// Translates a report of the venue for its owner.
    #[inline]
    pub fn translate(&self, mut report: ExecutionReport) -> RoutedReport {
        let id = report.order_id.0;
        let ResolvedRequest { id: requested, client_id, is_new, covers_all } = self.request;
        // A report without a sequence number is no event of an order: it answers the request alone.
        let to = if id == 0 || report.venue_sequence == 0 || covers_all {
            ReportDestination::Route(self.route)
        } else {
            ReportDestination::Order(id)
        };
        if requested != client_id && id == requested {
            report.order_id = OrderId(client_id);
            if is_new && report.client_order_id.0 == requested {
                report.client_order_id = ClientOrderId(client_id);
            }
        } else if id >= FORGOTTEN_ORDER
            && let Some((_, client_id)) = self.owners.client_ids.get(&id)
        {
            report.order_id = OrderId(*client_id);
        }
        RoutedReport { to, report }
    }
}
