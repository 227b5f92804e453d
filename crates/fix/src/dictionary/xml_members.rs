//! Reads the fields, groups and components that messages, groups and components of a dictionary's XML list.
//!
//! A component stands for its members; these are required where the component is, too. A field that is listed twice at
//! one level counts once, at its first place. Each component is read once, and so is each of its groups.

use std::collections::HashMap;
use std::rc::Rc;

use roxmltree::Node;

use super::error::{DictionaryError, DictionaryMistake};
use super::field::{FieldDefinition, FieldType};
use super::member::{GroupId, Member, Section};
use super::parts::GroupParts;
use super::xml_fields::NamedFields;
use super::xml_source::{XmlSource, elements, place};
use crate::field_table::DataTags;
use crate::tags::Tag;

/// Max depth of groups and components inside each other.
const MAX_NESTING: u32 = 32;

/// Reader of members.
#[derive(Debug)]
pub(crate) struct MemberReader<'a, 'i> {
    source: XmlSource<'a, 'i>,
    fields: NamedFields<'a>,
    /// Components by name.
    components: HashMap<&'a str, Component<'a, 'i>>,
    groups: Vec<GroupParts>,
    data_pairs: Vec<(Tag, Tag)>,
    standard: DataTags,
}

/// Fields, groups and pairs of length and data field that a reader has found.
#[derive(Debug)]
pub(crate) struct ReadMembers {
    pub fields: Vec<FieldDefinition>,
    pub groups: Vec<GroupParts>,
    pub data_pairs: Vec<(Tag, Tag)>,
}

/// A component, as far as it has been read.
#[derive(Debug, Clone)]
struct Component<'a, 'i> {
    node: Node<'a, 'i>,
    contents: Contents,
}

#[derive(Debug, Clone)]
enum Contents {
    Unread,
    /// The component is being read: a reference to it from inside is a cycle.
    Open,
    Read(Rc<MemberList>),
}

/// Members at one level.
#[derive(Debug, Default)]
struct MemberList {
    members: Vec<Member>,
    /// Position of each tag.
    positions: HashMap<Tag, usize>,
    /// Depth of groups and components below this level.
    height: u32,
}

impl MemberList {
    fn add(&mut self, member: Member) {
        if let Some(known) = self.positions.get(&member.tag).and_then(|position| self.members.get_mut(*position)) {
            known.is_required |= member.is_required;
            return;
        }
        self.positions.insert(member.tag, self.members.len());
        self.members.push(member);
    }
}

impl<'a, 'i> MemberReader<'a, 'i> {
    /// Creates a reader that knows the names of all fields and components.
    pub fn new(source: XmlSource<'a, 'i>, fields: NamedFields<'a>) -> Result<Self, DictionaryError> {
        let mut components = HashMap::new();
        if let Some(section) = source.below_root("components") {
            for node in elements(section) {
                if !node.has_tag_name("component") {
                    return Err(source.unknown(node, section, "<component>"));
                }
                let name = source.attribute(node, "name")?;
                if components.insert(name, Component { node, contents: Contents::Unread }).is_some() {
                    let (what, name) = ("the component", name.to_owned());
                    return Err(source.error(node, DictionaryMistake::Duplicate { what, name }));
                }
            }
        }
        let (groups, data_pairs, standard) = (Vec::new(), Vec::new(), DataTags::standard());
        Ok(Self { source, fields, components, groups, data_pairs, standard })
    }

    /// Reads the members of an element.
    pub fn read(&mut self, parent: Node<'a, 'i>, section: Section) -> Result<Vec<Member>, DictionaryError> {
        Ok(self.read_list(parent, section, 0)?.members)
    }

    /// Checks the components that nothing uses, and returns the findings.
    pub fn finish(mut self) -> Result<ReadMembers, DictionaryError> {
        let used = self.groups.len();
        if let Some(section) = self.source.below_root("components") {
            for node in elements(section) {
                self.read_component(node, section, 0)?;
            }
        }
        self.groups.truncate(used);
        Ok(ReadMembers { fields: self.fields.into_fields(), groups: self.groups, data_pairs: self.data_pairs })
    }

    fn read_list(&mut self, parent: Node<'a, 'i>, section: Section, depth: u32) -> Result<MemberList, DictionaryError> {
        let mut list = MemberList::default();
        let mut before = None;
        for node in elements(parent) {
            let last = before.take();
            match node.tag_name().name() {
                "field" => {
                    let member = self.read_field(node, parent, section)?;
                    self.note_data_pair(last, &member);
                    before = Some(member);
                    list.add(member);
                }
                "group" => {
                    let (member, height) = self.read_group(node, parent, section, depth)?;
                    list.height = list.height.max(height + 1);
                    list.add(member);
                }
                "component" => {
                    let inner = self.read_component(node, parent, depth)?;
                    let is_required = self.source.is_required(node)?;
                    list.height = list.height.max(inner.height + 1);
                    for member in &inner.members {
                        list.add(Member { section, is_required: is_required && member.is_required, ..*member });
                    }
                }
                _ => return Err(self.source.unknown(node, parent, "<field>, <group> or <component>")),
            }
            if depth + list.height > MAX_NESTING {
                return Err(self.source.error(node, DictionaryMistake::TooDeep { limit: MAX_NESTING }));
            }
        }
        Ok(list)
    }

    fn read_field(
        &self,
        node: Node<'a, 'i>,
        parent: Node<'a, 'i>,
        section: Section,
    ) -> Result<Member, DictionaryError> {
        let name = self.source.attribute(node, "name")?;
        let Some((index, field)) = self.fields.find(name) else {
            let (name, place) = (name.to_owned(), place(parent));
            return Err(self.source.error(node, DictionaryMistake::NoField { name, place }));
        };
        Ok(Member {
            tag: field.tag(),
            kind: field.kind(),
            section,
            is_required: self.source.is_required(node)?,
            group: None,
            is_enumerated: field.is_enumerated(),
            field: index as u32,
        })
    }

    /// Reads a group, and returns the member that counts its instances and the depth below the group.
    fn read_group(
        &mut self,
        node: Node<'a, 'i>,
        parent: Node<'a, 'i>,
        section: Section,
        depth: u32,
    ) -> Result<(Member, u32), DictionaryError> {
        let count = self.read_field(node, parent, section)?;
        let name = || node.attribute("name").unwrap_or_default().to_owned();
        if !matches!(count.kind, FieldType::NumInGroup | FieldType::Int) {
            return Err(self.source.error(node, DictionaryMistake::GroupCount(name())));
        }
        self.check_depth(node, depth)?;
        let inner = self.read_list(node, Section::Body, depth + 1)?;
        if inner.members.is_empty() {
            return Err(self.source.error(node, DictionaryMistake::EmptyGroup(name())));
        }
        let group = Some(GroupId(self.groups.len() as u32));
        self.groups.push(GroupParts { count: count.tag, members: inner.members });
        Ok((Member { group, ..count }, inner.height))
    }

    /// Returns the members of the component that an element names.
    fn read_component(
        &mut self,
        node: Node<'a, 'i>,
        parent: Node<'a, 'i>,
        depth: u32,
    ) -> Result<Rc<MemberList>, DictionaryError> {
        let name = self.source.attribute(node, "name")?;
        let Some(Component { node: definition, contents }) = self.components.get(name).cloned() else {
            let (name, place) = (name.to_owned(), place(parent));
            return Err(self.source.error(node, DictionaryMistake::NoComponent { name, place }));
        };
        match contents {
            Contents::Read(list) => return Ok(list),
            Contents::Open => {
                let mistake = DictionaryMistake::ComponentCycle(name.to_owned(), place(parent));
                return Err(self.source.error(node, mistake));
            }
            Contents::Unread => self.check_depth(node, depth)?,
        }
        self.components.insert(name, Component { node: definition, contents: Contents::Open });
        let list = Rc::new(self.read_list(definition, Section::Body, depth + 1)?);
        let contents = Contents::Read(Rc::clone(&list));
        self.components.insert(name, Component { node: definition, contents });
        Ok(list)
    }

    /// Fails before an element would lead too deep.
    fn check_depth(&self, node: Node<'a, 'i>, depth: u32) -> Result<(), DictionaryError> {
        if depth < MAX_NESTING {
            return Ok(());
        }
        Err(self.source.error(node, DictionaryMistake::TooDeep { limit: MAX_NESTING }))
    }

    /// Notes a length field right before its data field, unless a standard pair has the length.
    fn note_data_pair(&mut self, before: Option<Member>, data: &Member) {
        let Some(length) = before.filter(|_| data.kind.is_data()) else { return };
        let pair = (length.tag, data.tag);
        let is_new = self.standard.data_of(length.tag).is_none() && self.data_pairs.iter().all(|one| one.0 != pair.0);
        // Some dictionaries give a length the type INT: then the names must show that the fields belong together.
        let end = self.fields.name(length.field).strip_prefix(self.fields.name(data.field));
        let is_length = match length.kind {
            FieldType::Length => true,
            FieldType::Int => matches!(end, Some("Len" | "Length")),
            _ => false,
        };
        if is_new && is_length {
            self.data_pairs.push(pair);
        }
    }
}
