//! Reads the fields of a dictionary's XML: names, numbers, types and values.

use std::collections::HashMap;

use roxmltree::Node;

use super::error::{DictionaryError, DictionaryMistake};
use super::field::{FieldDefinition, FieldType, FieldValue};
use super::xml_source::{XmlSource, elements};
use crate::tags::Tag;

/// Max fields of a dictionary: header, body and trailer of a message together then fit a table of members.
const MAX_FIELDS: usize = 20_000;
/// Highest tag.
const MAX_TAG: Tag = 999_999_999;

/// The fields of a dictionary, by name.
#[derive(Debug, Default)]
pub(crate) struct NamedFields<'a> {
    fields: Vec<FieldDefinition>,
    /// Index of each name's field.
    by_name: HashMap<&'a str, usize>,
}

impl NamedFields<'_> {
    /// Returns the field with this name, and its index.
    pub fn find(&self, name: &str) -> Option<(usize, &FieldDefinition)> {
        let index = *self.by_name.get(name)?;
        Some((index, self.fields.get(index)?))
    }

    /// Returns the name of the field with this index; empty if there is none.
    pub fn name(&self, index: u32) -> &str {
        self.fields.get(index as usize).map_or("", FieldDefinition::name)
    }

    /// Returns the fields, in the order of the file.
    pub fn into_fields(self) -> Vec<FieldDefinition> {
        self.fields
    }
}

/// Reads `<fields>`. Before FIX 4.2 the type CHAR is a text.
pub(crate) fn read_fields<'a>(
    source: XmlSource<'a, '_>,
    is_before_4_2: bool,
) -> Result<NamedFields<'a>, DictionaryError> {
    let section = source.section("fields")?;
    let mut named = NamedFields::default();
    let mut by_tag = HashMap::new();
    for node in elements(section) {
        if !node.has_tag_name("field") {
            return Err(source.unknown(node, section, "<field>"));
        }
        let index = named.fields.len();
        if index == MAX_FIELDS {
            return Err(source.error(node, DictionaryMistake::TooManyFields { max: MAX_FIELDS }));
        }
        let name = source.attribute(node, "name")?;
        let tag = read_number(source, node, name)?;
        if let Some(first) = by_tag.insert(tag, name) {
            let (first, second) = (first.to_owned(), name.to_owned());
            return Err(source.error(node, DictionaryMistake::DuplicateNumber { tag, first, second }));
        }
        if named.by_name.insert(name, index).is_some() {
            let name = name.to_owned();
            return Err(source.error(node, DictionaryMistake::Duplicate { what: "the field", name }));
        }
        let kind = match read_type(source, node, name)? {
            FieldType::Char if is_before_4_2 => FieldType::String,
            kind => kind,
        };
        named.fields.push(FieldDefinition::new(tag, name, kind, read_values(source, node)?));
    }
    Ok(named)
}

fn read_number<'a, 'i>(source: XmlSource<'a, 'i>, node: Node<'a, 'i>, name: &str) -> Result<Tag, DictionaryError> {
    let number = source.attribute(node, "number")?;
    let tag = number.parse::<Tag>().ok().filter(|tag| (1..=MAX_TAG).contains(tag));
    tag.ok_or_else(|| {
        let (name, number) = (name.to_owned(), number.to_owned());
        source.error(node, DictionaryMistake::Number { name, number, max: MAX_TAG })
    })
}

fn read_type<'a, 'i>(source: XmlSource<'a, 'i>, node: Node<'a, 'i>, name: &str) -> Result<FieldType, DictionaryError> {
    let kind = source.attribute(node, "type")?;
    FieldType::named(kind).ok_or_else(|| {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        source.error(node, DictionaryMistake::Type { name, kind })
    })
}

fn read_values<'a, 'i>(source: XmlSource<'a, 'i>, node: Node<'a, 'i>) -> Result<Vec<FieldValue>, DictionaryError> {
    let values = node.descendants().filter(|child| child.has_tag_name("value"));
    let read = |value: Node<'a, 'i>| {
        let description = value.attribute("description").unwrap_or_default().to_owned();
        Ok(FieldValue { value: source.attribute(value, "enum")?.to_owned(), description })
    };
    values.map(read).collect()
}
