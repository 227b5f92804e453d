//! Mistakes in a dictionary's XML file.

use crate::tags::Tag;

/// A mistake in a dictionary's XML file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {mistake}")]
pub struct DictionaryError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Mistake.
    pub mistake: DictionaryMistake,
}

/// A mistake in a dictionary, with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DictionaryMistake {
    /// The text is not XML.
    #[error("this is not XML ({0}); correct it there")]
    Xml(String),
    /// Elements, components and groups are nested deeper than any dictionary needs.
    #[error("elements, components and groups are nested more than {limit} deep; nest fewer of them")]
    TooDeep {
        /// Max depth.
        limit: u32,
    },
    /// The root is another element than `fix`.
    #[error("the root element is <{0}>, so this is no dictionary in QuickFIX's form; that begins with <fix>")]
    Root(String),
    /// The version is none that a BeginString can name.
    #[error("type='{kind}' major='{major}' minor='{minor}' is no version of FIX; write FIX or FIXT, and numbers")]
    Version {
        /// Attribute `type`.
        kind: String,
        /// Attribute `major`.
        major: String,
        /// Attribute `minor`.
        minor: String,
    },
    /// An element lacks an attribute.
    #[error("<{element}> has no {attribute}; write {attribute}='…' there")]
    NoAttribute {
        /// Name of the element.
        element: String,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// An attribute has another value than the form allows.
    #[error("{attribute}='{value}' of <{element}> is neither {first} nor {second}; write one of them")]
    Attribute {
        /// Name of the element.
        element: String,
        /// Name of the attribute.
        attribute: &'static str,
        /// Value of the attribute.
        value: String,
        /// Allowed value.
        first: &'static str,
        /// Other allowed value.
        second: &'static str,
    },
    /// A section is absent or empty.
    #[error("<{0}> is missing or empty; add it below <fix> with its contents")]
    NoSection(&'static str),
    /// The header or the trailer lacks a field that frames each message.
    #[error("the {section} lacks the field with tag {tag}, which each message has; add it there")]
    NoFrameField {
        /// `header` or `trailer`.
        section: &'static str,
        /// Tag of the field.
        tag: Tag,
    },
    /// An element is unknown at its place.
    #[error("<{element}> is unknown in {place}; write {expected} there, or remove it")]
    Element {
        /// Name of the element.
        element: String,
        /// Element around it.
        place: String,
        /// Elements that are allowed there.
        expected: &'static str,
    },
    /// The number of a field cannot be a tag.
    #[error("the field '{name}' has the number '{number}'; write a tag from 1 to {max}")]
    Number {
        /// Name of the field.
        name: String,
        /// Attribute `number`.
        number: String,
        /// Highest tag.
        max: Tag,
    },
    /// The type of a field is unknown.
    #[error("the field '{name}' has the unknown type '{kind}'; write a type of FIX, such as STRING, INT or PRICE")]
    Type {
        /// Name of the field.
        name: String,
        /// Attribute `type`.
        kind: String,
    },
    /// Two fields have the same number.
    #[error("the fields '{first}' and '{second}' both have the number {tag}; correct one of them")]
    DuplicateNumber {
        /// Number.
        tag: Tag,
        /// Name of the field above.
        first: String,
        /// Name of the field here.
        second: String,
    },
    /// Two fields, components or messages have the same name or type.
    #[error("{what} '{name}' is defined a second time; rename it or remove one")]
    Duplicate {
        /// Kind of the element.
        what: &'static str,
        /// Name.
        name: String,
    },
    /// There are more fields than the tables can hold.
    #[error("there are more than {max} fields; remove those that no message has")]
    TooManyFields {
        /// Max fields.
        max: usize,
    },
    /// A message, group or component lists a field that is not defined.
    #[error("{place} has the field '{name}', which <fields> does not define; define it there or correct the name")]
    NoField {
        /// Name of the field.
        name: String,
        /// Element around it.
        place: String,
    },
    /// A message, group or component lists a component that is not defined.
    #[error(
        "{place} has the component '{name}', which <components> does not define; define it there or correct the name"
    )]
    NoComponent {
        /// Name of the component.
        name: String,
        /// Element around it.
        place: String,
    },
    /// A component contains itself, directly or through others.
    #[error("the component '{0}' contains itself; remove it from {1}")]
    ComponentCycle(String, String),
    /// A group has no fields.
    #[error("the group '{0}' has no fields; list them, the first one begins each instance")]
    EmptyGroup(String),
    /// The count of a group has a type that cannot count.
    #[error("the group '{0}' counts its instances in a field that is no number; give that field the type NUMINGROUP")]
    GroupCount(String),
}
