// Reads messages on standard input, each behind SBE's header, by the generated classes, and writes them anew by the same.
// Says a line for each: its name, its fields, and the bytes of what was encoded.

#include <cstdint>
#include <cstring>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tickpath/BookLevel.h"
#include "tickpath/CancelOrder.h"
#include "tickpath/ConditionalOrder.h"
#include "tickpath/ExecutionReport.h"
#include "tickpath/ExtendedOrder.h"
#include "tickpath/FeedStatus.h"
#include "tickpath/MassCancel.h"
#include "tickpath/MessageHeader.h"
#include "tickpath/NewOrder.h"
#include "tickpath/OrderDenied.h"
#include "tickpath/OrderExtension.h"
#include "tickpath/ReplaceConditional.h"
#include "tickpath/ReplaceOrder.h"
#include "tickpath/ReportDetail.h"
#include "tickpath/StatusRequest.h"
#include "tickpath/TextIdRequest.h"
#include "tickpath/TopOfBook.h"
#include "tickpath/Trade.h"

using namespace tickpath;

namespace {

std::ostringstream said;

std::ostream &field(const std::string &name) { return said << ' ' << name << '='; }

std::string hex(const char *bytes, std::size_t length) {
    static const char DIGITS[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < length; i++) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        text += DIGITS[byte >> 4];
        text += DIGITS[byte & 15];
    }
    return text;
}

template <class Number> Number number(const std::string &name, Number value) {
    field(name) << value;
    return value;
}

std::uint8_t byte(const std::string &name, std::uint8_t value) {
    field(name) << static_cast<int>(value);
    return value;
}

template <class Enum> typename Enum::Value code(const std::string &name, typename Enum::Value value) {
    field(name) << (value == Enum::NULL_VALUE ? "none" : Enum::c_str(value));
    return value;
}

template <class Decimal> void decimal(const std::string &name, Decimal &from, Decimal &to) {
    field(name) << from.mantissa() << 'e' << static_cast<int>(from.exponent());
    to.mantissa(from.mantissa());
}

void int128(const std::string &name, Int128 &from, Int128 &to) {
    field(name) << from.high() << ':' << from.low();
    to.low(from.low()).high(from.high());
}

template <class Owner> void text_id(Owner &from, Owner &to) {
    field("text_id") << hex(from.text_id(), Owner::text_idLength());
    to.putText_id(from.text_id());
}

template <class Owner> void reserved(const std::string &name, Owner &from, Owner &to) {
    field(name) << hex(from.reserved(), Owner::reservedLength());
    to.putReserved(from.reserved());
}

void condition(const std::string &name, Condition &from, Condition &to) {
    decimal(name + ".price", from.price(), to.price());
    to.symbol(number(name + ".symbol", from.symbol()));
    to.price_type(code<TriggerPriceType>(name + ".price_type", from.price_type()));
    to.direction(code<TriggerDirection>(name + ".direction", from.direction()));
    reserved(name, from, to);
}

void trigger(Trigger &from, Trigger &to) {
    condition("first", from.first(), to.first());
    condition("second", from.second(), to.second());
    to.join(code<TriggerJoin>("join", from.join()));
    reserved("trigger", from, to);
}

void copy(TopOfBook &from, TopOfBook &to) {
    decimal("bid", from.bid(), to.bid());
    decimal("bid_quantity", from.bid_quantity(), to.bid_quantity());
    decimal("ask", from.ask(), to.ask());
    decimal("ask_quantity", from.ask_quantity(), to.ask_quantity());
    to.event_ns(number("event_ns", from.event_ns()));
    to.symbol(number("symbol", from.symbol()));
    to.wire_age_ns(number("wire_age_ns", from.wire_age_ns()));
}

void copy(Trade &from, Trade &to) {
    decimal("price", from.price(), to.price());
    decimal("quantity", from.quantity(), to.quantity());
    to.trade_id(number("trade_id", from.trade_id()));
    to.event_ns(number("event_ns", from.event_ns()));
    to.symbol(number("symbol", from.symbol()));
    to.aggressor(code<Side>("aggressor", from.aggressor()));
    reserved("reserved", from, to);
}

void copy(BookLevel &from, BookLevel &to) {
    decimal("price", from.price(), to.price());
    decimal("quantity", from.quantity(), to.quantity());
    to.event_ns(number("event_ns", from.event_ns()));
    to.sequence(number("sequence", from.sequence()));
    to.symbol(number("symbol", from.symbol()));
    to.wire_age_ns(number("wire_age_ns", from.wire_age_ns()));
    to.side(code<Side>("side", from.side()));
    field("flags") << unsigned(from.flags());
    to.flags(from.flags());
    reserved("reserved", from, to);
}

void copy(FeedStatus &from, FeedStatus &to) {
    to.event_ns(number("event_ns", from.event_ns()));
    to.value(number("value", from.value()));
    to.expected(number("expected", from.expected()));
    to.found(number("found", from.found()));
    to.symbol(number("symbol", from.symbol()));
    to.condition(code<FeedCondition>("condition", from.condition()));
    field("connection") << unsigned(from.connection());
    to.connection(from.connection());
    reserved("reserved", from, to);
}

// What a new order has in common with one that waits for its trigger.
template <class Order> void copy_order(Order &from, Order &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    decimal("price", from.price(), to.price());
    decimal("quantity", from.quantity(), to.quantity());
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    to.side(code<Side>("side", from.side()));
    to.order_type(code<OrderType>("order_type", from.order_type()));
    to.time_in_force(code<TimeInForce>("time_in_force", from.time_in_force()));
    to.position_effect(code<PositionEffect>("position_effect", from.position_effect()));
    to.instructions(byte("instructions", from.instructions()));
    to.self_trade_mode(code<SelfTradeMode>("self_trade_mode", from.self_trade_mode()));
    to.trade_mode(code<TradeMode>("trade_mode", from.trade_mode()));
    to.reserved(byte("reserved", from.reserved()));
}

void copy(NewOrder &from, NewOrder &to) { copy_order(from, to); }

void copy(CancelOrder &from, CancelOrder &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.original(number("original", from.original()));
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    to.order_id(number("order_id", from.order_id()));
}

void copy(ReplaceOrder &from, ReplaceOrder &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.original(number("original", from.original()));
    decimal("price", from.price(), to.price());
    decimal("quantity", from.quantity(), to.quantity());
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    reserved("reserved", from, to);
}

void copy(StatusRequest &from, StatusRequest &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.original(number("original", from.original()));
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    field("fills") << unsigned(from.fills());
    to.fills(from.fills());
    reserved("reserved", from, to);
}

void copy(MassCancel &from, MassCancel &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    to.cancel_type(code<MassCancelType>("cancel_type", from.cancel_type()));
    reserved("reserved", from, to);
}

void copy(ConditionalOrder &from, ConditionalOrder &to) {
    copy_order(from, to);
    trigger(from.trigger(), to.trigger());
}

void copy(ReplaceConditional &from, ReplaceConditional &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.original(number("original", from.original()));
    decimal("price", from.price(), to.price());
    decimal("quantity", from.quantity(), to.quantity());
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    trigger(from.trigger(), to.trigger());
}

void copy(ExtendedOrder &from, ExtendedOrder &to) {
    copy_order(from, to);
    to.expire_ns(number("expire_ns", from.expire_ns()));
    text_id(from, to);
    field("reserved_end") << hex(from.reserved_end(), ExtendedOrder::reserved_endLength());
    to.putReserved_end(from.reserved_end());
}

void copy(TextIdRequest &from, TextIdRequest &to) {
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.cause(number("cause", from.cause()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    text_id(from, to);
    to.action(code<TextIdAction>("action", from.action()));
    reserved("reserved", from, to);
}

void copy(ExecutionReport &from, ExecutionReport &to) {
    to.order_id(number("order_id", from.order_id()));
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.venue_order_id(number("venue_order_id", from.venue_order_id()));
    to.exec_id(number("exec_id", from.exec_id()));
    to.venue_sequence(number("venue_sequence", from.venue_sequence()));
    decimal("last_price", from.last_price(), to.last_price());
    decimal("last_quantity", from.last_quantity(), to.last_quantity());
    decimal("cumulative_quantity", from.cumulative_quantity(), to.cumulative_quantity());
    decimal("leaves_quantity", from.leaves_quantity(), to.leaves_quantity());
    decimal("price", from.price(), to.price());
    to.venue_stamp(number("venue_stamp", from.venue_stamp()));
    to.symbol(number("symbol", from.symbol()));
    to.account(number("account", from.account()));
    to.reason(number("reason", from.reason()));
    to.venue(number("venue", from.venue()));
    to.exec_type(code<ExecType>("exec_type", from.exec_type()));
    to.status(code<OrdStatus>("status", from.status()));
    to.side(code<Side>("side", from.side()));
    to.manual(code<ManualOrderIndicator>("manual", from.manual()));
}

void copy(OrderDenied &from, OrderDenied &to) {
    to.order_id(number("order_id", from.order_id()));
    to.client_order_id(number("client_order_id", from.client_order_id()));
    int128("risk_limit", from.risk_limit(), to.risk_limit());
    int128("value", from.value(), to.value());
    to.account(number("account", from.account()));
    to.code(number("code", from.code()));
    to.more_decimals(number("more_decimals", from.more_decimals()));
}

void copy(ReportDetail &from, ReportDetail &to) {
    to.order_id(number("order_id", from.order_id()));
    to.exec_id(number("exec_id", from.exec_id()));
    int128("fee", from.fee(), to.fee());
    to.venue_received_ns(number("venue_received_ns", from.venue_received_ns()));
    to.venue_sent_ns(number("venue_sent_ns", from.venue_sent_ns()));
    field("fee_currency") << hex(from.fee_currency(), ReportDetail::fee_currencyLength());
    to.putFee_currency(from.fee_currency());
    to.liquidity(code<Liquidity>("liquidity", from.liquidity()));
    reserved("reserved", from, to);
    field("text") << hex(from.text(), ReportDetail::textLength());
    to.putText(from.text());
}

void copy(OrderExtension &from, OrderExtension &to) {
    to.order_id(number("order_id", from.order_id()));
    to.client_order_id(number("client_order_id", from.client_order_id()));
    to.expire_ns(number("expire_ns", from.expire_ns()));
    to.account(number("account", from.account()));
    text_id(from, to);
}

// A message behind its header, of which `length` bytes are left.
template <class Message> void carry(const char *name, char *message, std::uint64_t length) {
    said << name;
    MessageHeader header(message, length);
    Message from, to;
    from.wrapForDecode(message, MessageHeader::encodedLength(), header.blockLength(), header.version(), length);
    // More than a message takes. What the encoder leaves alone is seen.
    std::vector<char> out(256, '\xaa');
    to.wrapAndApplyHeader(out.data(), 0, out.size());
    copy(from, to);
    said << ' ' << hex(out.data(), MessageHeader::encodedLength() + to.encodedLength()) << '\n';
}

void carry(std::uint16_t id, char *message, std::uint64_t length) {
    switch (id) {
    case TopOfBook::SBE_TEMPLATE_ID: return carry<TopOfBook>("TopOfBook", message, length);
    case Trade::SBE_TEMPLATE_ID: return carry<Trade>("Trade", message, length);
    case BookLevel::SBE_TEMPLATE_ID: return carry<BookLevel>("BookLevel", message, length);
    case FeedStatus::SBE_TEMPLATE_ID: return carry<FeedStatus>("FeedStatus", message, length);
    case NewOrder::SBE_TEMPLATE_ID: return carry<NewOrder>("NewOrder", message, length);
    case CancelOrder::SBE_TEMPLATE_ID: return carry<CancelOrder>("CancelOrder", message, length);
    case ReplaceOrder::SBE_TEMPLATE_ID: return carry<ReplaceOrder>("ReplaceOrder", message, length);
    case StatusRequest::SBE_TEMPLATE_ID: return carry<StatusRequest>("StatusRequest", message, length);
    case MassCancel::SBE_TEMPLATE_ID: return carry<MassCancel>("MassCancel", message, length);
    case ConditionalOrder::SBE_TEMPLATE_ID: return carry<ConditionalOrder>("ConditionalOrder", message, length);
    case ReplaceConditional::SBE_TEMPLATE_ID: return carry<ReplaceConditional>("ReplaceConditional", message, length);
    case ExtendedOrder::SBE_TEMPLATE_ID: return carry<ExtendedOrder>("ExtendedOrder", message, length);
    case TextIdRequest::SBE_TEMPLATE_ID: return carry<TextIdRequest>("TextIdRequest", message, length);
    case ExecutionReport::SBE_TEMPLATE_ID: return carry<ExecutionReport>("ExecutionReport", message, length);
    case OrderDenied::SBE_TEMPLATE_ID: return carry<OrderDenied>("OrderDenied", message, length);
    case ReportDetail::SBE_TEMPLATE_ID: return carry<ReportDetail>("ReportDetail", message, length);
    case OrderExtension::SBE_TEMPLATE_ID: return carry<OrderExtension>("OrderExtension", message, length);
    default: throw std::runtime_error("no message has the id " + std::to_string(id));
    }
}

} // namespace

int main() {
    std::string in(std::istreambuf_iterator<char>(std::cin), {});
    for (std::size_t at = 0; at < in.size();) {
        MessageHeader header(&in[at], in.size() - at);
        carry(header.templateId(), &in[at], in.size() - at);
        at += MessageHeader::encodedLength() + header.blockLength();
    }
    std::cout << said.str() << std::flush;
}
