//! Reads a dictionary in QuickFIX's XML form.
//!
//! ```text
//!   <fix type='FIX' major='4' minor='4' servicepack='0'>
//!     <header>        fields, groups and components
//!     <messages>      <message name='Logon' msgtype='A' msgcat='admin'>  fields, groups and components
//!     <trailer>       fields, groups and components
//!     <components>    <component name='Parties'>                         fields, groups and components
//!     <fields>        <field number='54' name='Side' type='CHAR'>        <value enum='1' description='BUY'/>
//!
//!   a field           <field name='Side' required='Y'/>
//!   a group           <group name='NoAllocs' required='N'>               fields, groups and components
//!   a component       <component name='Parties' required='N'/>
//! ```
//!
//! FIX 5.0 and later ones have no header and trailer: those are in the dictionary of the transport, FIXT.1.1.

use std::collections::HashSet;

use roxmltree::Document;

use super::definition::MessageCategory;
use super::error::{DictionaryError, DictionaryMistake};
use super::member::{Member, Section};
use super::parts::{DictionaryParts, MessageParts};
use super::xml_depth::{MAX_XML_DEPTH, too_deep_line};
use super::xml_fields::read_fields;
use super::xml_members::MemberReader;
use super::xml_source::{XmlSource, elements};
use crate::tags::{BEGIN_STRING, BODY_LENGTH, CHECK_SUM, MSG_SEQ_NUM, MSG_TYPE, Tag};

/// Version of a dictionary.
#[derive(Debug)]
struct Version {
    begin_string: String,
    /// The dictionary has a header and a trailer.
    has_frame: bool,
    is_before_4_2: bool,
}

/// Reads the text of the file with this name.
pub(crate) fn read_dictionary(xml: &str, file: &str) -> Result<DictionaryParts, DictionaryError> {
    let error = |line, mistake| DictionaryError { file: file.to_owned(), line, mistake };
    if let Some(line) = too_deep_line(xml) {
        return Err(error(line, DictionaryMistake::TooDeep { limit: MAX_XML_DEPTH }));
    }
    let document = Document::parse(xml);
    let document = document.map_err(|e| error(e.pos().row, DictionaryMistake::Xml(e.to_string())))?;
    read_document(XmlSource::new(&document, file))
}

fn read_document(source: XmlSource<'_, '_>) -> Result<DictionaryParts, DictionaryError> {
    let root = source.root();
    if !root.has_tag_name("fix") {
        return Err(source.error(root, DictionaryMistake::Root(root.tag_name().name().to_owned())));
    }
    let version = read_version(source)?;
    let fields = read_fields(source, version.is_before_4_2)?;
    let mut reader = MemberReader::new(source, fields)?;
    let header = [BEGIN_STRING, BODY_LENGTH, MSG_TYPE, MSG_SEQ_NUM];
    let header = read_frame(source, &mut reader, &version, ("header", Section::Header, &header))?;
    let trailer = read_frame(source, &mut reader, &version, ("trailer", Section::Trailer, &[CHECK_SUM]))?;
    let messages = read_messages(source, &mut reader)?;
    let read = reader.finish()?;
    Ok(DictionaryParts {
        begin_string: version.begin_string,
        spaces: std::iter::once(0..read.fields.len()).collect(),
        fields: read.fields,
        groups: read.groups,
        header,
        trailer,
        messages,
        data_pairs: read.data_pairs,
    })
}

fn read_version(source: XmlSource<'_, '_>) -> Result<Version, DictionaryError> {
    let root = source.root();
    let kind = root.attribute("type").unwrap_or("FIX");
    let (major, minor) = (source.attribute(root, "major")?, source.attribute(root, "minor")?);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_latest = major == "Latest";
    if !matches!(kind, "FIX" | "FIXT") || !(is_number(major) || is_latest) || !is_number(minor) {
        let (kind, major, minor) = (kind.to_owned(), major.to_owned(), minor.to_owned());
        return Err(source.error(root, DictionaryMistake::Version { kind, major, minor }));
    }
    let number = major.parse().unwrap_or(u32::MAX);
    let has_frame = kind == "FIXT" || number < 5;
    let pack = root.attribute("servicepack");
    let pack = pack.filter(|pack| !has_frame && is_number(pack) && !matches!(*pack, "" | "0"));
    let pack = pack.map(|pack| format!("SP{pack}")).unwrap_or_default();
    Ok(Version {
        begin_string: format!("{kind}.{major}.{minor}{pack}"),
        has_frame,
        is_before_4_2: kind == "FIX" && number == 4 && matches!(minor, "0" | "1"),
    })
}

/// Reads the header or the trailer, which must have the fields with these tags.
fn read_frame<'a, 'i>(
    source: XmlSource<'a, 'i>,
    reader: &mut MemberReader<'a, 'i>,
    version: &Version,
    (name, section, tags): (&'static str, Section, &[Tag]),
) -> Result<Vec<Member>, DictionaryError> {
    if !version.has_frame {
        return source.below_root(name).map_or(Ok(Vec::new()), |node| reader.read(node, section));
    }
    let node = source.section(name)?;
    let members = reader.read(node, section)?;
    match tags.iter().find(|tag| members.iter().all(|member| member.tag != **tag)) {
        Some(&tag) => Err(source.error(node, DictionaryMistake::NoFrameField { section: name, tag })),
        None => Ok(members),
    }
}

fn read_messages<'a, 'i>(
    source: XmlSource<'a, 'i>,
    reader: &mut MemberReader<'a, 'i>,
) -> Result<Vec<MessageParts>, DictionaryError> {
    let section = source.section("messages")?;
    let mut types = HashSet::new();
    let mut messages = Vec::new();
    for node in elements(section) {
        if !node.has_tag_name("message") {
            return Err(source.unknown(node, section, "<message>"));
        }
        let name = source.attribute(node, "name")?.to_owned();
        let msg_type = source.attribute(node, "msgtype")?;
        if !types.insert(msg_type) {
            let (what, name) = ("the message type", msg_type.to_owned());
            return Err(source.error(node, DictionaryMistake::Duplicate { what, name }));
        }
        let category = match node.attribute("msgcat") {
            Some("admin") => MessageCategory::Admin,
            Some("app") => MessageCategory::App,
            Some(category) => return Err(source.wrong_attribute(node, "msgcat", category, ["admin", "app"])),
            None if matches!(msg_type, "0" | "1" | "2" | "3" | "4" | "5" | "A") => MessageCategory::Admin,
            None => MessageCategory::App,
        };
        let members = reader.read(node, Section::Body)?;
        messages.push(MessageParts { name, msg_type: msg_type.as_bytes().to_owned(), category, space: 0, members });
    }
    Ok(messages)
}
