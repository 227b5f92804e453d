//! The page of the messages, from the SBE schema. A test of `market` compares the schema with the structs.

use roxmltree::{Document, Node};

use super::{cell, check_page, read};

const HEAD: &str = "\
# Messages

The messages in logs, on the wire and in the journal, in Simple Binary Encoding 1.0, from `schema/tickpath.xml`. The id
of a message is its kind. Numbers are little-endian, and prices and quantities are whole numbers of 10⁻⁸. Codecs for
Java and C++ are made from the schema ([how](../c.md#the-messages-in-java-and-c)), and
[the format of a log](../log-format.md) describes the frames around a message.
";

#[test]
fn the_page_of_messages_has_the_schema() {
    let schema = read("schema/tickpath.xml");
    let document = Document::parse(&schema).expect("the schema is XML");
    let root = document.root_element();
    let types = elements(root, "types");
    let types = types.first().copied().expect("the schema has types");
    let mut page = format!("{HEAD}\n## Kinds\n\n| kind | message | bytes | |\n|---|---|--:|---|\n");
    for message in elements(root, "message") {
        let [id, name, bytes, text] = ["id", "name", "blockLength", "description"].map(|key| value(message, key));
        page += &format!("| {id} | [{name}](#{}) | {bytes} | {} |\n", name.to_lowercase(), cell(text));
    }
    page += "\n## Fields\n";
    elements(root, "message").into_iter().for_each(|message| add_message(&mut page, message));
    page += "\n## Codes\n";
    elements(types, "enum").into_iter().for_each(|codes| add_codes(&mut page, codes));
    page += "\n## Types\n\n| type | encoding | |\n|---|---|---|\n";
    for one in elements(types, "type") {
        let [name, text] = ["name", "description"].map(|key| value(one, key));
        page += &format!("| `{name}` | {} | {} |\n", encoding(one), cell(text));
    }
    page += "\n## Composite types\n";
    elements(types, "composite").into_iter().for_each(|composite| add_composite(&mut page, composite));
    check_page("messages.md", &page);
}

fn add_message(page: &mut String, message: Node<'_, '_>) {
    let [name, text] = ["name", "description"].map(|key| value(message, key));
    *page +=
        &format!("\n### {name}\n\n{}.\n\n| offset | field | type | |\n|--:|---|---|---|\n", text.trim_end_matches('.'));
    for field in elements(message, "field") {
        let [offset, name, kind, text] = ["offset", "name", "type", "description"].map(|key| value(field, key));
        *page += &format!("| {offset} | `{name}` | `{kind}` | {} |\n", cell(text));
    }
}

fn add_codes(page: &mut String, codes: Node<'_, '_>) {
    let [name, text] = ["name", "description"].map(|key| value(codes, key));
    *page += &format!("\n### {name}\n\n{}.\n\n| code | name | |\n|--:|---|---|\n", text.trim_end_matches('.'));
    for code in elements(codes, "validValue") {
        let number = code.text().unwrap_or_default().trim();
        let [name, text] = ["name", "description"].map(|key| value(code, key));
        *page += &format!("| {number} | `{name}` | {} |\n", cell(text));
    }
}

fn add_composite(page: &mut String, composite: Node<'_, '_>) {
    let [name, text] = ["name", "description"].map(|key| value(composite, key));
    *page += &format!("\n### {name}\n\n{}.\n\n| part | encoding |\n|---|---|\n", text.trim_end_matches('.'));
    for part in composite.children().filter(|part| part.is_element()) {
        let encoding = match part.attribute("type") {
            Some(kind) => format!("`{kind}`"),
            None => encoding(part),
        };
        *page += &format!("| `{}` | {encoding} |\n", value(part, "name"));
    }
}

/// Returns the encoding of a simple type: its primitive type, the length of an array, and a constant value.
fn encoding(node: Node<'_, '_>) -> String {
    let mut text = format!("`{}`", value(node, "primitiveType"));
    if let Some(length) = node.attribute("length") {
        text += &format!(" × {length}");
    }
    if node.attribute("presence") == Some("constant") {
        text += &format!(", always {}", node.text().unwrap_or_default().trim());
    }
    text
}

fn elements<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Vec<Node<'a, 'input>> {
    node.children().filter(|child| child.is_element() && child.tag_name().name() == name).collect()
}

fn value<'a>(node: Node<'a, '_>, key: &str) -> &'a str {
    node.attribute(key).unwrap_or_default()
}
