//! Fields of a frame: against a parser that splits at the delimiters one by one, and each fault by its place.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tickpath_fix::{DataTags, FieldFault, FieldTable, SOH, Tag, ValueFault, tags};

use crate::frames::{fix, frame};

/// Returns the tags and values of a frame; `None` for any fault.
fn naive_fields(frame: &[u8]) -> Option<Vec<(Tag, Vec<u8>)>> {
    let (data_tags, mut rest) = (DataTags::standard(), frame);
    let mut fields: Vec<(Tag, Vec<u8>)> = Vec::new();
    while !rest.is_empty() {
        let equals = rest.iter().position(|&byte| byte == b'=')?;
        let text = std::str::from_utf8(&rest[..equals]).ok()?;
        let tag = text.parse::<Tag>().ok().filter(|tag| tag.to_string() == text && (1..=999_999_999).contains(tag))?;
        let value = &rest[equals + 1..];
        let data_length = fields.last().filter(|(before, _)| data_tags.data_of(*before) == Some(tag));
        let length = match data_length {
            Some((_, digits)) if !digits.iter().all(u8::is_ascii_digit) => return None,
            Some((_, digits)) => String::from_utf8_lossy(digits).parse().ok()?,
            None => value.iter().position(|&byte| byte == SOH)?,
        };
        if length == 0 || value.get(length) != Some(&SOH) {
            return None;
        }
        fields.push((tag, value[..length].to_vec()));
        rest = &value[length + 1..];
    }
    Some(fields)
}

/// Reads a frame into owned fields.
fn read(frame: &[u8]) -> Result<Vec<(Tag, Vec<u8>)>, FieldFault> {
    let mut table = FieldTable::new();
    let message = table.read(frame, &DataTags::standard())?;
    Ok(message.fields().iter().map(|field| (field.tag, message.value(field).to_vec())).collect())
}

/// A field, with its delimiter: most are right.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let value = || vec(any::<u8>().prop_filter("no delimiter", |&byte| byte != SOH), 1..90);
    let plain =
        (1_u32..3_000, value()).prop_map(|(tag, value)| [format!("{tag}=").as_bytes(), &value, b"\x01"].concat());
    let data =
        (select(vec![(95, 96), (354, 355), (93, 89)]), vec(any::<u8>(), 0..90)).prop_map(|((length, data), value)| {
            let head = format!("{length}={}\x01{data}=", value.len());
            [head.as_bytes(), &value, b"\x01"].concat()
        });
    let odd = select(vec![
        "95=3|96=abcd|",
        "95=99999999999999999999|96=a|",
        "95=x|96=a|",
        "95=003|96=a|b|",
        "95=2|58=ab|",
        "95=2|",
        "=x|",
        "0=x|",
        "-1=x|",
        "01=x|",
        "1a=x|",
        "58=|",
        "58|",
        "|",
        "58=a",
        "999999999=x|",
        "1000000000=x|",
        "4294967297=x|",
    ]);
    prop_oneof![12 => plain, 4 => data, 1 => odd.prop_map(fix)]
}

proptest! {
    #[test]
    fn fields_are_those_of_a_naive_parser(fields in vec(field(), 0..20)) {
        let bytes = fields.concat();
        prop_assert_eq!(read(&bytes).ok(), naive_fields(&bytes));
    }

    #[test]
    fn a_changed_byte_changes_both_parsers(
        fields in vec(field(), 1..20),
        at: prop::sample::Index,
        byte in prop_oneof![Just(SOH), Just(b'='), Just(b'0'), any::<u8>()],
    ) {
        let mut bytes = fields.concat();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        prop_assert_eq!(read(&bytes).ok(), naive_fields(&bytes));
    }

    #[test]
    fn a_table_keeps_nothing_of_the_message_before(first in vec(field(), 0..20), second in vec(field(), 0..20)) {
        let (first, second) = (first.concat(), second.concat());
        let mut table = FieldTable::new();
        let _ = table.read(&first, &DataTags::standard());
        let again = table.read(&second, &DataTags::standard()).map(|message| message.fields().to_vec());
        let mut fresh = FieldTable::new();
        let expected = fresh.read(&second, &DataTags::standard()).map(|message| message.fields().to_vec());
        prop_assert_eq!(again, expected);
    }
}

#[test]
fn each_fault_names_its_place_and_leaves_the_header_readable() {
    let place = |text: &str| fix(text).len() as u32;
    for (field, fault, is_garbled, tag) in [
        ("58", FieldFault::NoTag { at: 9 }, true, ""),
        ("=x", FieldFault::NoTag { at: 9 }, true, ""),
        ("", FieldFault::NoTag { at: 9 }, true, ""),
        ("4garbled9=TW", FieldFault::TagText { at: 9, len: 9 }, true, "4garbled9"),
        ("-=x", FieldFault::TagText { at: 9, len: 1 }, true, "-"),
        ("0=HI", FieldFault::TagNumber { at: 9, len: 1 }, false, "0"),
        ("-1=HI", FieldFault::TagNumber { at: 9, len: 2 }, false, "-1"),
        ("058=HI", FieldFault::TagNumber { at: 9, len: 3 }, false, "058"),
        ("1000000000=HI", FieldFault::TagNumber { at: 9, len: 10 }, false, "1000000000"),
        ("56=", FieldFault::NoValue { at: 9, tag: 56 }, false, "56"),
        ("95=5|96=abcd", FieldFault::DataLength { at: 9, tag: 95 }, false, "95"),
        ("56=|0=HI", FieldFault::TagNumber { at: place("35=0|1=a|56=|"), len: 1 }, false, "0"),
        ("0=HI|56=", FieldFault::TagNumber { at: 9, len: 1 }, false, "0"),
    ] {
        let bytes = fix(&format!("35=0|1=a|{field}|34=7|"));
        let mut table = FieldTable::new();
        let read = table.read(&bytes, &DataTags::standard()).map(|message| message.fields().len());
        assert_eq!(read, Err(fault), "{field}");
        assert_eq!(fault.is_garbled(), is_garbled, "{field}");
        assert_eq!(fault.tag_text(&bytes), tag.as_bytes(), "{field}");
        let message = table.message(&bytes);
        assert_eq!((message.msg_type(), message.sequence_number()), (&b"0"[..], Some(7)), "{field}");
    }
    assert_eq!(read(&fix("35=0|34=7")), Err(FieldFault::NoEnd { at: 5 }));
}

#[test]
fn data_may_contain_delimiters_and_a_check_sum() {
    let bytes = frame("FIX.4.4", &fix("35=B|34=3|95=17|96=x|10=000|y|354=1||58=z|"));
    let mut table = FieldTable::new();
    let mut data_tags = DataTags::standard();
    let message = table.read(&bytes, &data_tags).unwrap();
    assert_eq!(message.get(tags::RAW_DATA), Some(&*fix("x|10=000|y|354=1|")));
    assert_eq!(message.get(tags::TEXT), Some(&b"z"[..]));
    assert_eq!(message.position(tags::TEXT), Some(6));
    assert_eq!(message.bytes(), bytes);

    let own = fix("35=B|9001=3|9002=a|b|");
    data_tags.add(9_001, 9_002);
    let message = table.read(&own, &data_tags).unwrap();
    assert_eq!(message.get(9_002), Some(&*fix("a|b")));
}

#[test]
fn values_are_read_by_their_tag() {
    let bytes = fix("8=FIX.4.4|9=0|35=A|34=002|43=Y|97=N|108=x|58=first|58=second|");
    let mut table = FieldTable::new();
    let message = table.read(&bytes, &DataTags::standard()).unwrap();
    assert_eq!(message.msg_type(), b"A");
    assert_eq!(message.sequence_number(), Some(2));
    assert_eq!(message.unsigned(tags::MSG_SEQ_NUM), Some(Ok(2)));
    assert_eq!(message.unsigned(tags::HEART_BT_INT), Some(Err(ValueFault::Unsigned { tag: 108 })));
    assert_eq!(message.unsigned(tags::TEST_REQ_ID), None);
    assert_eq!([43, 97, 141].map(|tag| message.has_flag(tag)), [true, false, false]);
    assert_eq!(message.get(tags::TEXT), Some(&b"first"[..]));
    assert_eq!(message.fields().len(), 9);
}
