//! The contents of one or two dictionary files, before they are made into tables.

use std::ops::Range;

use super::definition::MessageCategory;
use super::field::FieldDefinition;
use super::member::{GroupId, Member};
use crate::tags::Tag;

/// Contents of a dictionary.
#[derive(Debug, Clone)]
pub(crate) struct DictionaryParts {
    pub begin_string: String,
    pub fields: Vec<FieldDefinition>,
    /// Ranges of `fields` that belong to one file each, with different tags.
    pub spaces: Vec<Range<usize>>,
    /// Groups. A group stands behind the groups that it contains.
    pub groups: Vec<GroupParts>,
    pub header: Vec<Member>,
    pub trailer: Vec<Member>,
    pub messages: Vec<MessageParts>,
    /// Length fields with their data fields, as far as no standard pair has the length.
    pub data_pairs: Vec<(Tag, Tag)>,
}

/// Contents of a repeating group.
#[derive(Debug, Clone)]
pub(crate) struct GroupParts {
    pub count: Tag,
    pub members: Vec<Member>,
}

/// Contents of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageParts {
    pub name: String,
    pub msg_type: Vec<u8>,
    pub category: MessageCategory,
    /// Index of the range of fields.
    pub space: usize,
    /// Members of the body.
    pub members: Vec<Member>,
}

impl DictionaryParts {
    /// Joins the dictionary of a transport with that of its application. Header, trailer and each message that both
    /// define are the transport's.
    pub fn joined(transport: &Self, application: &Self) -> Self {
        let (fields, groups) = (transport.fields.len(), transport.groups.len());
        let shift = |members: &[Member]| -> Vec<Member> {
            members.iter().map(|member| shifted(*member, fields as u32, groups as u32)).collect()
        };
        let is_own = |message: &&MessageParts| transport.messages.iter().all(|one| one.msg_type != message.msg_type);
        let messages = application.messages.iter().filter(is_own).map(|message| MessageParts {
            space: message.space + transport.spaces.len(),
            members: shift(&message.members),
            ..message.clone()
        });
        let inner = application.groups.iter();
        let inner = inner.map(|group| GroupParts { count: group.count, members: shift(&group.members) });
        let spaces = application.spaces.iter();
        let spaces = spaces.map(|space| Range { start: space.start + fields, end: space.end + fields });
        Self {
            begin_string: transport.begin_string.clone(),
            fields: [&*transport.fields, &*application.fields].concat(),
            spaces: transport.spaces.iter().cloned().chain(spaces).collect(),
            groups: transport.groups.iter().cloned().chain(inner).collect(),
            header: transport.header.clone(),
            trailer: transport.trailer.clone(),
            messages: transport.messages.iter().cloned().chain(messages).collect(),
            data_pairs: [&*transport.data_pairs, &*application.data_pairs].concat(),
        }
    }
}

/// Returns a member whose field and group have moved back by these numbers.
fn shifted(member: Member, fields: u32, groups: u32) -> Member {
    let group = member.group.map(|group| GroupId(group.0 + groups));
    Member { field: member.field + fields, group, ..member }
}
