//! Access to the elements of a dictionary's XML, with errors that name file and line.

use roxmltree::{Document, Node};

use super::error::{DictionaryError, DictionaryMistake};

/// An XML document and the name of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct XmlSource<'a, 'i> {
    document: &'a Document<'i>,
    file: &'a str,
}

impl<'a, 'i> XmlSource<'a, 'i> {
    pub fn new(document: &'a Document<'i>, file: &'a str) -> Self {
        Self { document, file }
    }

    /// Returns the root element.
    pub fn root(self) -> Node<'a, 'i> {
        self.document.root_element()
    }

    /// Returns an element below the root, if it is there.
    pub fn below_root(self, name: &str) -> Option<Node<'a, 'i>> {
        elements(self.root()).find(|node| node.has_tag_name(name))
    }

    /// Returns a section below the root, which must have elements.
    pub fn section(self, name: &'static str) -> Result<Node<'a, 'i>, DictionaryError> {
        let section = self.below_root(name);
        let filled = section.filter(|node| elements(*node).next().is_some());
        filled.ok_or_else(|| self.error(section.unwrap_or_else(|| self.root()), DictionaryMistake::NoSection(name)))
    }

    /// Returns an attribute, which must have a value.
    pub fn attribute(self, node: Node<'a, 'i>, attribute: &'static str) -> Result<&'a str, DictionaryError> {
        let value = node.attribute(attribute).filter(|value| !value.is_empty());
        value.ok_or_else(|| self.error(node, DictionaryMistake::NoAttribute { element: tag(node), attribute }))
    }

    /// Returns whether an element is required.
    pub fn is_required(self, node: Node<'a, 'i>) -> Result<bool, DictionaryError> {
        match node.attribute("required") {
            Some("Y" | "y" | "true") => Ok(true),
            Some("N" | "n" | "false" | "") | None => Ok(false),
            Some(value) => Err(self.wrong_attribute(node, "required", value, ["Y", "N"])),
        }
    }

    /// Returns the error of an attribute that has none of two values.
    pub fn wrong_attribute(
        self,
        node: Node<'a, 'i>,
        attribute: &'static str,
        value: &str,
        [first, second]: [&'static str; 2],
    ) -> DictionaryError {
        let value = value.to_owned();
        self.error(node, DictionaryMistake::Attribute { element: tag(node), attribute, value, first, second })
    }

    /// Returns the error of an element that is unknown at its place.
    pub fn unknown(self, node: Node<'a, 'i>, parent: Node<'a, 'i>, expected: &'static str) -> DictionaryError {
        self.error(node, DictionaryMistake::Element { element: tag(node), place: place(parent), expected })
    }

    /// Returns an error at an element.
    pub fn error(self, node: Node<'a, 'i>, mistake: DictionaryMistake) -> DictionaryError {
        let line = self.document.text_pos_at(node.range().start).row;
        DictionaryError { file: self.file.to_owned(), line, mistake }
    }
}

/// Returns the elements directly below an element.
pub(crate) fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(|child| child.is_element())
}

/// Returns the words that name an element in an error.
pub(crate) fn place(node: Node<'_, '_>) -> String {
    match (node.tag_name().name(), node.attribute("name")) {
        (tag @ ("header" | "trailer"), _) => format!("the {tag}"),
        (tag, Some(name)) => format!("the {tag} '{name}'"),
        (tag, None) => format!("<{tag}>"),
    }
}

fn tag(node: Node<'_, '_>) -> String {
    node.tag_name().name().to_owned()
}
