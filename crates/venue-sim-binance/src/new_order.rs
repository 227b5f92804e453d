//! A new order as a request names it: its parameters, which depend on its type, and the filters.

use tickpath_market::{Notional, Price, Quantity, SCALE, Side, TimeInForce};

use crate::codes::{ApiError, Code};
use crate::filters::{self, SELF_TRADE_MODES};
use crate::ledger::{OrderKind, RequestedTerms};
use crate::order_views::ResponseForm;
use crate::params::RequestParams;
use crate::spot::SpotMarket;

/// Least value of a strategy's type; the exchange keeps those below.
const LEAST_STRATEGY_TYPE: u64 = 1_000_000;

/// A new order.
pub(crate) struct RequestedOrder {
    /// Index of the instrument.
    pub(crate) instrument: usize,
    pub(crate) side: Side,
    pub(crate) terms: RequestedTerms,
    /// Quantity of the base asset.
    pub(crate) quantity: Quantity,
    pub(crate) form: ResponseForm,
}

impl RequestedOrder {
    /// Reads the parameters of a new order, and checks them by the symbol's filters.
    pub(crate) fn read(spot: &mut SpotMarket, params: &mut RequestParams) -> Result<Self, ApiError> {
        let symbol = params.required("symbol")?;
        let instrument = spot.find(&symbol)?;
        let side = params.side()?;
        let kind = read_kind(params)?;
        for (parameter, name) in
            [("stopPrice", "Stop loss"), ("trailingDelta", "Trailing stop"), ("icebergQty", "Iceberg")]
        {
            if params.has(parameter) {
                return Err(Code::KindNotSupported.about(&[name]));
            }
        }
        let time_in_force = read_time_in_force(params, kind)?;
        let price = read_price(params, kind)?;
        let quote_quantity = read_quote_quantity(params, kind)?;
        let mut order = Self {
            instrument,
            side,
            quantity: Quantity::ZERO,
            form: read_form(params, kind)?,
            terms: RequestedTerms {
                client_id: String::new(),
                kind,
                time_in_force,
                price,
                quote_quantity,
                self_trade: read_self_trade(params)?,
                strategy_id: params.number("strategyId")?,
                strategy_type: params.number("strategyType")?,
            },
        };
        if order.terms.strategy_type.is_some_and(|kind| kind < LEAST_STRATEGY_TYPE) {
            return Err(Code::StrategyType.error());
        }
        order.quantity = match quote_quantity {
            Quantity::ZERO => Quantity(params.required_decimal("quantity")?),
            amount => quantity_for(spot, &order, amount)?,
        };
        order.terms.client_id = match params.client_id("newClientOrderId")? {
            Some(id) => id,
            None => spot.make_name(),
        };
        order.check_filters(spot)?;
        Ok(order)
    }

    /// Returns the time in force as the desk knows it.
    pub(crate) fn desk_lifetime(&self) -> TimeInForce {
        match self.terms.time_in_force {
            "FOK" => TimeInForce::FillOrKill,
            "IOC" => TimeInForce::ImmediateOrCancel,
            _ if self.terms.kind == OrderKind::Market => TimeInForce::ImmediateOrCancel,
            _ => TimeInForce::GoodTillCancel,
        }
    }

    fn check_filters(&self, spot: &SpotMarket) -> Result<(), ApiError> {
        let instrument = spot.instrument(self.instrument);
        if self.terms.kind != OrderKind::Market {
            filters::check_price(instrument, self.terms.price)?;
        }
        filters::check_quantity(instrument, self.quantity)?;
        let price = match self.terms.kind {
            OrderKind::Limit | OrderKind::LimitMaker => self.terms.price,
            OrderKind::Market => spot.tapes[self.instrument].last,
        };
        filters::check_notional(instrument, price, self.quantity)
    }
}

fn read_kind(params: &mut RequestParams) -> Result<OrderKind, ApiError> {
    let unsupported = |name| Err(Code::KindNotSupported.about(&[name]));
    match params.required("type")?.as_str() {
        "LIMIT" => Ok(OrderKind::Limit),
        "LIMIT_MAKER" => Ok(OrderKind::LimitMaker),
        "MARKET" => Ok(OrderKind::Market),
        "STOP_LOSS" => unsupported("Stop loss"),
        "STOP_LOSS_LIMIT" => unsupported("Stop loss limit"),
        "TAKE_PROFIT" => unsupported("Take profit"),
        "TAKE_PROFIT_LIMIT" => unsupported("Take profit limit"),
        _ => Err(Code::OrderType.error()),
    }
}

fn read_time_in_force(params: &mut RequestParams, kind: OrderKind) -> Result<&'static str, ApiError> {
    if kind != OrderKind::Limit {
        params.refuse("timeInForce")?;
        return Ok("GTC");
    }
    match params.required("timeInForce")?.as_str() {
        "GTC" => Ok("GTC"),
        "IOC" => Ok("IOC"),
        "FOK" => Ok("FOK"),
        _ => Err(Code::TimeInForce.error()),
    }
}

fn read_price(params: &mut RequestParams, kind: OrderKind) -> Result<Price, ApiError> {
    match kind {
        OrderKind::Limit | OrderKind::LimitMaker => params.required_decimal("price").map(Price),
        OrderKind::Market => params.refuse("price").map(|()| Price::ZERO),
    }
}

/// Reads the amount of quote currency of a market order; zero if the order names its quantity.
fn read_quote_quantity(params: &mut RequestParams, kind: OrderKind) -> Result<Quantity, ApiError> {
    if kind != OrderKind::Market || params.has("quantity") {
        params.refuse("quoteOrderQty")?;
        return Ok(Quantity::ZERO);
    }
    match params.decimal("quoteOrderQty")? {
        None => Err(Code::OneOfTwo.about(&["quantity", "quoteOrderQty"])),
        Some(0) => Err(Code::Mandatory.about(&["quoteOrderQty"])),
        Some(amount) => Ok(Quantity(amount)),
    }
}

fn read_form(params: &mut RequestParams, kind: OrderKind) -> Result<ResponseForm, ApiError> {
    match params.optional("newOrderRespType")?.as_deref() {
        None if kind == OrderKind::LimitMaker => Ok(ResponseForm::Ack),
        None | Some("FULL") => Ok(ResponseForm::Full),
        Some("RESULT") => Ok(ResponseForm::Result),
        Some("ACK") => Ok(ResponseForm::Ack),
        Some(_) => Err(Code::BadValue.about(&["newOrderRespType"])),
    }
}

fn read_self_trade(params: &mut RequestParams) -> Result<&'static str, ApiError> {
    let Some(mode) = params.optional("selfTradePreventionMode")? else { return Ok(SELF_TRADE_MODES[0]) };
    let known = SELF_TRADE_MODES.into_iter().find(|known| *known == mode);
    known.ok_or_else(|| Code::SelfTradeMode.error())
}

/// Returns the quantity that an amount of quote currency buys or sells at the prices of the book, in whole lots.
fn quantity_for(spot: &SpotMarket, order: &RequestedOrder, amount: Quantity) -> Result<Quantity, ApiError> {
    let mut left = Notional(i128::from(amount.0) * i128::from(SCALE));
    let mut bought = 0;
    for (price, quantity) in spot.desk.book(order.instrument, order.side.opposite()) {
        let affordable = left.0 / i128::from(price.0.max(1));
        let taken = affordable.min(quantity.0.into());
        bought += taken;
        left.0 -= taken * i128::from(price.0);
        if taken == affordable {
            break;
        }
    }
    let bought = Quantity(i64::try_from(bought).unwrap_or(i64::MAX));
    match filters::whole_lots(spot.instrument(order.instrument), bought) {
        Quantity::ZERO => Err(Code::NoLiquidity.error()),
        whole => Ok(whole),
    }
}
