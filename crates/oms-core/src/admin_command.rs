//! Admin commands: which of them the core accepts, and the error message for each that it refuses.

use tickpath_market::{AccountId, OrdStatus, OrderId, Quantity, SymbolId};
use tickpath_oms_records::{CancelScope, KILL_ACCOUNT, KILL_ALL, KILL_SESSION, KILL_SYMBOL, Reconcile, Resolve};

use crate::core::{At, Core};
use crate::open_orders::CancelFilter;
use crate::order::Order;
use crate::state::OrderPhase;
use crate::venue_table::VENUE_LIMIT;
use crate::{Input, OrderView, Outputs};

/// Reason why an admin command is refused. A refused command changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdminCommandError {
    /// Unknown scope or target of a kill switch or a cancel.
    #[error("scope {scope} with target {target} does not exist; name the firm, an account, a session or a symbol")]
    Scope {
        /// Code of the scope.
        scope: u8,
        /// Target of the scope.
        target: u32,
    },
    /// Unknown order.
    #[error("there is no order {}.{}; `tickpath orders` lists those that are open", .0.epoch(), .0.sequence())]
    NoOrder(OrderId),
    /// Order that is not in doubt: only one in doubt can be resolved.
    #[error("the order is {0:?}, and only an Unknown order can be resolved; cancel it, or enter its missing fills")]
    NotUnknown(OrdStatus),
    /// Status in which an order cannot be resolved.
    #[error("an order cannot get this status; resolve it as working, filled, canceled, expired or rejected")]
    Status,
    /// Filled quantity that the order cannot have.
    #[error("a filled quantity of {filled} is not possible; give 0 to {max}, and all of it for a filled order")]
    Filled {
        /// Quantity in the command.
        filled: Quantity,
        /// Largest possible quantity.
        max: Quantity,
    },
    /// Order whose venue cannot be asked for its status.
    #[error(
        "the venue cannot be asked for this order: the order never left, or the venue is down, answers no status \
         requests (answers_status) or has only reported its own id; resolve the order if it is Unknown"
    )]
    CannotQuery,
    /// Venue that cannot be asked for all orders.
    #[error(
        "venue {0} cannot be asked for its orders now: it is down, answers no status requests (answers_status), or \
         requests wait for it; `tickpath oms status` shows them"
    )]
    CannotReconcile(u16),
    /// Missing name and reason.
    #[error("the reason is missing; give the operator's name and the cause")]
    Reason,
    /// Invalid terms of an order.
    #[error("the terms are not valid; give a side, a quantity above zero, and a price unless it is a market order")]
    Terms,
    /// Missing venue id of an order.
    #[error("no venue id was given; give the id under which the order was sent, or the venue's own id")]
    MissingVenueId,
    /// Order that is known already.
    #[error("an order with this venue id is known already; `tickpath orders` shows it")]
    KnownOrder,
    /// Undefined account or symbol.
    #[error("account {account} or symbol {symbol} is not defined; define both, and reload")]
    Undefined {
        /// Number of the account.
        account: u32,
        /// Number of the symbol.
        symbol: u32,
    },
    /// Session without the right to trade for the account.
    #[error("session {session} may not trade for account {account}; name a session that may")]
    NotEntitled {
        /// Number of the session.
        session: u16,
        /// Number of the account.
        account: u32,
    },
    /// Client order id that is zero or used up.
    #[error("session {session} has used the client order id {client} today, or it is zero; choose another one")]
    ClientId {
        /// Number of the session.
        session: u16,
        /// The client order id.
        client: u64,
    },
    /// Terms that contradict the venue's reports of the order.
    #[error("the venue's reports name another side, symbol or account; `tickpath orders --foreign` shows them")]
    Disagrees,
    /// Order that still waits in the OMS, or that was denied.
    #[error("the order was never sent to its venue, so it has no fills")]
    NotSent,
    /// Missing execution id or quantity of a fill.
    #[error("a fill needs the venue's execution id and a quantity above zero; without an id, resolve the order")]
    Fill,
    /// Fill that is booked already.
    #[error("the fill {0} of this order is booked already")]
    FillKnown(u64),
    /// Venue sequence that was seen already.
    #[error("venue sequence {0} of this order was seen already; leave it out if it is unknown")]
    SeenSequence(u64),
    /// Fill larger than the order's open quantity.
    #[error("the fill exceeds the open quantity: {filled} of {max} are filled; check the quantity")]
    OverFilled {
        /// Quantity filled so far.
        filled: Quantity,
        /// Total quantity of the order.
        max: Quantity,
    },
    /// Opening position of an account that has traded since the day began.
    #[error("account {0} has traded since the day began; enter the change of its position with --adjust")]
    Traded(u32),
    /// Missing price: none was given, and none is known.
    #[error("no price of symbol {0} is known; enter one after the quantity")]
    Unpriced(u32),
    /// Position that would stay as it is.
    #[error("the position is {0} already; enter another quantity")]
    NoChange(Quantity),
    /// Input that is no admin command.
    #[error("the record is no admin command; check whether the sender is of another version")]
    NotACommand,
}

impl Core {
    /// Checks whether the core would accept an admin command now.
    pub fn validate(&self, command: &Input) -> Result<(), AdminCommandError> {
        match command {
            Input::Kill(kill) => check_scope(kill.scope, kill.target),
            Input::CancelScope(cancel) => check_scope(cancel.scope, cancel.target),
            Input::Reconcile(reconcile) => self.check_reconcile(reconcile),
            Input::Resolve(resolve) => self.check_resolve(resolve).map(drop),
            Input::QueryStatus(query) => {
                let slot = self.find_for_command(query.order)?;
                self.status_request_id(self.orders.get(slot)).map(drop).ok_or(AdminCommandError::CannotQuery)
            }
            Input::EnterOrder(enter) => self.build_entered_order(enter).map(drop),
            Input::EnterFill(enter) => self.check_enter_fill(enter).map(drop),
            Input::EnterPosition(enter) => self.check_enter_position(enter).map(drop),
            Input::DayEnd(_) => Ok(()),
            _ => Err(AdminCommandError::NotACommand),
        }
    }

    /// Returns the open orders that a command may change.
    pub fn affected_orders(&self, command: &Input) -> Vec<OrderView> {
        let in_scope = |scope: u8, target: u32| {
            let filter = cancel_filter(scope, target);
            self.orders.open_orders().filter(|order| filter.covers_order(order)).map(Order::view).collect()
        };
        match command {
            Input::Kill(kill) if kill.on != 0 && kill.cancel != 0 => in_scope(kill.scope, kill.target),
            Input::CancelScope(cancel) => in_scope(cancel.scope, cancel.target),
            Input::Resolve(resolve) => self.order(OrderId(resolve.order)).into_iter().collect(),
            Input::QueryStatus(query) => self.order(OrderId(query.order)).into_iter().collect(),
            Input::EnterFill(enter) => self.order(OrderId(enter.order)).into_iter().collect(),
            Input::DayEnd(_) => in_scope(KILL_ALL, 0),
            _ => Vec::new(),
        }
    }

    pub(crate) fn cancel_scope(&mut self, at: At, cancel: &CancelScope, out: &mut Outputs) -> bool {
        let is_accepted = check_scope(cancel.scope, cancel.target).is_ok();
        if is_accepted {
            self.cancel_all(at, None, out, cancel_filter(cancel.scope, cancel.target));
        }
        is_accepted
    }

    /// Checks whether a venue can be asked for all orders. Requests must not wait: the answer would seem to decide
    /// them.
    pub(crate) fn check_reconcile(&self, reconcile: &Reconcile) -> Result<(), AdminCommandError> {
        let number = reconcile.venue.0;
        if reconcile.reason[0] == 0 {
            return Err(AdminCommandError::Reason);
        }
        let venue = self.venues.find(reconcile.venue);
        let can_answer = venue.is_none_or(|venue| venue.sends_at_once() && venue.rules.answers_status != 0);
        if number < VENUE_LIMIT && can_answer { Ok(()) } else { Err(AdminCommandError::CannotReconcile(number)) }
    }

    /// Returns the order that a command names.
    pub(crate) fn find_for_command(&self, order: u64) -> Result<u32, AdminCommandError> {
        self.orders.find(order).ok_or(AdminCommandError::NoOrder(OrderId(order)))
    }

    /// Returns the order that a command would resolve and its new phase, or the reason to refuse the command.
    pub(crate) fn check_resolve(&self, resolve: &Resolve) -> Result<(u32, OrderPhase), AdminCommandError> {
        let slot = self.find_for_command(resolve.order)?;
        let order = self.orders.get(slot);
        let phase = match OrdStatus::from_code(resolve.status) {
            Some(OrdStatus::New | OrdStatus::PartiallyFilled | OrdStatus::Filled) => OrderPhase::Open,
            Some(OrdStatus::Canceled) => OrderPhase::Canceled,
            Some(OrdStatus::Expired) => OrderPhase::Expired,
            Some(OrdStatus::Rejected) => OrderPhase::Rejected,
            _ => return Err(AdminCommandError::Status),
        };
        // A venue may have filled more than the total, and an ended order then takes that truth. The total of an order
        // that works on is unknown, so its booked fills are the limit.
        let is_over = !matches!(phase, OrderPhase::Open) || resolve.status == OrdStatus::Filled.code();
        let known = if is_over { order.known_filled() } else { order.filled };
        let (filled, max) = (resolve.cumulative_quantity, order.quantity.max(known));
        let is_whole = resolve.status != OrdStatus::Filled.code() || filled.0 >= order.quantity;
        if !order.phase.is_unknown() {
            return Err(AdminCommandError::NotUnknown(order.status()));
        } else if !(0..=max).contains(&filled.0) || !is_whole {
            return Err(AdminCommandError::Filled { filled, max: Quantity(max) });
        } else if resolve.reason[0] == 0 {
            return Err(AdminCommandError::Reason);
        }
        Ok((slot, phase))
    }
}

/// Returns the orders that a cancel of this scope means.
pub(crate) fn cancel_filter(scope: u8, target: u32) -> CancelFilter {
    match scope {
        KILL_ACCOUNT => CancelFilter::AllOfAccount(AccountId(target)),
        KILL_SYMBOL => CancelFilter::AllOfSymbol(SymbolId(target)),
        KILL_SESSION => CancelFilter::Session(target),
        _ => CancelFilter::All,
    }
}

/// Checks that the scope exists and that an operator may use it.
fn check_scope(scope: u8, target: u32) -> Result<(), AdminCommandError> {
    let is_known = match scope {
        KILL_ALL => true,
        KILL_ACCOUNT | KILL_SYMBOL | KILL_SESSION => target <= u16::MAX.into(),
        // Only the OMS sets the disk's switch.
        _ => false,
    };
    if is_known { Ok(()) } else { Err(AdminCommandError::Scope { scope, target }) }
}
