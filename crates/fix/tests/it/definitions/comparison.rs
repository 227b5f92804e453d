//! Comparison of a sent message with the expected one: the same fields in the same order, with the same values, except
//! for times and the sum.

/// Fields whose values are times. Only their form counts.
const TIMES: [&str; 4] = ["42", "52", "60", "122"];

/// Compares two messages. The error names the first difference.
pub fn compare(expected: &str, found: &str) -> Result<(), String> {
    let fields = |message: &str| -> Vec<(String, String)> {
        let fields = message.split_terminator('\u{1}').map(|field| field.split_once('=').unwrap_or((field, "")));
        fields.map(|(tag, value)| (tag.to_owned(), value.to_owned())).collect()
    };
    let (expected_fields, found_fields) = (fields(expected), fields(found));
    for ((expected_tag, expected_value), (tag, value)) in expected_fields.iter().zip(&found_fields) {
        if expected_tag != tag {
            return Err(format!("expected tag {expected_tag} and found {tag}={value}"));
        }
        let is_right = match tag.as_str() {
            "10" => value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_digit()),
            tag if TIMES.contains(&tag) => is_time(value),
            _ => value == expected_value,
        };
        if !is_right {
            return Err(format!("expected {expected_tag}={expected_value} and found {tag}={value}"));
        }
    }
    let counts = (expected_fields.len(), found_fields.len());
    if counts.0 == counts.1 { Ok(()) } else { Err(format!("expected {} fields and found {}", counts.0, counts.1)) }
}

/// Returns whether a value has the form `YYYYMMDD-HH:MM:SS`, with or without milliseconds.
fn is_time(value: &str) -> bool {
    let form: String = value.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    form == "00000000-00:00:00" || form == "00000000-00:00:00.000"
}

#[test]
fn differences_are_named() {
    let compared = |expected: &str, found: &str| compare(&expected.replace('|', "\u{1}"), &found.replace('|', "\u{1}"));
    let message = "35=0|52=00000000-00:00:00.000|58=a=b|10=0|";
    assert_eq!(compared(message, "35=0|52=20261130-09:00:00.123|58=a=b|10=007|"), Ok(()));
    for (found, difference) in [
        ("35=1|52=20261130-09:00:00.123|58=a=b|10=007|", "expected 35=0 and found 35=1"),
        ("35=0|58=a=b|52=20261130-09:00:00|10=007|", "expected tag 52 and found 58=a=b"),
        ("35=0|52=20261130 09:00:00|58=a=b|10=007|", "found 52=20261130 09:00:00"),
        ("35=0|52=20261130-09:00:00|58=a=c|10=007|", "expected 58=a=b and found 58=a=c"),
        ("35=0|52=20261130-09:00:00|58=a=b|10=7|", "expected 10=0 and found 10=7"),
        ("35=0|52=20261130-09:00:00|58=a=b|", "expected 4 fields and found 3"),
    ] {
        assert!(compared(message, found).unwrap_err().contains(difference), "{found}");
    }
}
