//! Inputs of the cases, and checks that apply to every refusal.

use super::role::ChildRole;
use crate::{ConnectError, Connection};

/// Parts of a transport's tests that a case needs.
pub struct Fixture<'a> {
    /// Opens a new connection.
    pub connect: &'a dyn Fn() -> Box<dyn Connection>,
    /// Unused name of a topic or queue; cases append to it.
    pub topic: String,
    /// Starts a process that connects to the same place and plays a role there.
    pub spawn: &'a dyn Fn(ChildRole, &str) -> std::process::Child,
}

/// Check of one promise against a transport; panics with the reason where it is broken.
pub type ConformanceCase = fn(&Fixture<'_>);

/// Lists cases, each with the name of its function.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case)),+]
    };
}
pub(super) use cases;

/// Name suffixes that every transport can carry.
pub(super) const GOOD_NAMES: [&str; 3] = ["A.z", "0-9_", "r1:BTC-USDT"];

/// Returns names that could leave the place, or that some transport could not carry.
pub(super) fn bad_names() -> Vec<String> {
    let short = ["", ".", "..", ".hidden", "a/b", "/a", "../a", "a b", "é", "a\0b", "a\n", "*"];
    short.into_iter().map(str::to_owned).chain(["x".repeat(129)]).collect()
}

/// Checks that a name was refused with a clear error; `what` is `topic` or `queue`.
pub(super) fn check_name_refused(refusal: Option<ConnectError>, what: &str, name: &str) {
    let error = refusal.unwrap_or_else(|| panic!("{name:?} is accepted as the name of a {what}"));
    assert!(matches!(error, ConnectError::Name(_)), "{name:?}: {error}");
    assert!(error.to_string().contains(&format!("is no {what} name; use 1 to")), "{name:?}: {error}");
}

/// Checks that an operation was refused as unsupported, in a sentence that names it and its alternative.
pub(super) fn check_unsupported<T>(result: Result<T, ConnectError>, word: &str) {
    let error =
        result.err().unwrap_or_else(|| panic!("'{word}' is not among the capabilities, and yet it is accepted"));
    assert!(matches!(error, ConnectError::Unsupported { .. }), "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(word) && sentence.contains("use "), "{sentence}");
}
