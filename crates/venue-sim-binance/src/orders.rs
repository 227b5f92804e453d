//! Requests that change orders: placement, test, cancel and amendment.

use tickpath_market::{OrderType, Price, Quantity, TimeInForce};
use tickpath_venue_sim_web::{DeskRefusal, NewDeskOrder, OrderName};

use crate::codes::{ApiError, Code};
use crate::commissions;
use crate::filters;
use crate::json::array;
use crate::ledger::{OrderKind, OrderStatus, PreventedMatch, SpotOrder, open_or};
use crate::new_order::RequestedOrder;
use crate::order_views;
use crate::params::RequestParams;
use crate::self_trade::{EnteringOrder, SelfTradePlan};
use crate::spot::{CallContext, SpotMarket};

/// Names of the parameters that name an order: its id, and its client id.
pub(crate) const ORDER_NAMES: [&str; 2] = ["orderId", "origClientOrderId"];

/// An order as a request names it.
pub(crate) struct OrderReference {
    instrument: usize,
    id: Option<u64>,
    client_id: Option<String>,
}

/// A cancel.
pub(crate) struct RequestedCancel {
    order: OrderReference,
    /// Status that the order must have.
    only: Option<OrderStatus>,
    /// Client id that the order gets by the cancel.
    new_name: String,
}

impl OrderReference {
    /// Reads the symbol and the parameters of these names.
    pub(crate) fn read(spot: &SpotMarket, params: &mut RequestParams, names: [&str; 2]) -> Result<Self, ApiError> {
        let symbol = params.required("symbol")?;
        let instrument = spot.find(&symbol)?;
        let [id_name, client_id_name] = names;
        let (id, client_id) = (params.number(id_name)?, params.client_id(client_id_name)?);
        if id.is_none() && client_id.is_none() {
            return Err(Code::OneOfTwo.about(&[client_id_name, id_name]));
        }
        Ok(Self { instrument, id, client_id })
    }

    /// Returns the order, open or ended.
    pub(crate) fn find<'a>(&self, spot: &'a SpotMarket, account: usize) -> Option<&'a SpotOrder> {
        spot.ledger.find(account, self.instrument, self.id, self.client_id.as_deref())
    }
}

impl RequestedCancel {
    /// Reads a cancel, with the names of the parameters for the order and of the one for its new client id.
    pub(crate) fn read(
        spot: &mut SpotMarket,
        params: &mut RequestParams,
        names: [&str; 2],
        new_name: &str,
    ) -> Result<Self, ApiError> {
        let order = OrderReference::read(spot, params, names)?;
        let only = match params.optional("cancelRestrictions")?.as_deref() {
            None => None,
            Some("ONLY_NEW") => Some(OrderStatus::New),
            Some("ONLY_PARTIALLY_FILLED") => Some(OrderStatus::PartiallyFilled),
            Some(_) => return Err(Code::CancelRestrictions.error()),
        };
        let new_name = match params.client_id(new_name)? {
            Some(name) => name,
            None => spot.make_name(),
        };
        Ok(Self { order, only, new_name })
    }
}

/// Answers `order.place`.
pub(crate) fn place(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let order = RequestedOrder::read(spot, params)?;
    params.finish()?;
    spot.limits.count_order(context.now_ns, account)?;
    enter(spot, context, account, &order)
}

/// Answers `order.test`.
pub(crate) fn test_order(
    spot: &mut SpotMarket,
    _: CallContext,
    _: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let wants_rates = params.flag("computeCommissionRates")? == Some(true);
    RequestedOrder::read(spot, params)?;
    params.finish()?;
    Ok(if wants_rates { commissions::for_order(spot.fees) } else { "{}".to_owned() })
}

/// Answers `order.cancel`.
pub(crate) fn cancel(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let cancel = RequestedCancel::read(spot, params, ORDER_NAMES, "newClientOrderId")?;
    params.finish()?;
    withdraw(spot, context, account, &cancel)
}

/// Answers `openOrders.cancelAll`.
pub(crate) fn cancel_all(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let symbol = params.required("symbol")?;
    let instrument = spot.find(&symbol)?;
    params.finish()?;
    let open = spot.ledger.open(account).filter(|record| record.instrument == instrument);
    let open: Vec<u64> = open.map(|record| record.id).collect();
    if open.is_empty() {
        return Err(Code::UnknownOrder.error());
    }
    let mut canceled = Vec::new();
    for id in open {
        let new_name = spot.make_name();
        let order = OrderReference { instrument, id: Some(id), client_id: None };
        canceled.push(withdraw(spot, context, account, &RequestedCancel { order, only: None, new_name })?);
    }
    Ok(array(canceled))
}

/// Answers `order.amend.keepPriority`.
pub(crate) fn amend(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    params: &mut RequestParams,
) -> Result<String, ApiError> {
    let order = OrderReference::read(spot, params, ORDER_NAMES)?;
    let quantity = Quantity(params.required_decimal("newQty")?);
    let new_name = params.client_id("newClientOrderId")?;
    params.finish()?;
    let record = open_or(order.find(spot, account), Code::NoSuchOrder)?;
    let (id, former) = (record.id, record.terms.client_id.clone());
    if quantity > record.quantity {
        return Err(Code::QuantityIncrease.error());
    }
    if quantity == record.quantity || quantity <= record.filled {
        return Err(Code::NoChange.error());
    }
    let instrument = spot.instrument(order.instrument);
    filters::check_quantity(instrument, quantity)?;
    filters::check_notional(instrument, record.terms.price, quantity)?;
    let new_name = match new_name {
        Some(name) if name != former && spot.ledger.is_name_in_use(account, &name) => {
            return Err(Code::DuplicateOrder.error());
        }
        Some(name) => name,
        None => spot.make_name(),
    };
    spot.ledger.amends(id, new_name);
    if let Err(refusal) = spot.desk.amend(context.now_ns, account, OrderName::Exchange(id), None, Some(quantity)) {
        spot.ledger.keeps(id);
        return Err(code_of(refusal).error());
    }
    spot.absorb(context.now_ns);
    let record = known(spot, id)?;
    Ok(order_views::amended(record, &spot.instrument(order.instrument).name, &former, context.unit))
}

/// Enters an order that was counted. Returns the answer to its placement.
pub(crate) fn enter(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    order: &RequestedOrder,
) -> Result<String, ApiError> {
    if spot.ledger.is_name_in_use(account, &order.terms.client_id) {
        return Err(Code::DuplicateOrder.error());
    }
    let plan = self_trade_plan(spot, account, order);
    for &maker in &plan.ending_makers {
        let prevented = PreventedMatch { id: spot.number_prevented(), counter_order: None };
        spot.ledger.prevents(maker, prevented);
        // The order is open, so that the desk cancels it.
        let _ = spot.desk.cancel(context.now_ns, account, OrderName::Exchange(maker));
    }
    let placed = place_at_desk(spot, context.now_ns, account, order, &plan);
    if let Ok(id) = placed {
        let prevented = plan.stop.map(|(maker, _)| maker);
        let prevented =
            prevented.map(|maker| PreventedMatch { id: spot.number_prevented(), counter_order: Some(maker) });
        spot.ledger.expect(id, order.terms.clone(), prevented);
    }
    spot.absorb(context.now_ns);
    let record = known(spot, placed.map_err(|refusal| code_of(refusal).error())?)?;
    Ok(order_views::placed(record, &spot.instrument(order.instrument).name, order.form, context.unit))
}

/// Carries out a cancel. Returns its answer.
pub(crate) fn withdraw(
    spot: &mut SpotMarket,
    context: CallContext,
    account: usize,
    cancel: &RequestedCancel,
) -> Result<String, ApiError> {
    let record = open_or(cancel.order.find(spot, account), Code::UnknownOrder)?;
    if cancel.only.is_some_and(|status| status != record.status) {
        return Err(Code::CancelRestricted.error());
    }
    let id = record.id;
    spot.ledger.cancels(id, cancel.new_name.clone());
    if let Err(refusal) = spot.desk.cancel(context.now_ns, account, OrderName::Exchange(id)) {
        spot.ledger.keeps(id);
        return Err(code_of(refusal).error());
    }
    spot.absorb(context.now_ns);
    let record = known(spot, id)?;
    let symbol = &spot.instrument(cancel.order.instrument).name;
    Ok(order_views::canceled(record, symbol, &cancel.new_name, context.unit))
}

/// Returns the plan of self-trade prevention. An order that must not trade at all is left to the desk.
fn self_trade_plan(spot: &SpotMarket, account: usize, order: &RequestedOrder) -> SelfTradePlan {
    if order.terms.kind == OrderKind::LimitMaker {
        return SelfTradePlan::default();
    }
    let limit = (order.terms.kind == OrderKind::Limit).then_some(order.terms.price);
    let RequestedOrder { instrument, side, quantity, .. } = *order;
    let entering = EnteringOrder { account, instrument, side, limit, quantity };
    SelfTradePlan::of(spot, &entering, order.terms.self_trade)
}

/// Places an order at the desk: up to the price at which self-trade prevention stops it.
fn place_at_desk(
    spot: &mut SpotMarket,
    now_ns: u64,
    account: usize,
    order: &RequestedOrder,
    plan: &SelfTradePlan,
) -> Result<u64, DeskRefusal> {
    let (order_type, price) = match (plan.stop, order.terms.kind) {
        (Some((_, before)), _) => (OrderType::Limit, before),
        (None, OrderKind::Market) => (OrderType::Market, Price::ZERO),
        (None, OrderKind::Limit | OrderKind::LimitMaker) => (OrderType::Limit, order.terms.price),
    };
    let time_in_force = match order.desk_lifetime() {
        TimeInForce::FillOrKill => TimeInForce::FillOrKill,
        _ if plan.stop.is_some() => TimeInForce::ImmediateOrCancel,
        lifetime => lifetime,
    };
    let instrument = spot.instrument(order.instrument).name.clone();
    let mut entering = NewDeskOrder {
        account,
        instrument: &instrument,
        client_id: &order.terms.client_id,
        side: order.side,
        order_type,
        time_in_force,
        post_only: order.terms.kind == OrderKind::LimitMaker,
        reduce_only: false,
        price,
        quantity: order.quantity,
    };
    let placed = spot.desk.place(now_ns, &entering);
    if placed != Err(DeskRefusal::DuplicateClientId) {
        return placed;
    }
    // An amendment has freed the name, which the desk does not know.
    entering.client_id = "";
    spot.desk.place(now_ns, &entering)
}

fn known(spot: &SpotMarket, id: u64) -> Result<&SpotOrder, ApiError> {
    spot.ledger.record(id).ok_or_else(|| Code::NoSuchOrder.error())
}

/// Returns the exchange's error for a refusal of the desk.
fn code_of(refusal: DeskRefusal) -> Code {
    match refusal {
        DeskRefusal::UnknownInstrument => Code::Symbol,
        DeskRefusal::Suspended => Code::MarketClosed,
        DeskRefusal::DuplicateClientId => Code::DuplicateOrder,
        DeskRefusal::UnknownOrder | DeskRefusal::OrderEnded => Code::UnknownOrder,
        DeskRefusal::InsufficientBalance => Code::InsufficientBalance,
        DeskRefusal::Tick => Code::PriceFilter,
        DeskRefusal::Lot | DeskRefusal::Minimum => Code::LotSize,
        DeskRefusal::PostOnlyWouldTrade => Code::WouldTake,
        DeskRefusal::ReduceOnly | DeskRefusal::FokUnfillable | DeskRefusal::Other(_) => Code::BadOrder,
    }
}
