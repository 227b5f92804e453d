//! Local names for topics that have other names on the server.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::ConnectError;
use crate::wire::check_name;

/// Max length of a name on the server, in bytes.
const MAX_BYTES: usize = 255;
/// Prefix of a local name in an option of a URL: `name.btc=market:BTC/USDT%40trade`.
pub(crate) const NAME_OPTION: &str = "name.";

/// Names of topics on the server, where a URL sets a name other than their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicNames(BTreeMap<String, String>);

impl TopicNames {
    /// Adds the name that this topic has on the server. The error is a sentence.
    pub(crate) fn add(&mut self, topic: &str, server_name: String) -> Result<(), String> {
        check_name("topic", topic).map_err(|e| e.to_string())?;
        if server_name.len() > MAX_BYTES || server_name.chars().any(char::is_control) {
            return Err(format!(
                "'{NAME_OPTION}{topic}' in the URL has a value of over {MAX_BYTES} bytes, or with control characters"
            ));
        }
        match self.0.insert(topic.to_owned(), server_name) {
            None => Ok(()),
            Some(_) => Err(format!("'{NAME_OPTION}{topic}' is twice in the URL")),
        }
    }

    /// Returns true if the URL sets no names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all names on the server.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    /// Returns the name of a topic on the server, if the URL sets one.
    pub fn server_name(&self, topic: &str) -> Option<&str> {
        self.0.get(topic).map(String::as_str)
    }

    /// Returns a topic's name on the server: as set by the URL, or its own, which must be valid on every transport.
    pub fn resolve<'a>(&self, topic: &'a str) -> Result<Cow<'a, str>, ConnectError> {
        match self.server_name(topic) {
            Some(name) => Ok(Cow::Owned(name.to_owned())),
            None => check_name("topic", topic).map(|()| Cow::Borrowed(topic)),
        }
    }
}
