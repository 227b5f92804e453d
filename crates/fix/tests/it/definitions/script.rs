//! Definition files: a line is an action of the test's side, or one that it expects of the session's side.
//!
//! ```text
//!   iCONNECT       I8=FIX.4.4|35=A|…      sent, with its length and sum if the line has none
//!   iDISCONNECT    E8=FIX.4.4|9=61|…      expected next
//!   eDISCONNECT    # comment
//!   i2,CONNECT     I2,8=FIX.4.4|…         of another connection
//! ```
//!
//! `<TIME>` stands for the time of the action, `<TIME-121>` for the one 121 seconds before.

use jiff::Timestamp;

const SOH: char = '\u{1}';

/// A line of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the connection, 1 to 9.
    pub connection: usize,
    pub action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Connect,
    Disconnect,
    ExpectDisconnect,
    /// The message as it stands in the file.
    Send(String),
    /// The message as it stands in the file.
    Expect(String),
}

/// Reads the steps of a definition.
pub fn read_steps(text: &str) -> Result<Vec<Step>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| read_step(number, line)).collect()
}

fn read_step(line: usize, text: &str) -> Result<Step, String> {
    let mut characters = text.chars();
    let kind = characters.next();
    let rest = characters.as_str();
    let (connection, body) = match rest.split_once(',') {
        Some((number, body)) if number.len() == 1 => (number.parse().map_err(|_| format!("no step: {text}"))?, body),
        _ => (1, rest),
    };
    let action = match (kind, body) {
        (Some('i'), "CONNECT") => Action::Connect,
        (Some('i'), "DISCONNECT") => Action::Disconnect,
        (Some('e'), "DISCONNECT") => Action::ExpectDisconnect,
        (Some('I'), message) => Action::Send(message.to_owned()),
        (Some('E'), message) => Action::Expect(message.to_owned()),
        _ => return Err(format!("line {line} is no step: {text}")),
    };
    Ok(Step { line, connection, action })
}

/// Returns a message of a definition as it is sent or expected at this time: with times, length and sum.
pub fn completed(template: &str, now_ns: u64) -> String {
    with_length_and_sum(&with_times(template, now_ns))
}

fn with_times(template: &str, now_ns: u64) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("<TIME") {
        let (offset, behind) = behind.split_once('>').expect("a time ends with '>'");
        let offset_s: i64 = if offset.is_empty() { 0 } else { offset.parse().expect("an offset is a number") };
        let second = i64::try_from(now_ns / 1_000_000_000).expect("a time of this era") + offset_s;
        let time = Timestamp::from_second(second).expect("a time of this era");
        text += before;
        text += &time.strftime("%Y%m%d-%H:%M:%S").to_string();
        rest = behind;
    }
    text + rest
}

/// Adds BodyLength and CheckSum where they are missing. If a line has a sum of its own and no length, the length lacks
/// the last delimiter, as in QuickFIX's own runner: such a message is garbled in any case.
fn with_length_and_sum(message: &str) -> String {
    let head_end = message.starts_with("8=").then(|| message.find(SOH)).flatten();
    let Some(head_end) = head_end else { return message.to_owned() };
    let (head, body) = message.split_at(head_end + 1);
    let (body, sum) = match body.find("\u{1}10=") {
        Some(place) => (&body[..place], Some(&body[place..])),
        None => (body, None),
    };
    let has_length = message.contains("\u{1}9=");
    let length = if has_length { String::new() } else { format!("9={}{SOH}", body.len()) };
    let summed = format!("{head}{length}{body}");
    match sum {
        Some(sum) => summed + sum,
        None => {
            let sum: u32 = summed.bytes().map(u32::from).sum();
            format!("{summed}10={:03}{SOH}", sum % 256)
        }
    }
}

#[test]
fn steps_are_read_with_their_lines_and_connections() {
    let text = "# a comment\r\niCONNECT\r\n\r\nI2,8=FIX.4.4\u{1}\nE35=0\u{1}8=FIX.4.4\u{1}\ne2,DISCONNECT\n\
        i1,DISCONNECT";
    let step = |line, connection, action| Step { line, connection, action };
    let expected = [
        step(2, 1, Action::Connect),
        step(4, 2, Action::Send("8=FIX.4.4\u{1}".to_owned())),
        step(5, 1, Action::Expect("35=0\u{1}8=FIX.4.4\u{1}".to_owned())),
        step(6, 2, Action::ExpectDisconnect),
        step(7, 1, Action::Disconnect),
    ];
    assert_eq!(read_steps(text).unwrap(), expected);
    assert!(read_steps("iHANG").is_err() && read_steps("x").is_err());
}

#[test]
fn messages_are_completed() {
    let at_ns = 1_796_029_200_900_000_000;
    let at = |template: &str| completed(&template.replace('|', "\u{1}"), at_ns).replace(SOH, "|");
    assert_eq!(
        at("8=FIX.4.4|35=0|52=<TIME>|122=<TIME-10>|60=<TIME+1>|"),
        "8=FIX.4.4|9=69|35=0|52=20261130-09:00:00|122=20261130-08:59:50|60=20261130-09:00:01|10=023|"
    );
    assert_eq!(at("8=FIX.4.4|9=7|35=0|"), "8=FIX.4.4|9=7|35=0|10=165|");
    assert_eq!(at("8=FIX.4.4|35=0|10=256|"), "8=FIX.4.4|9=4|35=0|10=256|");
    assert_eq!(at("35=0|8=FIX.4.4|9=29|10=121|"), "35=0|8=FIX.4.4|9=29|10=121|");
}
