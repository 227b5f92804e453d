//! Messages and repeating groups of a dictionary.

use super::member::{Member, MemberTable};
use crate::tags::Tag;

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCategory {
    /// The message belongs to the session: a Logon, a Heartbeat.
    Admin,
    /// The message belongs to the application: an order, a report.
    App,
}

/// Definition of a message.
#[derive(Debug, Clone)]
pub struct MessageDefinition {
    name: String,
    msg_type: Vec<u8>,
    category: MessageCategory,
    /// Index of the set of fields that this message's dictionary file defines.
    space: usize,
    table: MemberTable,
}

impl MessageDefinition {
    pub(crate) fn new(
        name: &str,
        msg_type: &[u8],
        category: MessageCategory,
        space: usize,
        members: Vec<Member>,
    ) -> Self {
        let table = MemberTable::new(members);
        Self { name: name.to_owned(), msg_type: msg_type.to_owned(), category, space, table }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of MsgType (35).
    pub fn msg_type(&self) -> &[u8] {
        &self.msg_type
    }

    /// Returns the kind of the message.
    pub fn category(&self) -> MessageCategory {
        self.category
    }

    /// Returns the fields outside of repeating groups: header, body, trailer, each in the dictionary's order.
    pub fn members(&self) -> &[Member] {
        self.table.members()
    }

    /// Returns the field with this tag outside of repeating groups.
    #[inline]
    pub fn member(&self, tag: Tag) -> Option<&Member> {
        self.table.find(tag).map(|(_, member)| member)
    }

    pub(crate) fn space(&self) -> usize {
        self.space
    }

    pub(crate) fn table(&self) -> &MemberTable {
        &self.table
    }
}

/// Definition of a repeating group.
#[derive(Debug, Clone)]
pub struct GroupDefinition {
    count: Tag,
    /// First field of each instance.
    delimiter: Tag,
    table: MemberTable,
}

impl GroupDefinition {
    /// Creates a group with this count, and with members that begin with the delimiter.
    pub(crate) fn new(count: Tag, members: Vec<Member>) -> Self {
        let delimiter = members.first().map_or(count, |member| member.tag);
        Self { count, delimiter, table: MemberTable::new(members) }
    }

    /// Returns the tag of the field that counts the instances.
    pub fn count(&self) -> Tag {
        self.count
    }

    /// Returns the tag of the field that begins each instance.
    pub fn delimiter(&self) -> Tag {
        self.delimiter
    }

    /// Returns the fields of an instance, in the dictionary's order.
    pub fn members(&self) -> &[Member] {
        self.table.members()
    }

    /// Returns the field of an instance with this tag.
    #[inline]
    pub fn member(&self, tag: Tag) -> Option<&Member> {
        self.table.find(tag).map(|(_, member)| member)
    }

    pub(crate) fn table(&self) -> &MemberTable {
        &self.table
    }
}
