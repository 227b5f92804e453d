//! Errors about a frame, with OKX's own text in a form that is safe in a log.

use std::fmt::Display;

use tickpath_feed::FrameError;

/// Max characters of a text of OKX in an error.
const MAX_SHOWN: usize = 300;

/// Returns the error of a frame that is no message of OKX's protocol.
pub(crate) fn malformed(bytes: usize, why: impl Display) -> FrameError {
    FrameError::Malformed { bytes, why: shown(&why.to_string()) }
}

/// Returns the begin of a text, with a question mark for each control character.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect()
}
