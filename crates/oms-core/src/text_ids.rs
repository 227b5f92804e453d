//! New orders with a text id or an end time, and requests that name an order by its text id.
//!
//! A text id is unique among the open orders of its account, as the venues' own text ids are, so a program may use one
//! again once its order has ended. An order in doubt is open. A text id names the latest order of the account that has
//! it, of any session: a program that takes over the account finds the order without its session.

use tickpath_market::{
    AccountId, CancelOrder, ClientOrderId, ExecType, ExtendedOrder, OrderExtension, OrderId, TextId, TextIdAction,
    TextIdRequest, TimeInForce,
};
use tickpath_oms_risk::Breach;

use crate::client_reports::report_as;
use crate::core::{At, Core};
use crate::extensions::Extension;
use crate::order::Order;
use crate::{Denial, Envelope, Output, Outputs};

impl Core {
    /// Returns the extension of an order under the order's own client id; none if the order has none.
    pub fn extension(&self, order: OrderId) -> Option<OrderExtension> {
        let extension = self.extensions.of_order(order.0)?;
        let slot = self.orders.find(order.0)?;
        Some(extension.message(ClientOrderId(self.orders.get(slot).client)))
    }

    /// Returns the text id of an order; none if it has none.
    pub fn text_id(&self, order: OrderId) -> Option<TextId> {
        let extension = self.extensions.of_order(order.0)?;
        (!extension.text_id.is_none()).then_some(extension.text_id)
    }

    /// Returns the latest order of an account with this text id.
    pub fn order_by_text_id(&self, account: AccountId, text_id: TextId) -> Option<OrderId> {
        self.extensions.find(account, text_id).map(OrderId)
    }

    /// Passes a new order with a text id or an end time on to its venue, as one without, or denies it.
    pub(crate) fn extended_order(
        &mut self,
        at: At,
        envelope: &Envelope,
        extended: &ExtendedOrder,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        extended.check().map_err(|_| Denial::Malformed)?;
        let client = extended.order.client_order_id;
        let checked = self.check_text_id(extended).and_then(|()| self.check_end_time(at, extended));
        self.orders.use_up_if_denied(envelope.session, client.0, checked)?;
        self.new_order(at, envelope, &extended.venue_order(), out)?;
        let (order, account, expire_ns) = (self.id(at), extended.order.account, extended.expire_ns);
        let extension = Extension { order, expire_ns, due_ns: expire_ns, account, text_id: extended.text_id };
        self.extensions.insert(extension);
        if extended.is_dated()
            && let Some(slot) = self.orders.find(order)
        {
            self.orders.get_mut(slot).time_in_force = TimeInForce::GoodTillDate;
        }
        out.insert_before_last(Output::Extension { session: envelope.session, extension: extension.message(client) });
        Ok(())
    }

    /// Checks that no open order of the account has the text id.
    fn check_text_id(&self, extended: &ExtendedOrder) -> Result<(), Denial> {
        if extended.text_id.is_none() {
            return Ok(());
        }
        let found = self.extensions.find(extended.order.account, extended.text_id);
        let slot = found.and_then(|order| self.orders.find(order));
        let is_used = slot.is_some_and(|slot| self.orders.get(slot).is_open());
        if is_used { Err(Denial::DuplicateTextId) } else { Ok(()) }
    }

    /// Cancels an order by its text id, or reports its state.
    pub(crate) fn apply_by_text_id(
        &mut self,
        at: At,
        envelope: &Envelope,
        named: &TextIdRequest,
        out: &mut Outputs,
    ) -> Result<(), Breach> {
        let (client_order_id, cause) = (named.client_order_id, named.cause);
        let found = self.extensions.find(named.account, named.text_id).ok_or(Denial::UnknownOrder);
        match TextIdAction::from_code(named.action).ok_or(Denial::Malformed)? {
            TextIdAction::Cancel => {
                let order = self.orders.use_up_if_denied(envelope.session, client_order_id.0, found)?;
                let cancel = CancelOrder { client_order_id, cause, order_id: OrderId(order), ..CancelOrder::default() };
                self.cancel(at, envelope, &cancel, out)
            }
            TextIdAction::Status => {
                let slot = self.find_permitted(envelope.session, found?)?;
                if self.orders.get(slot).phase.is_unknown() {
                    self.query_status(at, slot, out);
                }
                let (session, order) = (envelope.session, *self.orders.get(slot));
                self.report_extension(&order, session, client_order_id, out);
                let report = report_as(&order, ExecType::OrderStatus, client_order_id);
                out.push(Output::Report { session, report });
                Ok(())
            }
        }
    }

    /// Reports the extension of an order, if it has one, before a report to this session.
    pub(crate) fn report_extension(&self, order: &Order, session: u16, client: ClientOrderId, out: &mut Outputs) {
        if let Some(extension) = self.extensions.of_order(order.id) {
            out.push(Output::Extension { session, extension: extension.message(client) });
        }
    }
}
