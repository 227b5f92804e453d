import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.agrona.concurrent.UnsafeBuffer;
import tickpath.*;

/**
 * Reads messages on standard input, each behind SBE's header, by the generated decoders, and writes them anew by the
 * generated encoders. Says a line for each: its name, its fields, and the bytes of what was encoded.
 */
public final class RoundTrip {
    private static final int HEADER = MessageHeaderDecoder.ENCODED_LENGTH;

    private final MessageHeaderDecoder header = new MessageHeaderDecoder();
    private final MessageHeaderEncoder newHeader = new MessageHeaderEncoder();
    private final UnsafeBuffer in;
    /** More than a message takes. What an encoder leaves alone is seen. */
    private final UnsafeBuffer out = new UnsafeBuffer(new byte[256]);
    private final StringBuilder said = new StringBuilder();

    private RoundTrip(byte[] messages) {
        in = new UnsafeBuffer(messages);
    }

    public static void main(String[] arguments) throws IOException {
        RoundTrip trip = new RoundTrip(System.in.readAllBytes());
        for (int at = 0; at < trip.in.capacity(); ) {
            at += trip.carry(at);
        }
        PrintStream lines = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        lines.print(trip.said);
        lines.flush();
    }

    /** One message; how long it is. */
    private int carry(int at) {
        out.setMemory(0, out.capacity(), (byte) 0xaa);
        header.wrap(in, at);
        int length = HEADER + copy(at);
        byte[] bytes = new byte[length];
        out.getBytes(0, bytes);
        said.append(' ').append(HexFormat.of().formatHex(bytes)).append('\n');
        return HEADER + header.blockLength();
    }

    /** How long the new block is. */
    private int copy(int at) {
        return switch (header.templateId()) {
            case TopOfBookDecoder.TEMPLATE_ID -> copy(
                new TopOfBookDecoder().wrapAndApplyHeader(in, at, header),
                new TopOfBookEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case TradeDecoder.TEMPLATE_ID -> copy(
                new TradeDecoder().wrapAndApplyHeader(in, at, header),
                new TradeEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case BookLevelDecoder.TEMPLATE_ID -> copy(
                new BookLevelDecoder().wrapAndApplyHeader(in, at, header),
                new BookLevelEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case FeedStatusDecoder.TEMPLATE_ID -> copy(
                new FeedStatusDecoder().wrapAndApplyHeader(in, at, header),
                new FeedStatusEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case NewOrderDecoder.TEMPLATE_ID -> copy(
                new NewOrderDecoder().wrapAndApplyHeader(in, at, header),
                new NewOrderEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case CancelOrderDecoder.TEMPLATE_ID -> copy(
                new CancelOrderDecoder().wrapAndApplyHeader(in, at, header),
                new CancelOrderEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ReplaceOrderDecoder.TEMPLATE_ID -> copy(
                new ReplaceOrderDecoder().wrapAndApplyHeader(in, at, header),
                new ReplaceOrderEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case StatusRequestDecoder.TEMPLATE_ID -> copy(
                new StatusRequestDecoder().wrapAndApplyHeader(in, at, header),
                new StatusRequestEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case MassCancelDecoder.TEMPLATE_ID -> copy(
                new MassCancelDecoder().wrapAndApplyHeader(in, at, header),
                new MassCancelEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ConditionalOrderDecoder.TEMPLATE_ID -> copy(
                new ConditionalOrderDecoder().wrapAndApplyHeader(in, at, header),
                new ConditionalOrderEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ReplaceConditionalDecoder.TEMPLATE_ID -> copy(
                new ReplaceConditionalDecoder().wrapAndApplyHeader(in, at, header),
                new ReplaceConditionalEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ExtendedOrderDecoder.TEMPLATE_ID -> copy(
                new ExtendedOrderDecoder().wrapAndApplyHeader(in, at, header),
                new ExtendedOrderEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case TextIdRequestDecoder.TEMPLATE_ID -> copy(
                new TextIdRequestDecoder().wrapAndApplyHeader(in, at, header),
                new TextIdRequestEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ExecutionReportDecoder.TEMPLATE_ID -> copy(
                new ExecutionReportDecoder().wrapAndApplyHeader(in, at, header),
                new ExecutionReportEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case OrderDeniedDecoder.TEMPLATE_ID -> copy(
                new OrderDeniedDecoder().wrapAndApplyHeader(in, at, header),
                new OrderDeniedEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case ReportDetailDecoder.TEMPLATE_ID -> copy(
                new ReportDetailDecoder().wrapAndApplyHeader(in, at, header),
                new ReportDetailEncoder().wrapAndApplyHeader(out, 0, newHeader));
            case OrderExtensionDecoder.TEMPLATE_ID -> copy(
                new OrderExtensionDecoder().wrapAndApplyHeader(in, at, header),
                new OrderExtensionEncoder().wrapAndApplyHeader(out, 0, newHeader));
            default -> throw new IllegalArgumentException("no message has the id " + header.templateId());
        };
    }

    private int copy(TopOfBookDecoder from, TopOfBookEncoder to) {
        said.append("TopOfBook");
        decimal("bid", from.bid(), to.bid());
        decimal("bid_quantity", from.bid_quantity(), to.bid_quantity());
        decimal("ask", from.ask(), to.ask());
        decimal("ask_quantity", from.ask_quantity(), to.ask_quantity());
        to.event_ns(u64("event_ns", from.event_ns()));
        to.symbol(number("symbol", from.symbol()));
        to.wire_age_ns(number("wire_age_ns", from.wire_age_ns()));
        return to.encodedLength();
    }

    private int copy(TradeDecoder from, TradeEncoder to) {
        said.append("Trade");
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.trade_id(u64("trade_id", from.trade_id()));
        to.event_ns(u64("event_ns", from.event_ns()));
        to.symbol(number("symbol", from.symbol()));
        to.aggressor(code("aggressor", from.aggressor()));
        bytes("reserved", TradeDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(BookLevelDecoder from, BookLevelEncoder to) {
        said.append("BookLevel");
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.event_ns(u64("event_ns", from.event_ns()));
        to.sequence(u64("sequence", from.sequence()));
        to.symbol(number("symbol", from.symbol()));
        to.wire_age_ns(number("wire_age_ns", from.wire_age_ns()));
        to.side(code("side", from.side()));
        said.append(" flags=").append(from.flags());
        to.flags(from.flags());
        bytes("reserved", BookLevelDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(FeedStatusDecoder from, FeedStatusEncoder to) {
        said.append("FeedStatus");
        to.event_ns(u64("event_ns", from.event_ns()));
        to.value(number("value", from.value()));
        to.expected(u64("expected", from.expected()));
        to.found(u64("found", from.found()));
        to.symbol(number("symbol", from.symbol()));
        to.condition(code("condition", from.condition()));
        said.append(" connection=").append(from.connection());
        to.connection(from.connection());
        bytes("reserved", FeedStatusDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(NewOrderDecoder from, NewOrderEncoder to) {
        said.append("NewOrder");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.side(code("side", from.side()));
        to.order_type(code("order_type", from.order_type()));
        to.time_in_force(code("time_in_force", from.time_in_force()));
        to.position_effect(code("position_effect", from.position_effect()));
        to.instructions((short) number("instructions", from.instructions()));
        to.self_trade_mode(code("self_trade_mode", from.self_trade_mode()));
        to.trade_mode(code("trade_mode", from.trade_mode()));
        to.reserved((short) number("reserved", from.reserved()));
        return to.encodedLength();
    }

    private int copy(CancelOrderDecoder from, CancelOrderEncoder to) {
        said.append("CancelOrder");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.original(u64("original", from.original()));
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.order_id(u64("order_id", from.order_id()));
        return to.encodedLength();
    }

    private int copy(ReplaceOrderDecoder from, ReplaceOrderEncoder to) {
        said.append("ReplaceOrder");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.original(u64("original", from.original()));
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        bytes("reserved", ReplaceOrderDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(StatusRequestDecoder from, StatusRequestEncoder to) {
        said.append("StatusRequest");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.original(u64("original", from.original()));
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        said.append(" fills=").append(from.fills());
        to.fills(from.fills());
        bytes("reserved", StatusRequestDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(MassCancelDecoder from, MassCancelEncoder to) {
        said.append("MassCancel");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.cancel_type(code("cancel_type", from.cancel_type()));
        bytes("reserved", MassCancelDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(ConditionalOrderDecoder from, ConditionalOrderEncoder to) {
        said.append("ConditionalOrder");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.side(code("side", from.side()));
        to.order_type(code("order_type", from.order_type()));
        to.time_in_force(code("time_in_force", from.time_in_force()));
        to.position_effect(code("position_effect", from.position_effect()));
        to.instructions((short) number("instructions", from.instructions()));
        to.self_trade_mode(code("self_trade_mode", from.self_trade_mode()));
        to.trade_mode(code("trade_mode", from.trade_mode()));
        to.reserved((short) number("reserved", from.reserved()));
        trigger(from.trigger(), to.trigger());
        return to.encodedLength();
    }

    private int copy(ReplaceConditionalDecoder from, ReplaceConditionalEncoder to) {
        said.append("ReplaceConditional");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.original(u64("original", from.original()));
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        trigger(from.trigger(), to.trigger());
        return to.encodedLength();
    }

    private int copy(ExecutionReportDecoder from, ExecutionReportEncoder to) {
        said.append("ExecutionReport");
        to.order_id(u64("order_id", from.order_id()));
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.venue_order_id(u64("venue_order_id", from.venue_order_id()));
        to.exec_id(u64("exec_id", from.exec_id()));
        to.venue_sequence(u64("venue_sequence", from.venue_sequence()));
        decimal("last_price", from.last_price(), to.last_price());
        decimal("last_quantity", from.last_quantity(), to.last_quantity());
        decimal("cumulative_quantity", from.cumulative_quantity(), to.cumulative_quantity());
        decimal("leaves_quantity", from.leaves_quantity(), to.leaves_quantity());
        decimal("price", from.price(), to.price());
        to.venue_stamp(u64("venue_stamp", from.venue_stamp()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.reason((int) number("reason", from.reason()));
        to.venue((int) number("venue", from.venue()));
        to.exec_type(code("exec_type", from.exec_type()));
        to.status(code("status", from.status()));
        to.side(code("side", from.side()));
        to.manual(code("manual", from.manual()));
        return to.encodedLength();
    }

    private int copy(OrderDeniedDecoder from, OrderDeniedEncoder to) {
        said.append("OrderDenied");
        to.order_id(u64("order_id", from.order_id()));
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        int128("risk_limit", from.risk_limit(), to.risk_limit());
        int128("value", from.value(), to.value());
        to.account(number("account", from.account()));
        to.code((int) number("code", from.code()));
        to.more_decimals((short) number("more_decimals", from.more_decimals()));
        return to.encodedLength();
    }

    private int copy(ReportDetailDecoder from, ReportDetailEncoder to) {
        said.append("ReportDetail");
        to.order_id(u64("order_id", from.order_id()));
        to.exec_id(u64("exec_id", from.exec_id()));
        int128("fee", from.fee(), to.fee());
        to.venue_received_ns(u64("venue_received_ns", from.venue_received_ns()));
        to.venue_sent_ns(u64("venue_sent_ns", from.venue_sent_ns()));
        bytes("fee_currency", ReportDetailDecoder.fee_currencyLength(), from::getFee_currency, to::putFee_currency);
        to.liquidity(code("liquidity", from.liquidity()));
        bytes("reserved", ReportDetailDecoder.reservedLength(), from::getReserved, to::putReserved);
        bytes("text", ReportDetailDecoder.textLength(), from::getText, to::putText);
        return to.encodedLength();
    }

    private int copy(ExtendedOrderDecoder from, ExtendedOrderEncoder to) {
        said.append("ExtendedOrder");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        decimal("price", from.price(), to.price());
        decimal("quantity", from.quantity(), to.quantity());
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        to.side(code("side", from.side()));
        to.order_type(code("order_type", from.order_type()));
        to.time_in_force(code("time_in_force", from.time_in_force()));
        to.position_effect(code("position_effect", from.position_effect()));
        to.instructions((short) number("instructions", from.instructions()));
        to.self_trade_mode(code("self_trade_mode", from.self_trade_mode()));
        to.trade_mode(code("trade_mode", from.trade_mode()));
        to.reserved((short) number("reserved", from.reserved()));
        to.expire_ns(u64("expire_ns", from.expire_ns()));
        bytes("text_id", ExtendedOrderDecoder.text_idLength(), from::getText_id, to::putText_id);
        bytes("reserved_end", ExtendedOrderDecoder.reserved_endLength(), from::getReserved_end, to::putReserved_end);
        return to.encodedLength();
    }

    private int copy(TextIdRequestDecoder from, TextIdRequestEncoder to) {
        said.append("TextIdRequest");
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.cause(u64("cause", from.cause()));
        to.symbol(number("symbol", from.symbol()));
        to.account(number("account", from.account()));
        bytes("text_id", TextIdRequestDecoder.text_idLength(), from::getText_id, to::putText_id);
        to.action(code("action", from.action()));
        bytes("reserved", TextIdRequestDecoder.reservedLength(), from::getReserved, to::putReserved);
        return to.encodedLength();
    }

    private int copy(OrderExtensionDecoder from, OrderExtensionEncoder to) {
        said.append("OrderExtension");
        to.order_id(u64("order_id", from.order_id()));
        to.client_order_id(u64("client_order_id", from.client_order_id()));
        to.expire_ns(u64("expire_ns", from.expire_ns()));
        to.account(number("account", from.account()));
        bytes("text_id", OrderExtensionDecoder.text_idLength(), from::getText_id, to::putText_id);
        return to.encodedLength();
    }

    private void trigger(TriggerDecoder from, TriggerEncoder to) {
        condition("first", from.first(), to.first());
        condition("second", from.second(), to.second());
        to.join(code("join", from.join()));
        bytes("trigger", TriggerDecoder.reservedLength(), from::getReserved, to::putReserved);
    }

    private void condition(String name, ConditionDecoder from, ConditionEncoder to) {
        decimal(name + ".price", from.price(), to.price());
        to.symbol(number(name + ".symbol", from.symbol()));
        to.price_type(code(name + ".price_type", from.price_type()));
        to.direction(code(name + ".direction", from.direction()));
        bytes(name, ConditionDecoder.reservedLength(), from::getReserved, to::putReserved);
    }

    private void decimal(String name, PriceDecoder from, PriceEncoder to) {
        say(name, from.mantissa() + "e" + from.exponent());
        to.mantissa(from.mantissa());
    }

    private void decimal(String name, QuantityDecoder from, QuantityEncoder to) {
        say(name, from.mantissa() + "e" + from.exponent());
        to.mantissa(from.mantissa());
    }

    private void int128(String name, Int128Decoder from, Int128Encoder to) {
        say(name, from.high() + ":" + Long.toUnsignedString(from.low()));
        to.low(from.low()).high(from.high());
    }

    /** Java has no such type: what is larger than its `long` is negative there. */
    private long u64(String name, long value) {
        say(name, Long.toUnsignedString(value));
        return value;
    }

    private long number(String name, long value) {
        say(name, Long.toString(value));
        return value;
    }

    private <E extends Enum<E>> E code(String name, E value) {
        say(name, value.name().equals("NULL_VAL") ? "none" : value.name());
        return value;
    }

    private void bytes(String name, int length, Get get, Put put) {
        byte[] bytes = new byte[length];
        get.get(bytes, 0, length);
        say(name, HexFormat.of().formatHex(bytes));
        put.put(bytes, 0, length);
    }

    private interface Get {
        int get(byte[] bytes, int offset, int length);
    }

    private interface Put {
        Object put(byte[] bytes, int offset, int length);
    }

    private void say(String name, String value) {
        said.append(' ').append(name).append('=').append(value);
    }
}
