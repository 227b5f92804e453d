//! Text in colour, wrapped to a terminal's width.

use super::markup::plain;
use tickpath_lab_result::PERCENTILES;

/// The percentiles that a narrow terminal omits, in order of omission; the file has them all.
const OMITTED_FIRST: [usize; 3] = [1, 2, 4];

/// Returns the percentiles that fit into `room`, each `each` columns wide.
pub(super) fn percentiles_in(room: usize, each: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..PERCENTILES.len()).collect();
    for dispensable in OMITTED_FIRST {
        if each * shown.len() > room {
            shown.retain(|index| *index != dispensable);
        }
    }
    shown
}

/// Colours, if they are enabled.
#[derive(Clone, Copy)]
pub(super) struct TerminalStyle {
    pub(super) colour: bool,
}

impl TerminalStyle {
    pub(super) fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(super) fn accent(self, text: &str) -> String {
        self.painted("1;36", text)
    }

    pub(super) fn alarm(self, text: &str) -> String {
        self.painted("1;31", text)
    }

    fn painted(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Wraps a text into lines of `width` columns, the second and later lines indented; a longer word is cut.
pub fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = LineWrapper { width, indent, done: Vec::new(), line: String::new(), used: 0 };
    for (index, word) in plain(text).split(' ').enumerate() {
        let letters: Vec<char> = word.chars().collect();
        if index > 0 {
            lines.space_before(letters.len().min(width - indent));
        }
        letters.chunks(width - indent).for_each(|piece| lines.push(piece));
    }
    lines.done.push(lines.line);
    lines.done
}

/// Lines under construction, with widths in columns.
struct LineWrapper {
    width: usize,
    indent: usize,
    done: Vec<String>,
    line: String,
    used: usize,
}

impl LineWrapper {
    fn space_before(&mut self, letters: usize) {
        if self.used + 1 + letters > self.width {
            self.break_line();
        } else {
            self.push(&[' ']);
        }
    }

    fn push(&mut self, letters: &[char]) {
        if self.used + letters.len() > self.width {
            self.break_line();
        }
        self.line.extend(letters);
        self.used += letters.len();
    }

    fn break_line(&mut self) {
        self.done.push(std::mem::replace(&mut self.line, " ".repeat(self.indent)));
        self.used = self.indent;
    }
}
