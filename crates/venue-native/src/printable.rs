//! A peer's text in a form that is safe in a log.

use std::fmt::{self, Display, Write};

/// A text whose display cannot change a terminal or a log line: control characters, line ends, escape sequences and
/// bidirectional marks are shown as their codes.
///
/// ```
/// use tickpath_venue_native::Printable;
///
/// assert_eq!(Printable("desk 1\n\u{1b}[31m\u{202e}").to_string(), r"desk 1\n\u{1b}[31m\u{202e}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printable<'a>(pub &'a str);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\'' | '"' | '\\' => f.write_char(c)?,
                c => write!(f, "{}", c.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// Returns at most `max` bytes of a peer's text, cut between two characters; invalid UTF-8 is replaced.
pub fn bounded(text: &[u8], max: usize) -> String {
    let mut lossy = String::from_utf8_lossy(&text[..text.len().min(max)]).into_owned();
    let end = lossy.floor_char_boundary(max);
    lossy.truncate(end);
    lossy
}
