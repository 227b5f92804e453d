//! Dictionaries: the fields, messages and repeating groups of a FIX version or of a venue, read at start from an XML
//! file in QuickFIX's form, and tables made from them that a message is checked with.
//!
//! ```text
//!   XML ─> xml, xml_fields, xml_members ─> parts ─> Dictionary:  MsgType ─> MessageDefinition ─┐ tag ─> Member
//!                                            ^                           ┌─ GroupDefinition <──┤ (group)
//!          parts of the transport (FIXT) ────┘ joined                    └─────────────────────┘
//! ```
//!
//! The members of a message are in one table with those of the header and the trailer, so that a field of a message is
//! found by one access to an array. Each message knows the file that it comes from: a tag that only the application's
//! file defines is undefined in a message of the transport.

use std::collections::HashMap;
use std::fmt;

use crate::field_table::DataTags;
use crate::tags::Tag;

pub use self::definition::{GroupDefinition, MessageCategory, MessageDefinition};
pub use self::error::{DictionaryError, DictionaryMistake};
pub use self::field::{FieldDefinition, FieldType, FieldValue};
pub use self::member::{GroupId, Member, Section};
pub(crate) use self::member::{MemberTable, set_contains, set_insert};
use self::parts::{DictionaryParts, MessageParts};
use self::tag_table::TagTable;
use self::xml::read_dictionary;

mod definition;
mod error;
mod field;
mod member;
mod parts;
mod tag_table;
mod xml;
mod xml_depth;
mod xml_fields;
mod xml_members;
mod xml_source;

/// Definitions of fields, messages and repeating groups. Immutable: sessions share it in an `Arc`.
///
/// ```
/// use tickpath_fix::Dictionary;
///
/// let xml = "<fix type='FIX' major='4' minor='4'>
///     <header>
///         <field name='BeginString' required='Y'/> <field name='BodyLength' required='Y'/>
///         <field name='MsgType' required='Y'/> <field name='MsgSeqNum' required='Y'/>
///     </header>
///     <messages>
///         <message name='TestRequest' msgtype='1' msgcat='admin'> <field name='TestReqID' required='Y'/> </message>
///     </messages>
///     <trailer> <field name='CheckSum' required='Y'/> </trailer>
///     <fields>
///         <field number='8' name='BeginString' type='STRING'/> <field number='9' name='BodyLength' type='LENGTH'/>
///         <field number='10' name='CheckSum' type='STRING'/> <field number='34' name='MsgSeqNum' type='SEQNUM'/>
///         <field number='35' name='MsgType' type='STRING'/> <field number='112' name='TestReqID' type='STRING'/>
///     </fields>
/// </fix>";
/// let dictionary = Dictionary::parse(xml, "venue.xml")?;
/// assert_eq!(dictionary.begin_string(), "FIX.4.4");
/// assert_eq!(dictionary.field_by_name("TestReqID"), Some(112));
/// let message = dictionary.message(b"1").ok_or("no TestRequest")?;
/// assert!(message.member(112).is_some_and(|member| member.is_required));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dictionary {
    parts: DictionaryParts,
    /// For each range of fields the positions of their tags.
    spaces: Vec<TagTable>,
    groups: Vec<GroupDefinition>,
    messages: Vec<MessageDefinition>,
    types: MessageTypes,
    tags: HashMap<String, Tag>,
    data_tags: DataTags,
    /// Words for the sets of present members of any message and the groups in it.
    set_words: usize,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fields, messages) = (self.parts.fields.len(), self.messages.len());
        let mut shown = f.debug_struct("Dictionary");
        shown.field("begin_string", &self.parts.begin_string).field("fields", &fields).field("messages", &messages);
        shown.finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Reads a dictionary in QuickFIX's XML form. `name` is the file's name, for errors.
    pub fn parse(xml: &str, name: &str) -> Result<Self, DictionaryError> {
        read_dictionary(xml, name).map(Self::new)
    }

    /// Joins the dictionary of a transport (FIXT.1.1) with that of its application (FIX 5.0 and later). Header, trailer
    /// and each message that both define are the transport's.
    pub fn with_transport(transport: &Self, application: &Self) -> Self {
        Self::new(DictionaryParts::joined(&transport.parts, &application.parts))
    }

    fn new(parts: DictionaryParts) -> Self {
        let groups = parts.groups.iter().map(|group| GroupDefinition::new(group.count, group.members.clone()));
        let groups: Vec<GroupDefinition> = groups.collect();
        let messages: Vec<MessageDefinition> =
            parts.messages.iter().map(|message| message_definition(&parts, message)).collect();
        let tags_of = |fields: &[FieldDefinition]| fields.iter().map(FieldDefinition::tag).collect::<Vec<Tag>>();
        let spaces = parts.spaces.iter().map(|space| TagTable::new(&tags_of(&parts.fields[space.clone()])));
        let mut data_tags = DataTags::standard();
        for &(length, data) in &parts.data_pairs {
            data_tags.add(length, data);
        }
        Self {
            spaces: spaces.collect(),
            types: MessageTypes::new(&messages),
            tags: parts.fields.iter().map(|field| (field.name().to_owned(), field.tag())).collect(),
            data_tags,
            set_words: set_words(&groups, &messages),
            groups,
            messages,
            parts,
        }
    }

    /// Returns the version: BeginString (8) of each message, such as FIX.4.4 or FIXT.1.1. An application's dictionary
    /// alone has the name of its version, such as FIX.5.0SP2.
    pub fn begin_string(&self) -> &str {
        &self.parts.begin_string
    }

    /// Returns the pairs of length and data fields, standard ones and the dictionary's.
    pub fn data_tags(&self) -> &DataTags {
        &self.data_tags
    }

    /// Returns the definition of a field; the application's if the transport defines it too.
    pub fn field(&self, tag: Tag) -> Option<&FieldDefinition> {
        (0..self.spaces.len()).rev().find_map(|space| self.field_in(space, tag))
    }

    /// Returns the tag of the field with this name.
    pub fn field_by_name(&self, name: &str) -> Option<Tag> {
        self.tags.get(name).copied()
    }

    /// Returns the definition of the messages with this MsgType (35).
    #[inline]
    pub fn message(&self, msg_type: &[u8]) -> Option<&MessageDefinition> {
        self.messages.get(self.types.find(msg_type)?)
    }

    /// Returns all messages; the transport's first.
    pub fn messages(&self) -> &[MessageDefinition] {
        &self.messages
    }

    /// Returns the repeating group of a member of this dictionary.
    ///
    /// # Panics
    /// If the member is another dictionary's.
    #[inline]
    pub fn group(&self, group: GroupId) -> &GroupDefinition {
        &self.groups[group.0 as usize]
    }

    /// Returns the definition of a member's field.
    #[inline]
    pub(crate) fn definition(&self, member: &Member) -> &FieldDefinition {
        &self.parts.fields[member.field as usize]
    }

    /// Returns the definition of a field in one file.
    pub(crate) fn field_in(&self, space: usize, tag: Tag) -> Option<&FieldDefinition> {
        let position = self.spaces.get(space)?.position(tag)?;
        self.parts.fields.get(self.parts.spaces.get(space)?.start + position)
    }

    /// Returns the words for the sets of present members of any message and the groups in it.
    #[inline]
    pub(crate) fn set_words(&self) -> usize {
        self.set_words
    }
}

/// Makes the definition of a message. A field that its body has in common with the header or the trailer is theirs.
fn message_definition(parts: &DictionaryParts, message: &MessageParts) -> MessageDefinition {
    let is_new = |known: &[Member], member: &Member| known.iter().all(|one| one.tag != member.tag);
    let trailer: Vec<Member> = parts.trailer.iter().copied().filter(|one| is_new(&parts.header, one)).collect();
    let body = message.members.iter().copied();
    let body = body.filter(|one| is_new(&parts.header, one) && is_new(&trailer, one));
    let members = parts.header.iter().copied().chain(body).chain(trailer.iter().copied()).collect();
    MessageDefinition::new(&message.name, &message.msg_type, message.category, message.space, members)
}

/// Returns the max words for the set of a message's members and the sets of the groups that are open at once.
fn set_words(groups: &[GroupDefinition], messages: &[MessageDefinition]) -> usize {
    // A group stands behind the groups that it contains.
    let mut words: Vec<usize> = Vec::with_capacity(groups.len());
    for group in groups {
        words.push(group.table().words() + deepest(&words, group.members()));
    }
    messages.iter().map(|message| message.table().words() + deepest(&words, message.members())).max().unwrap_or(0)
}

/// Returns the words of the largest group among members.
fn deepest(words: &[usize], members: &[Member]) -> usize {
    let groups = members.iter().filter_map(|member| words.get(member.group?.0 as usize));
    groups.copied().max().unwrap_or(0)
}

/// Indices of the messages, by MsgType.
struct MessageTypes {
    /// Index plus one for types of one ASCII character; zero for an unknown type.
    characters: [u32; 128],
    /// All other types, sorted.
    texts: Vec<(Vec<u8>, u32)>,
}

impl MessageTypes {
    fn new(messages: &[MessageDefinition]) -> Self {
        let (mut characters, mut texts) = ([0; 128], Vec::new());
        for (entry, message) in (1..).zip(messages) {
            match message.msg_type() {
                [character] if character.is_ascii() => characters[usize::from(*character)] = entry,
                text => texts.push((text.to_owned(), entry)),
            }
        }
        texts.sort_unstable();
        Self { characters, texts }
    }

    #[inline]
    fn find(&self, msg_type: &[u8]) -> Option<usize> {
        let entry = match msg_type {
            [character] => *self.characters.get(usize::from(*character))?,
            text => {
                let place = self.texts.binary_search_by(|(known, _)| known.as_slice().cmp(text)).ok()?;
                self.texts[place].1
            }
        };
        (entry as usize).checked_sub(1)
    }
}
