//! The result itself, indented for reading.

use tickpath_result::ResultFile;

/// The result as it is saved, a key a line.
pub fn json(result: &ResultFile) -> String {
    let mut text = serde_json::to_string_pretty(result).expect("every key of a result is a text");
    text.push('\n');
    text
}
