//! Escaping for SVG and HTML: any content of a file stays text.

/// Escapes text for an element or a quoted attribute. Control characters, which XML forbids, become visible marks.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(' '),
            _ => safe.push(visible(character)),
        }
    }
    safe
}

/// Escapes text for a line of a terminal or a table: a control character could steer the terminal, so it becomes a
/// visible mark.
pub fn plain(text: &str) -> String {
    text.chars().map(|character| if matches!(character, '\n' | '\t') { ' ' } else { visible(character) }).collect()
}

/// Replaces bidirectional marks, which reorder the text around them, and two characters that XML forbids.
fn visible(character: char) -> char {
    match character {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    }
}
