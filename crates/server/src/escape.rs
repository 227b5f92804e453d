//! Texts for the log: nothing that a client has said changes what a line, a terminal or a reader makes of it.

use std::fmt::Write;

/// A text in which each character that is not seen as itself stands as its code: control characters and escape sequences,
/// line and paragraph separators, marks that turn the direction of writing, and characters without a width.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) {
            out.push(c);
        } else {
            // A string takes all.
            let _ = write!(out, "{}", c.escape_unicode());
        }
    }
    out
}

/// The same of sentences that stand in lines of their own.
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
