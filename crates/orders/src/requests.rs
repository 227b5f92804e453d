//! What happens to a new order, a cancel, a replace.
//!
//! Each is admitted (its id must be usable), checked, kept, and answered. What is admitted uses its client id up even
//! if a check denies it: a client that sends a denied request again under the same id is told so, and never finds
//! one id both denied and working. What is not admitted leaves no trace but a count.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, ExecutionReport, NewOrder, OrderDenied, OrderId, OrderType, Price,
    Quantity, ReplaceOrder, Request, Side, VenueId, VenueOrderId,
};

use crate::core::{At, Core};
use crate::desk::Entry;
use crate::order::{Ask, NONE, Order};
use crate::risk::{Facts, Refusal, check};
use crate::state::{Event, Phase, step};
use crate::{Denial, Envelope, Output, Outputs};

impl Core {
    /// Passes a request on to the venue, or denies it.
    pub(crate) fn request(&mut self, at: At, envelope: &Envelope, request: &Request, out: &mut Outputs) {
        self.desk.count_message(request.account(), at.stamp);
        let client = request.client_order_id();
        let passed = match (self.admit(at, envelope.session, client), request) {
            (Err(refusal), _) => Err(refusal),
            (Ok(()), Request::New(new)) => self.new_order(at, envelope, new, out),
            (Ok(()), Request::Cancel(cancel)) => self.cancel(at, envelope, cancel, out),
            (Ok(()), Request::Replace(replace)) => self.replace(at, envelope, replace, out),
        };
        if let Err(refusal) = passed {
            self.counts.denied_requests += 1;
            let denied = OrderDenied {
                order_id: OrderId(at.sequence),
                client_order_id: client,
                limit: refusal.limit.to_le_bytes(),
                value: refusal.value.to_le_bytes(),
                account: request.account(),
                code: refusal.denial.code(),
                reserved: 0,
            };
            out.push(Output::Denied { session: envelope.session, denied });
        }
        self.last_request = self.last_request.max(at.sequence);
    }

    fn admit(&self, at: At, session: u16, client: ClientOrderId) -> Result<(), Refusal> {
        if at.sequence <= self.last_request {
            return Err(Denial::Sequence.into());
        }
        if client.0 == 0 {
            return Err(Denial::MissingClientOrderId.into());
        }
        match self.find_client(session, client.0) {
            Some(_) => Err(Denial::DuplicateClientOrderId.into()),
            None => Ok(()),
        }
    }

    fn new_order(&mut self, at: At, envelope: &Envelope, new: &NewOrder, out: &mut Outputs) -> Result<(), Refusal> {
        let (Ok(()), Some(side), Some(order_type)) =
            (new.check(), Side::from_code(new.side), OrderType::from_code(new.order_type))
        else {
            return Err(Denial::Malformed.into());
        };
        let mut order = Order {
            id: at.sequence,
            client: new.client_order_id.0,
            price: new.price.0,
            quantity: new.quantity.0,
            account: new.account,
            symbol: new.symbol,
            session: envelope.session,
            side,
            order_type,
            ..Order::EMPTY
        };
        match self.check_new(envelope, &order) {
            Ok(position) => (order.position, order.phase) = (position, Phase::Sent),
            Err(refusal) => {
                self.keep_order(order);
                return Err(refusal);
            }
        }
        self.keep_order(order);
        out.push(Output::Venue(Request::New(NewOrder { client_order_id: ClientOrderId(order.id), ..*new })));
        out.push(self.answer(&order, ExecType::PendingNew, new.client_order_id));
        Ok(())
    }

    /// Holds a new order against the checks and tells the slot of its position.
    fn check_new(&mut self, envelope: &Envelope, order: &Order) -> Result<u32, Refusal> {
        self.desk.entry(order.account, order.symbol).map_err(|denial| undefined(denial, order))?;
        let position = self.positions.open(order.account, order.symbol);
        let entry = self.desk.entry(order.account, order.symbol)?;
        check(&Facts {
            price: order.price,
            quantity: order.quantity,
            minimum: 1,
            increase: order.quantity.max(0),
            reach: self.reach(position, order.side),
            ..facts(&entry, envelope, order)
        })?;
        Ok(position)
    }

    fn cancel(&mut self, at: At, envelope: &Envelope, cancel: &CancelOrder, out: &mut Outputs) -> Result<(), Refusal> {
        let checked = self.check_cancel(envelope, cancel);
        let client = cancel.client_order_id;
        let ask = self.keep_ask(Ask { id: at.sequence, client: client.0, quantity: 0, session: envelope.session });
        let slot = checked?;
        let order = Order { cancel: ask, ..*self.orders.get(slot) };
        self.settle(slot, order);
        out.push(Output::Venue(Request::Cancel(CancelOrder {
            client_order_id: ClientOrderId(at.sequence),
            original: ClientOrderId(order.id),
            symbol: order.symbol,
            ..*cancel
        })));
        out.push(self.answer(&order, ExecType::PendingCancel, client));
        Ok(())
    }

    /// A cancel passes whatever the limits and switches are.
    fn check_cancel(&self, envelope: &Envelope, cancel: &CancelOrder) -> Result<u32, Refusal> {
        let slot = self.named(envelope, cancel.account, cancel.original)?;
        let order = self.orders.get(slot);
        step(order.phase, Event::Cancel)?;
        match (order.phase.is_unknown(), order.cancel != NONE) {
            (false, _) if order.leaves() == 0 => Err(Denial::TooLate.into()),
            (false, true) => Err(Denial::AlreadyPending.into()),
            (true, _) | (false, false) => Ok(slot),
        }
    }

    fn replace(
        &mut self,
        at: At,
        envelope: &Envelope,
        replace: &ReplaceOrder,
        out: &mut Outputs,
    ) -> Result<(), Refusal> {
        let checked = self.check_replace(envelope, replace);
        let (client, quantity) = (replace.client_order_id, replace.quantity.0);
        let ask = self.keep_ask(Ask { id: at.sequence, client: client.0, quantity, session: envelope.session });
        let slot = checked?;
        let order = Order { replace: ask, ..*self.orders.get(slot) };
        self.settle(slot, order);
        out.push(Output::Venue(Request::Replace(ReplaceOrder {
            client_order_id: ClientOrderId(at.sequence),
            original: ClientOrderId(order.id),
            symbol: order.symbol,
            ..*replace
        })));
        out.push(self.answer(&order, ExecType::PendingReplace, client));
        Ok(())
    }

    /// Limits of the position hold for what a replace adds; all other limits for the order as it would be.
    fn check_replace(&self, envelope: &Envelope, replace: &ReplaceOrder) -> Result<u32, Refusal> {
        let slot = self.named(envelope, replace.account, replace.original)?;
        let order = self.orders.get(slot);
        step(order.phase, Event::Replace)?;
        if order.leaves() == 0 {
            return Err(Denial::TooLate.into());
        }
        if order.cancel != NONE || order.replace != NONE {
            return Err(Denial::AlreadyPending.into());
        }
        let entry = self.desk.entry(order.account, order.symbol).map_err(|denial| undefined(denial, order))?;
        check(&Facts {
            price: replace.price.0,
            quantity: replace.quantity.0,
            minimum: order.known().saturating_add(1),
            increase: replace.quantity.0.saturating_sub(order.quantity).max(0),
            reach: self.reach(order.position, order.side),
            ..facts(&entry, envelope, order)
        })?;
        Ok(slot)
    }

    /// The order that a cancel or replace names, if it is the session's and the account's.
    fn named(&self, envelope: &Envelope, account: AccountId, original: ClientOrderId) -> Result<u32, Refusal> {
        self.find_original(envelope.session, original.0)
            .filter(|&slot| self.orders.get(slot).account == account)
            .ok_or(Denial::UnknownOrder.into())
    }

    /// The first report on a request, before the venue has it.
    fn answer(&self, order: &Order, exec_type: ExecType, client: ClientOrderId) -> Output {
        let venue = self.desk.find(order.symbol).map_or(VenueId(0), |instrument| instrument.venue);
        let report = ExecutionReport { exec_type: exec_type.code(), venue, ..told(order, client) };
        Output::Report { session: order.session, report }
    }
}

/// What any report to a client says of its order.
pub(crate) fn told(order: &Order, client: ClientOrderId) -> ExecutionReport {
    ExecutionReport {
        order_id: OrderId(order.id),
        client_order_id: client,
        venue_order_id: VenueOrderId(order.venue),
        cumulative_quantity: Quantity(order.filled),
        leaves_quantity: Quantity(order.leaves()),
        price: Price(order.price),
        symbol: order.symbol,
        account: order.account,
        status: order.status().code(),
        side: order.side.code(),
        ..Default::default()
    }
}

/// The facts that do not depend on the kind of request.
fn facts<'a>(entry: &Entry<'a>, envelope: &Envelope, order: &Order) -> Facts<'a> {
    Facts {
        limits: entry.limits,
        multiplier: entry.instrument.multiplier,
        kills: entry.kills,
        messages: entry.messages,
        order_type: order.order_type,
        price: 0,
        quantity: 0,
        minimum: 0,
        increase: 0,
        reach: 0,
        reference_price: envelope.reference_price.0,
        reference_age: envelope.reference_age,
    }
}

/// Tells which id is not defined.
fn undefined(denial: Denial, order: &Order) -> Refusal {
    let value = match denial {
        Denial::UnknownAccount => order.account.0.into(),
        _ => order.symbol.0.into(),
    };
    Refusal { denial, limit: 0, value }
}
