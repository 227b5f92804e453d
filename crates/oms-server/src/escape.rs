//! Escaping for the log: no text of a client changes how a line, a terminal or a reader behaves.

use std::fmt::Write;

/// Escapes a text: each character that is not visible as itself becomes its code, such as control characters and escape
/// sequences, line and paragraph separators, direction marks, and characters without a width.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) {
            out.push(c);
        } else {
            // A write to a string never fails.
            let _ = write!(out, "{}", c.escape_unicode());
        }
    }
    out
}

pub(crate) fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

fn is_seen(c: char) -> bool {
    !(c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        ))
}
