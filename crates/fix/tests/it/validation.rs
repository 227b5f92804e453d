//! Validation: the reason and the tag of a message's fault, and which fault is reported of several.

use proptest::prelude::*;
use tickpath_fix::{
    Dictionary, FieldFault, FieldTable, SessionRejectReason, ValidationRules, ValidationScratch, validate,
};

use super::dictionary::{stock, venue};

const TIME: &str = "20261128-09:00:00";

type Verdict = Result<(), (SessionRejectReason, Option<u32>)>;

/// Returns the verdict on a message, whose fields behind BodyLength end with `|` here.
fn verdict(dictionary: &Dictionary, rules: ValidationRules, fields: &str) -> Verdict {
    let text = format!("8={}|9=100|{fields}10=000|", dictionary.begin_string());
    let frame = text.replace("TIME", TIME).replace('|', "\x01").into_bytes();
    let mut table = FieldTable::new();
    if let Err(fault) = table.read(&frame, dictionary.data_tags()) {
        assert!(matches!(fault, FieldFault::NoValue { .. }), "{fault} in '{text}'");
    }
    let mut scratch = ValidationScratch::new();
    let result = validate(dictionary, rules, &table.message(&frame), &mut scratch);
    assert_eq!(validate(dictionary, rules, &table.message(&frame), &mut scratch), result, "a used scratch is as good");
    result.map_err(|rejection| {
        assert_eq!(rejection.text, rejection.reason.text());
        (rejection.reason, rejection.tag)
    })
}

/// Checks messages, each with its verdict: a reason code and a tag, or nothing.
#[track_caller]
fn check(dictionary: &Dictionary, rules: ValidationRules, cases: &[(&str, Option<(u8, u32)>)]) {
    for (fields, expected) in cases {
        let found = verdict(dictionary, rules, fields).err().map(|(reason, tag)| (reason.code(), tag.unwrap_or(0)));
        assert_eq!(found, *expected, "{fields}");
    }
}

/// Checks bodies of orders at the venue, each with its verdict.
#[track_caller]
fn check_orders(rules: ValidationRules, cases: &[(&str, Option<(u8, u32)>)]) {
    let order = |body: &str| format!("35=D|34=2|49=A|52=TIME|56=B|{body}");
    let cases: Vec<_> = cases.iter().map(|(body, expected)| (order(body), *expected)).collect();
    let cases: Vec<_> = cases.iter().map(|(fields, expected)| (fields.as_str(), *expected)).collect();
    check(&venue(), rules, &cases);
}

#[test]
fn a_message_has_its_required_fields() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=x|54=1|60=TIME|", None),
            ("60=TIME|54=1|11=x|", None),
            ("54=1|60=TIME|", Some((1, 11))),
            ("60=TIME|", Some((1, 11))),
            ("11=x|60=TIME|", Some((1, 54))),
        ],
    );
    check(
        &venue(),
        ValidationRules::STRICT,
        &[
            ("35=0|49=A|52=TIME|34=2|56=B|", None),
            ("35=0|34=2|49=A|52=TIME|", Some((1, 56))),
            ("35=0|34=2|52=TIME|", Some((1, 49))),
            // The header comes first, even if a lower tag of the body is missing.
            ("35=D|34=2|49=A|52=TIME|54=1|60=TIME|", Some((1, 56))),
            ("35=XST|34=2|49=A|52=TIME|56=B|58=x|9001=5|", None),
            ("35=XST|34=2|49=A|52=TIME|56=B|58=x|9002=5|", Some((1, 9_001))),
        ],
    );
}

#[test]
fn a_message_has_a_type_of_the_dictionary() {
    check(
        &venue(),
        ValidationRules::STRICT,
        &[
            ("35=*|34=2|49=A|52=TIME|56=B|", Some((11, 0))),
            ("35=DD|34=2|49=A|52=TIME|56=B|", Some((11, 0))),
            ("35=|34=2|49=A|52=TIME|56=B|", Some((4, 35))),
            ("34=2|49=A|52=TIME|56=B|", Some((1, 35))),
        ],
    );
}

#[test]
fn tags_are_defined_and_not_repeated() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=x|54=1|60=TIME|999=HI|", Some((0, 999))),
            ("11=x|54=1|60=TIME|9999=HI|", Some((0, 9_999))),
            ("11=x|54=1|60=TIME|112=HI|", Some((2, 112))),
            ("11=x|54=1|60=TIME|9001=1|", Some((2, 9_001))),
            ("11=x|54=1|60=TIME|79=a|", Some((2, 79))),
            ("11=x|54=1|60=TIME|25000=5|", None),
            ("11=x|54=1|54=1|60=TIME|", Some((13, 54))),
            ("11=x|54=1|60=TIME|38=1|54=2|", Some((13, 54))),
            // The value of the first one is checked before.
            ("11=x|54=9|60=TIME|54=1|", Some((5, 54))),
        ],
    );
}

#[test]
fn values_have_the_type_and_are_allowed() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=|54=1|60=TIME|", Some((4, 11))),
            ("11=x|54=1|60=TIME|38=+200.00|", Some((6, 38))),
            ("11=x|54=1|60=TIME|38=002000.00|", None),
            ("11=x|54=1|60=20261128|", Some((6, 60))),
            ("11=x|54=12|60=TIME|", Some((6, 54))),
            ("11=x|54=9|60=TIME|", Some((5, 54))),
            ("11=x|54=1|60=TIME|18=1 G|", None),
            ("11=x|54=1|60=TIME|18=1 H|", Some((5, 18))),
            // The type comes first, even where the field does not belong.
            ("11=x|54=1|60=TIME|9001=x|", Some((6, 9_001))),
        ],
    );
}

#[test]
fn header_body_and_trailer_follow_each_other() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=x|43=N|54=1|60=TIME|", Some((14, 43))),
            ("11=x|54=1|60=TIME|93=1|89=x|", None),
            ("11=x|54=1|93=1|89=x|60=TIME|", Some((14, 60))),
            ("11=x|54=1|93=1|89=x|43=N|60=TIME|", Some((14, 43))),
            // An unknown tag is a field of the body.
            ("999=HI|43=N|11=x|54=1|60=TIME|", Some((14, 43))),
        ],
    );
    check(
        &venue(),
        ValidationRules::STRICT,
        &[
            ("35=D|11=x|54=1|60=TIME|34=2|49=A|52=TIME|56=B|", Some((14, 34))),
            ("35=D|54=1|34=2|49=A|52=TIME|56=B|60=TIME|11=x|", Some((14, 34))),
        ],
    );
}

#[test]
fn groups_have_the_instances_that_they_count() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=x|78=2|79=a|80=1|79=b|80=2|54=1|60=TIME|", None),
            ("11=x|78=0|54=1|60=TIME|", None),
            ("11=x|78=1|79=a|80=1|79=b|80=2|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=3|79=a|80=1|79=b|80=2|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=0|79=a|80=1|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=1|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=18446744073709551615|79=a|80=1|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=-1|54=1|60=TIME|", Some((6, 78))),
            ("11=x|78=x|79=a|80=1|54=1|60=TIME|", Some((6, 78))),
            ("11=x|78=1|79=a|80=1|78=1|79=b|80=2|54=1|60=TIME|", Some((13, 78))),
            ("11=x|453=1|448=P|452=3|802=2|523=s|803=1|523=t|54=1|60=TIME|", None),
            ("11=x|453=1|448=P|452=3|802=1|523=s|803=1|523=t|54=1|60=TIME|", Some((16, 802))),
            ("11=x|453=2|448=P|452=3|802=2|523=s|803=1|523=t|54=1|60=TIME|", Some((16, 453))),
            ("627=1|628=h|629=TIME|11=x|54=1|60=TIME|", None),
            ("627=2|628=h|629=TIME|11=x|54=1|60=TIME|", Some((16, 627))),
        ],
    );
}

#[test]
fn members_of_groups_are_in_order_and_complete() {
    check_orders(
        ValidationRules::STRICT,
        &[
            ("11=x|78=2|80=1|79=a|80=2|79=b|54=1|60=TIME|", Some((15, 80))),
            ("11=x|453=1|448=P|802=1|523=s|452=3|54=1|60=TIME|", Some((15, 452))),
            ("11=x|453=1|802=1|523=s|54=1|60=TIME|", Some((15, 802))),
            ("11=x|453=1|448=P|452=3|452=3|54=1|60=TIME|", Some((15, 452))),
            ("11=x|78=2|79=a|79=b|80=1|54=1|60=TIME|", Some((1, 80))),
            ("11=x|78=2|79=a|80=1|79=b|54=1|60=TIME|", Some((1, 80))),
            ("11=x|453=1|448=P|802=1|803=1|54=1|60=TIME|", Some((15, 803))),
            ("11=x|78=1|79=a|80=+1|54=1|60=TIME|", Some((6, 80))),
            ("11=x|78=1|79=|80=1|54=1|60=TIME|", Some((4, 79))),
        ],
    );
}

#[test]
fn the_first_fault_in_the_order_of_checks_is_reported() {
    check_orders(
        ValidationRules::STRICT,
        &[
            // Structure, then required fields, then the fields one by one.
            ("11=x|54=9|43=N|", Some((14, 43))),
            ("11=x|54=9|999=HI|", Some((1, 60))),
            ("11=x|78=1|79=a|54=9|60=TIME|999=HI|", Some((1, 80))),
            // Fields of the header first, then by their tags.
            ("43=X|11=|54=9|60=TIME|", Some((6, 43))),
            ("54=9|60=bad|11=|", Some((4, 11))),
            ("11=x|60=bad|54=9|", Some((5, 54))),
            // The count of a group, then its members.
            ("11=x|78=3|79=|80=+1|79=b|80=2|54=1|60=TIME|", Some((16, 78))),
            ("11=x|78=1|79=a|80=+1|54=1|60=bad|", Some((6, 60))),
        ],
    );
}

#[test]
fn rules_switch_checks_off() {
    let lenient = ValidationRules::LENIENT;
    check_orders(
        lenient,
        &[
            ("11=|54=9|60=TIME|18=H|999=HI|9999=HI|112=HI|58=|", None),
            ("54=1|43=N|60=TIME|93=1|89=x|11=x|", None),
            ("11=x|78=2|80=1|80=2|54=1|60=TIME|", None),
            ("11=x|453=1|448=P|802=1|523=s|452=3|54=1|60=TIME|", None),
            ("11=x|78=2|79=a|999=HI|80=1|79=b|80=2|54=1|60=TIME|", None),
            ("11=x|54=1|60=bad|", Some((6, 60))),
            ("11=x|54=1|", Some((1, 60))),
            ("11=x|54=1|54=1|60=TIME|", Some((13, 54))),
            ("11=x|78=1|79=a|80=1|79=b|80=2|54=1|60=TIME|", Some((16, 78))),
            ("11=x|54=1|60=TIME|112=HI|9001=x|", Some((6, 9_001))),
        ],
    );
    check_orders(
        ValidationRules { user_defined: false, ..ValidationRules::STRICT },
        &[
            ("11=x|54=1|60=TIME|9999=HI|9001=1|", None),
            ("11=x|54=1|60=TIME|9999=|", Some((4, 9_999))),
            ("11=x|54=1|60=TIME|4999=HI|", Some((0, 4_999))),
            // An allowed tag of unknown meaning may stand anywhere.
            ("9999=HI|43=N|11=x|54=1|60=TIME|", None),
        ],
    );
    check_orders(
        ValidationRules { undefined_tags: false, ..ValidationRules::STRICT },
        &[("11=x|54=1|60=TIME|999=HI|112=HI|", None), ("11=x|54=1|60=TIME|5000=HI|", Some((0, 5_000)))],
    );
}

#[test]
fn data_may_contain_the_separator() {
    check_orders(
        ValidationRules::STRICT,
        &[("11=x|54=1|60=TIME|5001=5|5002=a|54=|", None), ("11=x|54=1|60=TIME|93=6|89=10=11||", None)],
    );
}

#[test]
fn one_scratch_serves_several_dictionaries() {
    let (small, large) = (venue(), stock("FIX44.xml"));
    let mut scratch = ValidationScratch::new();
    for dictionary in [&small, &large, &small] {
        let frame = b"8=FIX.4.4\x019=1\x0135=0\x0134=2\x0149=A\x0152=20261128-09:00:00\x0156=B\x0110=000\x01";
        let mut table = FieldTable::new();
        let message = table.read(frame, dictionary.data_tags()).expect("the frame can be read");
        assert_eq!(validate(dictionary, ValidationRules::STRICT, &message, &mut scratch), Ok(()));
    }
}

#[test]
fn stock_dictionaries_give_the_reasons_of_the_session_definitions() {
    for file in ["FIX42.xml", "FIX44.xml"] {
        let counted = "35=D|34=2|49=A|52=TIME|56=B|11=x|21=1|40=1|54=1|55=Z|60=TIME|386=3|336=AM|336=PM|";
        check(
            &stock(file),
            ValidationRules::STRICT,
            &[
                ("35=0|34=2|49=A|52=TIME|56=B|999=HI|", Some((0, 999))),
                ("35=0|34=2|49=A|52=TIME|56=B|55=Z|", Some((2, 55))),
                ("35=D|34=2|49=A|52=TIME|56=B|11=x|21=4|40=1|54=1|55=Z|60=TIME|", Some((5, 21))),
                ("35=D|34=2|49=A|52=TIME|56=B|11=x|21=1|40=1|54=1|55=Z|60=TIME|167=FUT|", None),
                ("35=D|34=2|49=A|52=TIME|56=B|11=x|21=1|40=1|54=1|55=Z|60=TIME|126=20261128|", Some((6, 126))),
                ("35=D|34=2|49=A|52=TIME|56=B|145=|11=x|21=1|40=w|54=1|55=Z|60=TIME|", Some((4, 145))),
                (counted, Some((16, 386))),
            ],
        );
    }
    // FIX 4.4 has the symbol in a component that is not required.
    let without_symbol = "35=D|34=2|49=A|52=TIME|56=B|40=1|60=TIME|54=1|21=1|11=x|";
    check(&stock("FIX42.xml"), ValidationRules::STRICT, &[(without_symbol, Some((1, 55)))]);
}

#[test]
fn a_tag_of_the_application_alone_is_unknown_in_a_message_of_the_transport() {
    let dictionary = Dictionary::with_transport(&stock("FIXT11.xml"), &stock("FIX50SP2.xml"));
    check(
        &dictionary,
        ValidationRules::STRICT,
        &[
            ("35=0|34=2|49=A|52=TIME|56=B|999=HI|", Some((0, 999))),
            ("35=0|34=2|49=A|52=TIME|56=B|58=HI|", Some((2, 58))),
            ("35=A|34=1|49=A|52=TIME|56=B|98=0|108=30|", Some((1, 1_137))),
            ("35=A|34=1|49=A|52=TIME|56=B|98=0|108=30|1137=9|", None),
            ("35=D|34=2|49=A|52=TIME|56=B|1128=9|11=x|21=1|40=1|54=1|55=Z|60=TIME|", None),
            ("35=D|34=2|49=A|52=TIME|56=B|11=x|21=1|40=1|54=1|55=Z|60=TIME|999=HI|", Some((2, 999))),
            // The count comes before the values of the members.
            ("35=D|34=2|49=A|52=TIME|56=B|11=x|21=1|40=1|54=1|55=Z|60=TIME|386=3|336=AM|336=PM|", Some((16, 386))),
        ],
    );
}

/// Tags of the venue's dictionary, header, groups and trailer included, and others.
const TAGS: &[u32] = &[
    9, 11, 18, 34, 35, 38, 43, 49, 52, 54, 56, 58, 60, 78, 79, 80, 89, 112, 448, 452, 453, 523, 627, 628, 802, 803,
    999, 5002, 9001, 25_000,
];

proptest! {
    /// The fields of a body may stand in any order, as long as groups stay together.
    #[test]
    fn the_order_of_a_body_does_not_matter(
        fields in Just(vec!["11=x|", "54=2|", "60=TIME|", "38=5|", "GROUP", "25000=1|"]).prop_shuffle(),
    ) {
        let order = |group: &str| {
            let body = fields.concat().replace("GROUP", group);
            verdict(&venue(), ValidationRules::STRICT, &format!("35=D|34=2|49=A|52=TIME|56=B|{body}"))
        };
        prop_assert_eq!(order("78=2|79=a|80=1|79=b|80=2|"), Ok(()));
        prop_assert_eq!(order("78=2|79=a|80=1|80=2|79=b|"), Err((SessionRejectReason::GroupOutOfOrder, Some(80))));
    }

    /// Any fields get a verdict. Lenient rules never refuse what strict ones accept.
    #[test]
    fn any_fields_get_a_verdict(
        fields in proptest::collection::vec((proptest::sample::select(TAGS), "[0-9YN|=.]{0,3}"), 0..40),
    ) {
        let body: String = fields.iter().map(|(tag, value)| format!("{tag}={}|", value.replace('|', ""))).collect();
        let fields = format!("35=D|34=2|49=A|52=TIME|56=B|11=x|54=1|60=TIME|{body}");
        let strict = verdict(&venue(), ValidationRules::STRICT, &fields);
        let lenient = verdict(&venue(), ValidationRules::LENIENT, &fields);
        prop_assert!(strict.is_err() || lenient.is_ok(), "{}: {:?}, {:?}", fields, strict, lenient);
    }
}
