//! Messages from the writer to the reader: each value arrives as it was written.

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_fix::values::{Decimal, parse_decimal, parse_utc_timestamp};
use tickpath_fix::{DataTags, FieldTable, FrameReader, MessageWriter, SOH, Tag, TimePrecision, tags};

/// A call of the writer.
#[derive(Debug, Clone)]
enum Call {
    Text(Tag, String),
    Unsigned(Tag, u64),
    Signed(Tag, i64),
    Decimal(Tag, i64, u8),
    Flag(Tag, bool),
    Byte(Tag, u8),
    Time(Tag, u64, TimePrecision),
    Data(Vec<u8>),
    Raw(Tag, u64),
}

impl Call {
    /// Makes the call, and returns the fields that a reader must find.
    fn write(&self, writer: &mut MessageWriter) -> Vec<(Tag, Vec<u8>)> {
        match self {
            Self::Text(tag, text) => {
                writer.text(*tag, text);
                if text.is_empty() { Vec::new() } else { vec![(*tag, text.replace('\x01', "?").into_bytes())] }
            }
            Self::Unsigned(tag, value) => {
                writer.unsigned(*tag, *value);
                vec![(*tag, value.to_string().into_bytes())]
            }
            Self::Signed(tag, value) => {
                writer.signed(*tag, *value);
                vec![(*tag, value.to_string().into_bytes())]
            }
            Self::Decimal(tag, units, decimals) => {
                writer.decimal(*tag, *units, *decimals);
                vec![(*tag, naive_decimal(*units, *decimals).into_bytes())]
            }
            Self::Flag(tag, value) => {
                writer.flag(*tag, *value);
                vec![(*tag, if *value { b"Y".to_vec() } else { b"N".to_vec() })]
            }
            Self::Byte(tag, value) => {
                writer.byte(*tag, *value);
                vec![(*tag, vec![if *value == SOH { b'?' } else { *value }])]
            }
            Self::Time(tag, ns, precision) => {
                let mut text = Vec::new();
                tickpath_fix::values::write_utc_timestamp(&mut text, *ns, *precision);
                writer.time(*tag, *ns, *precision);
                vec![(*tag, text)]
            }
            Self::Data(data) => {
                writer.data(tags::RAW_DATA_LENGTH, tags::RAW_DATA, data);
                let length = data.len().to_string().into_bytes();
                let fields = vec![(tags::RAW_DATA_LENGTH, length), (tags::RAW_DATA, data.clone())];
                if data.is_empty() { Vec::new() } else { fields }
            }
            Self::Raw(tag, value) => {
                writer.raw(format!("{tag}={value}\x01").as_bytes());
                vec![(*tag, value.to_string().into_bytes())]
            }
        }
    }
}

/// Returns a decimal number by the digits of its units.
fn naive_decimal(units: i64, decimals: u8) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let decimals = usize::from(decimals);
    let digits = format!("{:0width$}", units.unsigned_abs(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn call() -> impl Strategy<Value = Call> {
    // Tags that are no length of data.
    let tag = || prop_oneof![Just(1_u32), 11_u32..60, 100_u32..200, 5_000_u32..5_100, 100_000_u32..100_100];
    let precision = prop_oneof![
        Just(TimePrecision::Seconds),
        Just(TimePrecision::Millis),
        Just(TimePrecision::Micros),
        Just(TimePrecision::Nanos),
    ];
    prop_oneof![
        (tag(), "[ -~\\x01é]{0,40}").prop_map(|(tag, text)| Call::Text(tag, text)),
        (tag(), any::<u64>(), 0_u32..64).prop_map(|(tag, value, shift)| Call::Unsigned(tag, value >> shift)),
        (tag(), any::<i64>()).prop_map(|(tag, value)| Call::Signed(tag, value)),
        (tag(), any::<i64>(), 0_u8..25).prop_map(|(tag, units, decimals)| Call::Decimal(tag, units, decimals)),
        (tag(), -10_000_000_000_i64..10_000_000_000).prop_map(|(tag, units)| Call::Decimal(tag, units, 8)),
        (tag(), any::<bool>()).prop_map(|(tag, value)| Call::Flag(tag, value)),
        (tag(), any::<u8>()).prop_map(|(tag, value)| Call::Byte(tag, value)),
        (tag(), any::<u64>(), precision).prop_map(|(tag, ns, precision)| Call::Time(tag, ns, precision)),
        vec(any::<u8>(), 0..60).prop_map(Call::Data),
        (tag(), any::<u64>()).prop_map(|(tag, value)| Call::Raw(tag, value)),
    ]
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(messages in vec(vec(call(), 0..20), 1..4)) {
        let mut writer = MessageWriter::new("FIX.4.4");
        let mut reader = FrameReader::new(1 << 20);
        let mut table = FieldTable::new();
        for calls in messages {
            writer.begin(b"AE");
            let mut expected = vec![(tags::MSG_TYPE, b"AE".to_vec())];
            for call in &calls {
                expected.extend(call.write(&mut writer));
            }
            let body = writer.body().len();
            let message = writer.finish().to_vec();
            reader.extend(&message);
            let frame = reader.next().expect("a frame").expect("a right frame");
            prop_assert_eq!(frame.bytes, &message[..]);
            let read = table.read(frame.bytes, &DataTags::standard()).expect("right fields");
            let fields: Vec<(Tag, Vec<u8>)> =
                read.fields().iter().map(|field| (field.tag, read.value(field).to_vec())).collect();
            prop_assert_eq!(&fields[0], &(tags::BEGIN_STRING, b"FIX.4.4".to_vec()));
            prop_assert_eq!(&fields[1], &(tags::BODY_LENGTH, body.to_string().into_bytes()));
            prop_assert_eq!(&fields[2..fields.len() - 1], &expected[..]);
            prop_assert_eq!(fields.last().map(|field| field.0), Some(tags::CHECK_SUM));
        }
    }

    #[test]
    fn numbers_and_times_keep_their_value(units: i64, decimals in 0_u8..19, ns: u64) {
        let mut writer = MessageWriter::new("FIX.4.4");
        writer.begin(b"8");
        writer.decimal(tags::PRICE, units, decimals);
        writer.time(tags::TRANSACT_TIME, ns, TimePrecision::Nanos);
        let mut table = FieldTable::new();
        let message = table.read(writer.finish(), &DataTags::standard()).expect("right fields");
        let price = message.get(tags::PRICE).and_then(parse_decimal);
        prop_assert_eq!(price.and_then(|price: Decimal| price.units(decimals)), Some(units));
        prop_assert_eq!(message.get(tags::TRANSACT_TIME).and_then(parse_utc_timestamp), Some(ns));
    }
}

#[test]
fn a_text_cannot_add_a_field() {
    let mut writer = MessageWriter::new("FIX.4.2");
    writer.begin(b"D");
    writer.text(tags::CL_ORD_ID, "1\x0138=1000000\x0144=1");
    assert_eq!(writer.body(), b"35=D\x0111=1?38=1000000?44=1\x01");
}
