//! The result itself, indented for reading.

use tickpath_lab_result::ResultFile;

/// Returns the result as it is saved, with a key per line.
pub fn json(result: &ResultFile) -> String {
    let mut text = serde_json::to_string_pretty(result).expect("every key of a result is a text");
    text.push('\n');
    text
}
