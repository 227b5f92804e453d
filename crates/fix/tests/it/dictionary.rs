//! Dictionaries: contents, mistakes with their lines, transport and application, and QuickFIX's own files.

use std::env;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tickpath_fix::{Dictionary, FieldType, Member, MessageCategory, Section};

/// A venue's dictionary: groups in the header, in a message, and inside each other; components, data, a custom message.
pub const VENUE: &str = "<fix type='FIX' major='4' minor='4' servicepack='0'>
 <header>
  <field name='BeginString' required='Y'/>
  <field name='BodyLength' required='Y'/>
  <field name='MsgType' required='Y'/>
  <field name='SenderCompID' required='Y'/>
  <field name='TargetCompID' required='Y'/>
  <field name='MsgSeqNum' required='Y'/>
  <field name='SendingTime' required='Y'/>
  <field name='PossDupFlag'/>
  <group name='NoHops' required='N'>
   <field name='HopCompID' required='N'/>
   <field name='HopSendingTime' required='N'/>
  </group>
 </header>
 <messages>
  <message name='Heartbeat' msgtype='0' msgcat='admin'>
   <field name='TestReqID' required='N'/>
  </message>
  <message name='NewOrderSingle' msgtype='D' msgcat='app'>
   <field name='ClOrdID' required='Y'/>
   <component name='Parties' required='N'/>
   <group name='NoAllocs' required='N'>
    <field name='AllocAccount' required='N'/>
    <field name='AllocQty' required='Y'/>
   </group>
   <field name='Side' required='Y'/>
   <field name='TransactTime' required='Y'/>
   <field name='OrderQty' required='N'/>
   <field name='ExecInst' required='N'/>
   <field name='PossDupFlag' required='N'/>
   <field name='OrderQty' required='N'/>
   <field name='VenueNoteLen' required='N'/>
   <field name='VenueNote' required='N'/>
   <field name='RecvWindow' required='N'/>
  </message>
  <message name='VenueStatistics' msgtype='XST'>
   <field name='Text' required='Y'/>
   <component name='Statistics' required='Y'/>
   <component name='MoreStatistics' required='N'/>
  </message>
 </messages>
 <trailer>
  <field name='SignatureLength' required='N'/>
  <field name='Signature' required='N'/>
  <field name='CheckSum' required='Y'/>
 </trailer>
 <components>
  <component name='Parties'>
   <group name='NoPartyIDs' required='N'>
    <field name='PartyID' required='N'/>
    <field name='PartyRole' required='N'/>
    <component name='SubParties' required='N'/>
   </group>
  </component>
  <component name='SubParties'>
   <group name='NoPartySubIDs' required='N'>
    <field name='PartySubID' required='Y'/>
    <field name='PartySubIDType' required='N'/>
   </group>
  </component>
  <component name='Statistics'>
   <field name='Latency' required='Y'/>
  </component>
  <component name='MoreStatistics'>
   <field name='Jitter' required='Y'/>
  </component>
 </components>
 <fields>
  <field number='8' name='BeginString' type='STRING'/>
  <field number='9' name='BodyLength' type='LENGTH'/>
  <field number='10' name='CheckSum' type='STRING'/>
  <field number='11' name='ClOrdID' type='STRING'/>
  <field number='18' name='ExecInst' type='MULTIPLEVALUESTRING'>
   <value enum='1' description='NOT_HELD'/>
   <value enum='G' description='ALL_OR_NONE'/>
  </field>
  <field number='34' name='MsgSeqNum' type='SEQNUM'/>
  <field number='35' name='MsgType' type='STRING'>
   <value enum='0' description='HEARTBEAT'/>
  </field>
  <field number='38' name='OrderQty' type='QTY'/>
  <field number='43' name='PossDupFlag' type='BOOLEAN'/>
  <field number='49' name='SenderCompID' type='STRING'/>
  <field number='52' name='SendingTime' type='UTCTIMESTAMP'/>
  <field number='54' name='Side' type='CHAR'>
   <value enum='1' description='BUY'/>
   <value enum='2' description='SELL'/>
  </field>
  <field number='56' name='TargetCompID' type='STRING'/>
  <field number='58' name='Text' type='STRING'/>
  <field number='60' name='TransactTime' type='UTCTIMESTAMP'/>
  <field number='78' name='NoAllocs' type='NUMINGROUP'/>
  <field number='79' name='AllocAccount' type='STRING'/>
  <field number='80' name='AllocQty' type='QTY'/>
  <field number='89' name='Signature' type='DATA'/>
  <field number='93' name='SignatureLength' type='LENGTH'/>
  <field number='112' name='TestReqID' type='STRING'/>
  <field number='447' name='PartyIDSource' type='CHAR'/>
  <field number='448' name='PartyID' type='STRING'/>
  <field number='452' name='PartyRole' type='INT'/>
  <field number='453' name='NoPartyIDs' type='NUMINGROUP'/>
  <field number='523' name='PartySubID' type='STRING'/>
  <field number='627' name='NoHops' type='NUMINGROUP'/>
  <field number='628' name='HopCompID' type='STRING'/>
  <field number='629' name='HopSendingTime' type='UTCTIMESTAMP'/>
  <field number='802' name='NoPartySubIDs' type='NUMINGROUP'/>
  <field number='803' name='PartySubIDType' type='INT'/>
  <field number='5001' name='VenueNoteLen' type='LENGTH'/>
  <field number='5002' name='VenueNote' type='DATA'/>
  <field number='9001' name='Latency' type='INT'/>
  <field number='9002' name='Jitter' type='INT'/>
  <field number='25000' name='RecvWindow' type='INT'/>
 </fields>
</fix>
";

/// The dictionary of an application over a transport, without header and trailer.
const APPLICATION: &str = "<fix type='FIX' major='5' minor='0' servicepack='2'>
 <header/>
 <trailer/>
 <messages>
  <message name='Quote' msgtype='S' msgcat='app'>
   <field name='Text' required='N'/>
   <group name='NoLegs' required='N'>
    <field name='LegUnit' required='Y'/>
   </group>
  </message>
  <message name='OtherHeartbeat' msgtype='0' msgcat='app'>
   <field name='Text' required='Y'/>
  </message>
 </messages>
 <fields>
  <field number='58' name='Text' type='CHAR'/>
  <field number='555' name='NoLegs' type='NUMINGROUP'/>
  <field number='999' name='LegUnit' type='STRING'/>
 </fields>
</fix>
";

/// Returns the dictionary of the venue.
pub fn venue() -> Dictionary {
    Dictionary::parse(VENUE, "venue.xml").unwrap_or_else(|e| panic!("{e}"))
}

/// Returns a dictionary of QuickFIX's sources, which are fetched with its session definitions.
pub fn stock(file: &str) -> Dictionary {
    let Some(definitions) = env::var_os("TICKPATH_QUICKFIX_DEFINITIONS") else {
        panic!("set TICKPATH_QUICKFIX_DEFINITIONS to the output of scripts/quickfix-definitions, which fetches {file}")
    };
    let path = PathBuf::from(definitions).join("../../../spec").join(file);
    let xml = fs::read_to_string(&path);
    let xml = xml.unwrap_or_else(|e| panic!("{}: {e}; run scripts/quickfix-definitions again", path.display()));
    Dictionary::parse(&xml, file).unwrap_or_else(|e| panic!("{e}"))
}

fn tags(members: &[Member]) -> Vec<u32> {
    members.iter().map(|member| member.tag).collect()
}

#[test]
fn fields_have_names_types_and_values() {
    let dictionary = venue();
    assert_eq!(dictionary.begin_string(), "FIX.4.4");
    let side = dictionary.field(54).expect("Side is defined");
    assert_eq!((side.tag(), side.name(), side.kind()), (54, "Side", FieldType::Char));
    let values: Vec<_> = side.values().iter().map(|one| (one.value.as_str(), one.description.as_str())).collect();
    assert_eq!(values, [("1", "BUY"), ("2", "SELL")]);
    assert!(side.is_enumerated() && side.allows(b"2") && !side.allows(b"3"));
    let instructions = dictionary.field(18).expect("ExecInst is defined");
    assert!(instructions.allows(b"1 G") && !instructions.allows(b"1 2"));
    assert_eq!(dictionary.field_by_name("RecvWindow"), Some(25_000));
    assert_eq!((dictionary.field_by_name("Nothing"), dictionary.field(57).map(|field| field.tag())), (None, None));
}

#[test]
fn messages_have_the_header_around_their_body_once() {
    let dictionary = venue();
    let order = dictionary.message(b"D").expect("orders are defined");
    assert_eq!((order.name(), order.msg_type(), order.category()), ("NewOrderSingle", &b"D"[..], MessageCategory::App));
    let header = [8, 9, 35, 49, 56, 34, 52, 43, 627];
    let body = [11, 453, 78, 54, 60, 38, 18, 5001, 5002, 25_000];
    assert_eq!(tags(order.members()), [&header[..], &body[..], &[93, 89, 10][..]].concat());
    let section = |tag| order.member(tag).map(|member| member.section);
    assert_eq!([43, 11, 10].map(section), [Section::Header, Section::Body, Section::Trailer].map(Some));
    let required: Vec<u32> =
        order.members().iter().filter(|member| member.is_required).map(|member| member.tag).collect();
    assert_eq!(required, [8, 9, 35, 49, 56, 34, 52, 11, 54, 60, 10]);
    assert_eq!(dictionary.message(b"0").map(|message| message.category()), Some(MessageCategory::Admin));
    let unknown: [&[u8]; 5] = [b"", b"1", b"XS", b"XSTX", b"\xff"];
    assert!(unknown.iter().all(|msg_type| dictionary.message(msg_type).is_none()));
}

#[test]
fn components_are_as_required_as_they_are_included() {
    let dictionary = venue();
    let statistics = dictionary.message(b"XST").expect("custom messages are defined");
    assert_eq!(statistics.category(), MessageCategory::App);
    let required = |tag| statistics.member(tag).map(|member| member.is_required);
    assert_eq!([58, 9_001, 9_002, 11].map(required), [Some(true), Some(true), Some(false), None]);
}

#[test]
fn groups_nest_and_begin_with_their_delimiter() {
    let dictionary = venue();
    let order = dictionary.message(b"D").expect("orders are defined");
    let parties = order.member(453).and_then(|count| count.group).expect("453 counts a group");
    let parties = dictionary.group(parties);
    assert_eq!((parties.count(), parties.delimiter(), tags(parties.members())), (453, 448, vec![448, 452, 802]));
    let inner = dictionary.group(parties.member(802).and_then(|count| count.group).expect("802 counts a group"));
    assert_eq!((inner.count(), inner.delimiter(), tags(inner.members())), (802, 523, vec![523, 803]));
    assert!(inner.member(523).is_some_and(|member| member.is_required));
    assert_eq!(order.member(448), None, "a group's field is no field of the message itself");
    let hops = order.member(627).and_then(|count| count.group).map(|group| dictionary.group(group).delimiter());
    assert_eq!(hops, Some(628));
}

#[test]
fn data_fields_are_found_by_the_length_before_them() {
    let data_tags = |dictionary: &Dictionary| [93, 95, 5_001, 5_002].map(|tag| dictionary.data_tags().data_of(tag));
    assert_eq!(data_tags(&venue()), [Some(89), Some(96), Some(5_002), None]);
    let joined = Dictionary::with_transport(&venue(), &application());
    assert_eq!(data_tags(&joined), [Some(89), Some(96), Some(5_002), None]);
    assert_eq!(data_tags(&application()), [Some(89), Some(96), None, None]);
}

fn application() -> Dictionary {
    Dictionary::parse(APPLICATION, "application.xml").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn an_application_gets_the_frame_and_the_messages_of_its_transport() {
    let (transport, application) = (venue(), application());
    assert_eq!(application.begin_string(), "FIX.5.0SP2");
    let joined = Dictionary::with_transport(&transport, &application);
    assert_eq!(joined.begin_string(), "FIX.4.4");
    let names: Vec<&str> = joined.messages().iter().map(|message| message.name()).collect();
    assert_eq!(names, ["Heartbeat", "NewOrderSingle", "VenueStatistics", "Quote"]);
    let quote = joined.message(b"S").expect("the application's messages are there");
    assert_eq!(tags(quote.members()), [8, 9, 35, 49, 56, 34, 52, 43, 627, 58, 555, 93, 89, 10]);
    let legs = joined.group(quote.member(555).and_then(|count| count.group).expect("555 counts a group"));
    assert_eq!((legs.count(), legs.delimiter()), (555, 999));
    let hops = joined.group(quote.member(627).and_then(|count| count.group).expect("627 counts a group"));
    assert_eq!(hops.delimiter(), 628);
    // Each message has the types of its own file.
    let kind = |msg_type: &[u8]| joined.message(msg_type).and_then(|message| message.member(58)).map(|one| one.kind);
    assert_eq!([kind(b"S"), kind(b"XST")], [Some(FieldType::Char), Some(FieldType::String)]);
    assert_eq!(joined.field(58).map(|field| field.kind()), Some(FieldType::Char));
    assert_eq!(joined.field_by_name("TestReqID"), Some(112));
}

#[test]
fn old_versions_have_texts_where_newer_ones_have_characters() {
    let kind = |minor: &str| {
        let xml = VENUE.replace("minor='4'", minor);
        let dictionary = Dictionary::parse(&xml, "old.xml").unwrap_or_else(|e| panic!("{e}"));
        (dictionary.begin_string().to_owned(), dictionary.field(54).map(|field| field.kind()))
    };
    assert_eq!(kind("minor='1'"), ("FIX.4.1".to_owned(), Some(FieldType::String)));
    assert_eq!(kind("minor='2'"), ("FIX.4.2".to_owned(), Some(FieldType::Char)));
}

/// Checks that a text in place of another is a mistake with this sentence, in the line where `place` begins.
#[track_caller]
fn check(old: &str, new: &str, place: &str, sentence: &str) {
    assert!(VENUE.contains(old), "'{old}' is in the dictionary");
    let xml = VENUE.replacen(old, new, 1);
    let begin = xml.find(place).expect("the place is in the changed dictionary");
    let line = 1 + xml[..begin].matches('\n').count();
    let error = Dictionary::parse(&xml, "venue.xml").expect_err("the dictionary has a mistake");
    assert_eq!(error.to_string(), format!("venue.xml, line {line}: {sentence}"));
}

#[test]
fn mistakes_in_fields_name_their_line_and_remedy() {
    let side = "<field number='54' name='Side' type='CHAR'>";
    let wrong = |new: &str, sentence: &str| check(side, new, new, sentence);
    wrong(
        "<field number='54' name='Side' type='CHARACTER'>",
        "the field 'Side' has the unknown type 'CHARACTER'; write a type of FIX, such as STRING, INT or PRICE",
    );
    for number in ["0", "-1", "1000000000", "54x", "+54x"] {
        wrong(
            &format!("<field number='{number}' name='Side' type='CHAR'>"),
            &format!("the field 'Side' has the number '{number}'; write a tag from 1 to 999999999"),
        );
    }
    wrong(
        "<field number='54' name='ClOrdID' type='CHAR'>",
        "the field 'ClOrdID' is defined a second time; rename it or remove one",
    );
    wrong("<field number='54' name='Side'>", "<field> has no type; write type='…' there");
    wrong("<field number='54' type='CHAR'>", "<field> has no name; write name='…' there");
    check("<value enum='2' ", "<value  ", "<value  ", "<value> has no enum; write enum='…' there");
    check(
        "<field number='58' name='Text' type='STRING'/>",
        "<feld number='58' name='Text' type='STRING'/>",
        "<feld",
        "<feld> is unknown in <fields>; write <field> there, or remove it",
    );
}

#[test]
fn the_second_of_two_fields_with_one_number_is_the_mistake() {
    check(
        "<field number='112' name='TestReqID'",
        "<field number='80' name='TestReqID'",
        "<field number='80' name='TestReqID'",
        "the fields 'AllocQty' and 'TestReqID' both have the number 80; correct one of them",
    );
}

#[test]
fn mistakes_in_messages_and_groups_name_their_line_and_remedy() {
    let allocation = "<field name='AllocAccount' required='N'/>";
    let wrong = |new: &str, sentence: &str| check(allocation, new, new, sentence);
    wrong(
        "<field name='AllocAcct' required='N'/>",
        "the group 'NoAllocs' has the field 'AllocAcct', which <fields> does not define; define it there or \
         correct the name",
    );
    wrong(
        "<component name='Party' required='N'/>",
        "the group 'NoAllocs' has the component 'Party', which <components> does not define; define it there or \
         correct the name",
    );
    wrong("<field name='AllocAccount' required='X'/>", "required='X' of <field> is neither Y nor N; write one of them");
    wrong(
        "<fields name='AllocAccount'/>",
        "<fields> is unknown in the group 'NoAllocs'; write <field>, <group> or <component> there, or remove it",
    );
    let fields = "\n    <field name='AllocAccount' required='N'/>\n    <field name='AllocQty' required='Y'/>";
    check(
        fields,
        "",
        "<group name='NoAllocs'",
        "the group 'NoAllocs' has no fields; list them, the first one begins each instance",
    );
    check(
        "<group name='NoAllocs'",
        "<group name='OrderQty'",
        "<group name='OrderQty'",
        "the group 'OrderQty' counts its instances in a field that is no number; give that field the type NUMINGROUP",
    );
    check(
        "<field name='TestReqID' required='N'/>",
        "<field name='TestReq'/>",
        "<field name='TestReq'/>",
        "the message 'Heartbeat' has the field 'TestReq', which <fields> does not define; define it there or \
         correct the name",
    );
    check(
        "msgtype='XST'",
        "msgtype='D'",
        "<message name='VenueStatistics'",
        "the message type 'D' is defined a second time; rename it or remove one",
    );
    check(
        "msgcat='app'",
        "msgcat='order'",
        "<message name='NewOrderSingle'",
        "msgcat='order' of <message> is neither admin nor app; write one of them",
    );
}

#[test]
fn a_component_never_contains_itself() {
    check(
        "<field name='PartySubIDType' required='N'/>",
        "<component name='Parties' required='N' />",
        "<component name='Parties' required='N' />",
        "the component 'Parties' contains itself; remove it from the group 'NoPartySubIDs'",
    );
    // A component that no message uses is checked, too.
    check(
        "<component name='SubParties'>",
        "<component name='Loop'>\n<component  name='Loop'/>\n</component>\n<component name='SubParties'>",
        "<component  name='Loop'/>",
        "the component 'Loop' contains itself; remove it from the component 'Loop'",
    );
    check(
        "<component name='MoreStatistics'>",
        "<component  name='Statistics'>",
        "<component  name='Statistics'>",
        "the component 'Statistics' is defined a second time; rename it or remove one",
    );
}

#[test]
fn a_dictionary_has_all_its_sections() {
    let section = |name: &str| {
        let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
        let from = VENUE.find(&begin).expect("the section begins");
        VENUE[from..VENUE.find(&end).expect("the section ends") + end.len()].to_owned()
    };
    for name in ["header", "trailer", "messages", "fields"] {
        let sentence = format!("<{name}> is missing or empty; add it below <fix> with its contents");
        check(&section(name), "", "<fix ", &sentence);
        check(&section(name), &format!("<{name}/>"), &format!("<{name}/>"), &sentence);
    }
    check(
        "<field name='MsgSeqNum' required='Y'/>",
        "",
        "<header>",
        "the header lacks the field with tag 34, which each message has; add it there",
    );
    check(
        "<field name='CheckSum' required='Y'/>",
        "",
        "<trailer>",
        "the trailer lacks the field with tag 10, which each message has; add it there",
    );
}

#[test]
fn a_text_of_another_form_is_no_dictionary() {
    let sentence = |xml: &str| Dictionary::parse(xml, "x.xml").expect_err("the text is no dictionary").to_string();
    let foreign = sentence("<sbe/>");
    assert_eq!(
        foreign,
        "x.xml, line 1: the root element is <sbe>, so this is no dictionary in QuickFIX's form; that begins with <fix>"
    );
    assert_eq!(sentence("<fix minor='4'/>"), "x.xml, line 1: <fix> has no major; write major='…' there");
    assert_eq!(
        sentence("\n<fix type='ITCH' major='4' minor='4'/>"),
        "x.xml, line 2: type='ITCH' major='4' minor='4' is no version of FIX; write FIX or FIXT, and numbers"
    );
    let broken = sentence("<fix>\n<header>\n</fix>");
    assert!(
        broken.starts_with("x.xml, line 3: this is not XML (") && broken.ends_with("; correct it there"),
        "{broken}"
    );
    let deep = sentence(&"<a>\n".repeat(100_000));
    assert_eq!(
        deep,
        "x.xml, line 65: elements, components and groups are nested more than 64 deep; nest fewer of them"
    );
}

/// Components that use each other in a chain reach a depth that the elements of the file do not.
#[test]
fn a_chain_of_components_has_an_end() {
    let link = |at: usize| format!("<component name='C{at}'><component name='C{}'/></component>", at + 1);
    let chain: String = (0..1_000).map(link).collect();
    let last = "<component name='C1000'><field name='Text'/></component>";
    let components = format!("<components>{chain}{last}");
    let xml = VENUE.replace("<components>", &components);
    let error = Dictionary::parse(&xml, "venue.xml").expect_err("the chain is too long").to_string();
    assert!(error.ends_with("nested more than 32 deep; nest fewer of them"), "{error}");
}

#[test]
fn dictionaries_of_quickfix_are_read() {
    for (file, begin_string, fields, messages) in [
        ("FIX40.xml", "FIX.4.0", 138, 27),
        ("FIX41.xml", "FIX.4.1", 206, 28),
        ("FIX42.xml", "FIX.4.2", 405, 46),
        ("FIX43.xml", "FIX.4.3", 635, 68),
        ("FIX44.xml", "FIX.4.4", 912, 93),
        ("FIX50.xml", "FIX.5.0", 1_090, 93),
        ("FIX50SP1.xml", "FIX.5.0SP1", 1_373, 105),
        ("FIX50SP2.xml", "FIX.5.0SP2", 1_452, 108),
        ("FIXT11.xml", "FIXT.1.1", 62, 7),
    ] {
        let dictionary = stock(file);
        let defined = (1..2_000).filter(|tag| dictionary.field(*tag).is_some()).count();
        let found = (dictionary.begin_string(), defined, dictionary.messages().len());
        assert_eq!(found, (begin_string, fields, messages), "{file}");
    }
}

#[test]
fn a_report_of_fix_5_0_sp2_has_groups_at_several_levels() {
    let dictionary = Dictionary::with_transport(&stock("FIXT11.xml"), &stock("FIX50SP2.xml"));
    let report = dictionary.message(b"8").expect("reports are defined");
    let parties = dictionary.group(report.member(453).and_then(|count| count.group).expect("453 counts a group"));
    let inner = parties.member(802).and_then(|count| count.group).map(|group| dictionary.group(group).delimiter());
    assert_eq!((parties.delimiter(), inner), (448, Some(523)));
    assert!(report.member(1128).is_some_and(|member| member.section == Section::Header));
}

proptest! {
    /// Any change of a dictionary's text is read or refused, and never a panic.
    #[test]
    fn no_text_panics(begin in 0..VENUE.len(), length in 0_usize..200, inserted in "[<>/='a-zA-Z0-9 ]{0,12}") {
        let end = (begin + length).min(VENUE.len());
        let xml = format!("{}{inserted}{}", &VENUE[..begin], &VENUE[end..]);
        if let Err(error) = Dictionary::parse(&xml, "venue.xml") {
            let lines = 1 + xml.matches('\n').count();
            prop_assert!((1..=lines).contains(&(error.line as usize)), "{}", error);
        }
    }
}
