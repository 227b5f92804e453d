//! The published SBE schema matches the structs to the byte and to the code.

use std::any::type_name;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::mem::offset_of;

use roxmltree::{Document, Node};
use tickpath_market::{
    BookLevel, CancelOrder, Condition, ConditionalOrder, ExecType, ExecutionReport, ExtendedOrder, FeedCondition,
    FeedStatus, Kind, Liquidity, ManualOrderIndicator, MassCancel, MassCancelType, NewOrder, OrdStatus, OrderDenied,
    OrderExtension, OrderType, PositionEffect, ReplaceConditional, ReplaceOrder, ReportDetail, SCALE, SelfTradeMode,
    Side, StatusRequest, TextIdAction, TextIdRequest, TimeInForce, TopOfBook, Trade, TradeMode, Trigger,
    TriggerDirection, TriggerJoin, TriggerPriceType,
};

const SCHEMA: &str = include_str!("../../../../schema/tickpath.xml");

#[test]
fn the_schema_is_little_endian_sbe() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "messageSchema");
    assert_eq!(root.tag_name().namespace(), Some("http://fixprotocol.io/2016/sbe"));
    assert_eq!(root.attribute("byteOrder"), Some("littleEndian"));
    assert_eq!(root.attribute("package"), Some("tickpath"));
    assert!(number(root, "id") > 0);
    assert_eq!(number(root, "version"), 1);
    assert_eq!(type_size(root, "messageHeader"), 8);
}

#[test]
fn every_message_is_described_and_no_other() {
    let document = Document::parse(SCHEMA).unwrap();
    let described: Vec<_> = elements(document.root_element(), "message").map(|node| number(node, "id")).collect();
    let sent: Vec<_> = Kind::ALL.iter().map(|kind| usize::from(kind.code())).collect();
    assert_eq!(described, sent);
}

/// A tool that reads data of version 0 must not expect them there.
#[test]
fn later_messages_name_the_version_that_they_came_with() {
    let document = Document::parse(SCHEMA).unwrap();
    let later = elements(document.root_element(), "message").filter(|node| node.attribute("sinceVersion").is_some());
    let later: Vec<_> = later.map(|node| (node.attribute("name").unwrap(), number(node, "sinceVersion"))).collect();
    let expected = ["BookLevel", "FeedStatus", "ExtendedOrder", "TextIdRequest", "ReportDetail", "OrderExtension"]
        .map(|name| (name, 1));
    assert_eq!(later, expected);
}

#[test]
fn every_field_has_the_offset_of_the_schema() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    for &kind in Kind::ALL {
        let layout = layout(kind);
        let described = elements(root, "message").find(|node| number(*node, "id") == usize::from(kind.code()));
        let message = described.unwrap_or_else(|| panic!("{kind:?} is missing"));
        assert_eq!(message.attribute("name"), Some(layout.name));
        assert_eq!(number(message, "blockLength"), layout.size, "{kind:?}");
        assert_eq!(elements(message, "field").count(), layout.fields.len(), "{kind:?}");

        let mut end = 0;
        for (node, field) in elements(message, "field").zip(&layout.fields) {
            let context = format!("{}.{}", layout.name, field.name);
            let described_type = node.attribute("type").unwrap();
            assert_eq!(node.attribute("name"), Some(described_name(field.name)), "{context}");
            assert_eq!(number(node, "offset"), field.offset, "{context}");
            assert_eq!(type_size(root, described_type), field.size, "{context}");
            assert_eq!(field.offset, end, "{context} leaves a gap");
            check_type(root, described_type, field, &context);
            end = field.offset + field.size;
        }
        assert_eq!(end, layout.size, "{kind:?} has padding at its end");
        let ids: BTreeSet<_> = elements(message, "field").map(|node| number(node, "id")).collect();
        assert_eq!(ids.len(), layout.fields.len(), "{kind:?} has a field id twice");
    }
}

#[test]
fn every_code_is_described() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    check_codes(root, "Side", Side::ALL, Side::code, Side::from_code);
    check_codes(root, "FeedCondition", FeedCondition::ALL, FeedCondition::code, FeedCondition::from_code);
    check_codes(root, "OrderType", OrderType::ALL, OrderType::code, OrderType::from_code);
    check_codes(root, "TimeInForce", TimeInForce::ALL, TimeInForce::code, TimeInForce::from_code);
    check_codes(root, "PositionEffect", PositionEffect::ALL, PositionEffect::code, PositionEffect::from_code);
    check_codes(root, "SelfTradeMode", SelfTradeMode::ALL, SelfTradeMode::code, SelfTradeMode::from_code);
    check_codes(root, "TradeMode", TradeMode::ALL, TradeMode::code, TradeMode::from_code);
    check_codes(root, "Liquidity", Liquidity::ALL, Liquidity::code, Liquidity::from_code);
    check_codes(root, "MassCancelType", MassCancelType::ALL, MassCancelType::code, MassCancelType::from_code);
    check_codes(root, "ExecType", ExecType::ALL, ExecType::code, ExecType::from_code);
    let manual = ManualOrderIndicator::from_code;
    check_codes(root, "ManualOrderIndicator", ManualOrderIndicator::ALL, ManualOrderIndicator::code, manual);
    check_codes(root, "OrdStatus", OrdStatus::ALL, OrdStatus::code, OrdStatus::from_code);
    check_codes(root, "TriggerPriceType", TriggerPriceType::ALL, TriggerPriceType::code, TriggerPriceType::from_code);
    check_codes(root, "TriggerDirection", TriggerDirection::ALL, TriggerDirection::code, TriggerDirection::from_code);
    check_codes(root, "TextIdAction", TextIdAction::ALL, TextIdAction::code, TextIdAction::from_code);
    check_codes(root, "TriggerJoin", TriggerJoin::ALL, TriggerJoin::code, TriggerJoin::from_code);
    assert_eq!(types(root).filter(|node| node.tag_name().name() == "enum").count(), 16, "an enum that no test knows");
}

/// A denial may have no known side, and a trigger's second condition may be absent: there such codes are zero.
#[test]
fn zero_means_none_in_optional_code_fields() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    assert_eq!(number(type_named(root, "CodeOrNone"), "nullValue"), 0);
    for name in ["Side", "TriggerPriceType", "TriggerDirection"] {
        assert_eq!(type_named(root, name).attribute("encodingType"), Some("CodeOrNone"), "{name}");
    }
}

#[test]
fn a_trigger_has_the_layout_of_the_schema() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    let described = |name| {
        let mut end = 0;
        let parts = type_named(root, name).children().filter(|node| node.is_element()).map(|node| {
            let begins = end;
            end += part_size(root, node);
            (node.attribute("name").unwrap().to_owned(), begins)
        });
        parts.collect::<Vec<_>>()
    };
    let laid_out = |parts: &[(&str, usize)]| parts.iter().map(|&(name, at)| (name.to_owned(), at)).collect::<Vec<_>>();
    assert_eq!(
        described("Condition"),
        laid_out(&[
            ("price", offset_of!(Condition, price)),
            ("symbol", offset_of!(Condition, symbol)),
            ("price_type", offset_of!(Condition, price_type)),
            ("direction", offset_of!(Condition, direction)),
            ("reserved", offset_of!(Condition, reserved)),
        ])
    );
    assert_eq!(
        described("Trigger"),
        laid_out(&[
            ("first", offset_of!(Trigger, first)),
            ("second", offset_of!(Trigger, second)),
            ("join", offset_of!(Trigger, join)),
            ("reserved", offset_of!(Trigger, reserved)),
        ])
    );
}

#[test]
fn decimals_have_the_scale_of_the_crate() {
    let document = Document::parse(SCHEMA).unwrap();
    let root = document.root_element();
    for decimal in ["Price", "Quantity"] {
        let composite = type_named(root, decimal);
        let exponent = elements(composite, "type").find(|node| node.attribute("name") == Some("exponent")).unwrap();
        let exponent: i32 = exponent.text().unwrap().trim().parse().unwrap();
        assert_eq!(10_i64.pow(exponent.unsigned_abs()), SCALE, "{decimal}");
        assert!(exponent < 0, "{decimal}");
    }
}

/// Layout of a message as compiled.
struct Layout {
    name: &'static str,
    size: usize,
    fields: Vec<Field>,
}

struct Field {
    name: &'static str,
    offset: usize,
    size: usize,
    /// Last part of the type's path: `Price`, `u64`, `[u8; 3]`.
    type_name: &'static str,
}

macro_rules! layout {
    ($message:ident { $($field:ident),+ $(,)? }) => {{
        // The pattern names every field, so a new field does not compile until it is listed here.
        let $message { $($field: _),+ } = $message::default();
        Layout {
            name: stringify!($message),
            size: size_of::<$message>(),
            fields: vec![$(field(stringify!($field), offset_of!($message, $field), |m: &$message| &m.$field)),+],
        }
    }};
}

/// The match has no wildcard, so a new message does not compile until it is listed here.
fn layout(kind: Kind) -> Layout {
    match kind {
        Kind::TopOfBook => {
            layout!(TopOfBook { bid, bid_quantity, ask, ask_quantity, event_ns, symbol, wire_age_ns })
        }
        Kind::Trade => layout!(Trade { price, quantity, trade_id, event_ns, symbol, aggressor, reserved }),
        Kind::BookLevel => {
            layout!(BookLevel { price, quantity, event_ns, sequence, symbol, wire_age_ns, side, flags, reserved })
        }
        Kind::FeedStatus => {
            layout!(FeedStatus { event_ns, value, expected, found, symbol, condition, connection, reserved })
        }
        Kind::NewOrder => layout!(NewOrder {
            client_order_id,
            price,
            quantity,
            cause,
            symbol,
            account,
            side,
            order_type,
            time_in_force,
            position_effect,
            instructions,
            self_trade_mode,
            trade_mode,
            reserved,
        }),
        Kind::CancelOrder => layout!(CancelOrder { client_order_id, original, cause, symbol, account, order_id }),
        Kind::ReplaceOrder => {
            layout!(ReplaceOrder { client_order_id, original, price, quantity, cause, symbol, account, reserved })
        }
        Kind::StatusRequest => {
            layout!(StatusRequest { client_order_id, original, cause, symbol, account, fills, reserved })
        }
        Kind::MassCancel => {
            layout!(MassCancel { client_order_id, cause, symbol, account, cancel_type, reserved })
        }
        Kind::ConditionalOrder => unfolded(layout!(ConditionalOrder { order, trigger }), layout(Kind::NewOrder)),
        Kind::ReplaceConditional => {
            layout!(ReplaceConditional { client_order_id, original, price, quantity, cause, symbol, account, trigger })
        }
        Kind::ExtendedOrder => {
            let whole = layout!(ExtendedOrder { order, expire_ns, text_id, reserved_end });
            unfolded(whole, layout(Kind::NewOrder))
        }
        Kind::TextIdRequest => {
            layout!(TextIdRequest { client_order_id, cause, symbol, account, text_id, action, reserved })
        }
        Kind::ExecutionReport => layout!(ExecutionReport {
            order_id,
            client_order_id,
            venue_order_id,
            exec_id,
            venue_sequence,
            last_price,
            last_quantity,
            cumulative_quantity,
            leaves_quantity,
            price,
            venue_stamp,
            symbol,
            account,
            reason,
            venue,
            exec_type,
            status,
            side,
            manual,
        }),
        Kind::OrderDenied => {
            layout!(OrderDenied { order_id, client_order_id, limit, value, account, code, more_decimals })
        }
        Kind::ReportDetail => layout!(ReportDetail {
            order_id,
            exec_id,
            fee,
            venue_received_ns,
            venue_sent_ns,
            fee_currency,
            liquidity,
            reserved,
            text,
        }),
        Kind::OrderExtension => layout!(OrderExtension { order_id, client_order_id, expire_ns, account, text_id }),
    }
}

/// Returns the layout with the fields of the message that it begins with, as the schema names those.
fn unfolded(message: Layout, first: Layout) -> Layout {
    let begin = &message.fields[0];
    assert_eq!((begin.offset, begin.size, begin.type_name), (0, first.size, first.name), "{}", message.name);
    Layout { fields: first.fields.into_iter().chain(message.fields.into_iter().skip(1)).collect(), ..message }
}

/// Generated Java calls the end of a message its `limit`, so no field can have that name in the schema.
fn described_name(name: &str) -> &str {
    if name == "limit" { "risk_limit" } else { name }
}

fn field<M, F>(name: &'static str, offset: usize, _of: impl Fn(&M) -> &F) -> Field {
    let path = type_name::<F>();
    Field { name, offset, size: size_of::<F>(), type_name: path.rsplit("::").next().unwrap_or(path) }
}

/// Types of the schema whose byte is no code.
const BARE_BYTES: [&str; 4] = ["Flag", "BookFlags", "ConnectionNumber", "OrderInstructions"];

/// Checks a field's type: a newtype has its own name in the schema, and a code is an enum there.
fn check_type(root: Node<'_, '_>, described: &str, field: &Field, context: &str) {
    if field.name == "reserved" {
        assert!(described.starts_with("Reserved"), "{context}");
    } else if field.type_name == "u8" && !BARE_BYTES.contains(&described) {
        assert_eq!(type_named(root, described).tag_name().name(), "enum", "{context}");
    } else if field.type_name.starts_with(char::is_uppercase) {
        assert_eq!(described, field.type_name, "{context}");
    }
}

fn check_codes<T: Copy + Debug>(
    root: Node<'_, '_>,
    name: &str,
    all: &[T],
    code: fn(T) -> u8,
    from_code: fn(u8) -> Option<T>,
) {
    let values = elements(type_named(root, name), "validValue");
    let described: Vec<(String, u8)> = values
        .map(|node| (node.attribute("name").unwrap().to_owned(), node.text().unwrap().trim().parse::<u8>().unwrap()))
        .collect();
    let known: Vec<_> = all.iter().map(|&value| (format!("{value:?}"), code(value))).collect();
    assert_eq!(described, known, "{name}");
    for byte in 0..=u8::MAX {
        let is_described = described.iter().any(|(_, code)| *code == byte);
        assert_eq!(from_code(byte).is_some(), is_described, "{name} {byte}");
    }
    // The null value must not be a code; a bare type's null is its greatest value.
    let none = match type_named(root, name).attribute("encodingType").unwrap() {
        "uint8" => u8::MAX,
        named => number(type_named(root, named), "nullValue") as u8,
    };
    assert!(from_code(none).is_none(), "{name}: none is {none}, which is a code");
}

fn type_size(root: Node<'_, '_>, name: &str) -> usize {
    let node = type_named(root, name);
    match node.tag_name().name() {
        "type" => simple_size(node),
        "enum" => match node.attribute("encodingType").unwrap() {
            "uint8" => 1,
            named => type_size(root, named),
        },
        "composite" => node.children().filter(|part| part.is_element()).map(|part| part_size(root, part)).sum(),
        other => panic!("{name} is a <{other}>; the schema uses type, enum and composite only"),
    }
}

/// Returns the size of a composite's part: a simple type, or a type defined elsewhere.
fn part_size(root: Node<'_, '_>, part: Node<'_, '_>) -> usize {
    match part.tag_name().name() {
        "ref" => type_size(root, part.attribute("type").unwrap()),
        _ => simple_size(part),
    }
}

fn simple_size(node: Node<'_, '_>) -> usize {
    if node.attribute("presence") == Some("constant") {
        return 0;
    }
    let length: usize = node.attribute("length").map_or(1, |length| length.parse().unwrap());
    length * primitive_size(node.attribute("primitiveType").unwrap())
}

fn primitive_size(name: &str) -> usize {
    match name {
        "int8" | "uint8" => 1,
        "int16" | "uint16" => 2,
        "uint32" => 4,
        "int64" | "uint64" => 8,
        other => panic!("the schema uses the primitive type {other}, which no message has"),
    }
}

fn type_named<'a, 'i>(root: Node<'a, 'i>, name: &str) -> Node<'a, 'i> {
    let mut found = types(root).filter(|node| node.attribute("name") == Some(name));
    let node = found.next().unwrap_or_else(|| panic!("the schema has no type {name}"));
    assert!(found.next().is_none(), "the schema has the type {name} twice");
    node
}

fn types<'a, 'i>(root: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(root, "types").flat_map(|types| types.children()).filter(|node| node.is_element())
}

fn elements<'a, 'i>(parent: Node<'a, 'i>, tag: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    parent.children().filter(move |node| node.is_element() && node.tag_name().name() == tag)
}

fn number(node: Node<'_, '_>, attribute: &str) -> usize {
    let text = node.attribute(attribute).unwrap_or_else(|| panic!("{node:?} has no {attribute}"));
    text.parse().unwrap_or_else(|_| panic!("{node:?} has a strange {attribute}"))
}
