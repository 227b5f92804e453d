//! A session with its store, its frame reader and an application that keeps a list of events; and small dictionaries.

use std::fmt::Write;
use std::sync::Arc;

use tickpath_fix::{
    AppAnswer, BeginString, DataTags, Dictionary, FieldTable, FrameReader, MemoryStore, Message, Role, SendError,
    SequenceNumbers, Session, SessionConfig, SessionEvent, SessionIo, check_sum, tags,
};

/// 2026-11-30 09:00:00 UTC.
pub const BEGIN_NS: u64 = 1_796_029_200_000_000_000;
pub const SECOND_NS: u64 = 1_000_000_000;

/// Number, name and type of each field.
const FIELDS: &[(u32, &str, &str)] = &[
    (7, "BeginSeqNo", "SEQNUM"),
    (8, "BeginString", "STRING"),
    (9, "BodyLength", "LENGTH"),
    (10, "CheckSum", "STRING"),
    (11, "ClOrdID", "STRING"),
    (16, "EndSeqNo", "SEQNUM"),
    (34, "MsgSeqNum", "SEQNUM"),
    (35, "MsgType", "STRING"),
    (36, "NewSeqNo", "SEQNUM"),
    (43, "PossDupFlag", "BOOLEAN"),
    (45, "RefSeqNum", "SEQNUM"),
    (49, "SenderCompID", "STRING"),
    (50, "SenderSubID", "STRING"),
    (52, "SendingTime", "UTCTIMESTAMP"),
    (56, "TargetCompID", "STRING"),
    (57, "TargetSubID", "STRING"),
    (58, "Text", "STRING"),
    (95, "RawDataLength", "LENGTH"),
    (96, "RawData", "DATA"),
    (97, "PossResend", "BOOLEAN"),
    (98, "EncryptMethod", "INT"),
    (108, "HeartBtInt", "INT"),
    (112, "TestReqID", "STRING"),
    (122, "OrigSendingTime", "UTCTIMESTAMP"),
    (123, "GapFillFlag", "BOOLEAN"),
    (141, "ResetSeqNumFlag", "BOOLEAN"),
    (371, "RefTagID", "INT"),
    (372, "RefMsgType", "STRING"),
    (373, "SessionRejectReason", "INT"),
    (380, "BusinessRejectReason", "INT"),
    (553, "Username", "STRING"),
    (554, "Password", "STRING"),
    (789, "NextExpectedMsgSeqNum", "SEQNUM"),
    (1128, "ApplVerID", "STRING"),
    (1137, "DefaultApplVerID", "STRING"),
];

/// Fields of the header; those with `!` are required.
const HEADER: &str = "BeginString! BodyLength! MsgType! MsgSeqNum! PossDupFlag SenderCompID! SenderSubID SendingTime! \
                      TargetCompID! TargetSubID PossResend OrigSendingTime ApplVerID";

/// Type and fields of each message of the session.
const SESSION_MESSAGES: &[(&str, &str)] = &[
    ("0", "TestReqID"),
    ("1", "TestReqID!"),
    ("2", "BeginSeqNo! EndSeqNo!"),
    ("3", "RefSeqNum! RefTagID RefMsgType SessionRejectReason Text"),
    ("4", "GapFillFlag NewSeqNo!"),
    ("5", "Text"),
    (
        "A",
        "EncryptMethod! HeartBtInt! RawDataLength RawData ResetSeqNumFlag NextExpectedMsgSeqNum Username Password \
         DefaultApplVerID",
    ),
];

/// Type and fields of each message of the application.
const APPLICATION_MESSAGES: &[(&str, &str)] = &[
    ("D", "ClOrdID! Text RawDataLength RawData"),
    ("8", "ClOrdID Text"),
    ("AE", "ClOrdID Text"),
    ("j", "RefSeqNum RefMsgType BusinessRejectReason! Text"),
];

/// A side of a connection: session, store and application.
pub struct End {
    pub session: Session,
    pub store: MemoryStore,
    pub out: Vec<u8>,
    pub events: Vec<String>,
    /// ClOrdIDs (11) of the messages that reached the application.
    pub delivered: Vec<String>,
    pub answer: AppAnswer,
    /// The session has not ended the connection.
    pub is_open: bool,
    reader: FrameReader,
}

impl End {
    pub fn new(config: SessionConfig) -> Self {
        Self::with_numbers(config, SequenceNumbers::FIRST)
    }

    pub fn with_numbers(config: SessionConfig, numbers: SequenceNumbers) -> Self {
        let dictionary = dictionary(config.begin_string);
        Self {
            session: Session::new(config, dictionary, numbers),
            store: MemoryStore::new(10_000, 1 << 22),
            out: Vec::new(),
            events: Vec::new(),
            delivered: Vec::new(),
            answer: AppAnswer::Taken,
            is_open: false,
            reader: FrameReader::new(1 << 16),
        }
    }

    /// Calls the session.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut Session, &mut SessionIo<'_>) -> T) -> T {
        let Self { session, store, out, events, delivered, answer, is_open, .. } = self;
        let mut take = |event: SessionEvent<'_>| {
            if let SessionEvent::Message { message, .. } = event {
                delivered.push(text(message.get(tags::CL_ORD_ID).unwrap_or_default()));
            }
            if matches!(event, SessionEvent::Disconnect(_)) {
                *is_open = false;
            }
            events.extend(described(event));
            answer.clone()
        };
        call(session, &mut SessionIo { out, store, events: &mut take })
    }

    pub fn connect(&mut self, now_ns: u64) {
        (self.is_open, self.reader) = (true, FrameReader::new(1 << 16));
        self.out.clear();
        self.call(|session, io| session.connected(now_ns, io));
    }

    pub fn disconnect(&mut self, now_ns: u64) {
        self.is_open = false;
        self.call(|session, io| session.disconnected(now_ns, io));
    }

    pub fn poll(&mut self, now_ns: u64) {
        self.call(|session, io| session.poll(now_ns, io));
    }

    /// Takes bytes of the peer, until the session ends the connection.
    pub fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        self.reader.extend(bytes);
        let mut pieces = Vec::new();
        while let Some(next) = self.reader.next() {
            pieces.push(next.map(|frame| frame.bytes.to_vec()));
        }
        for piece in pieces {
            if !self.is_open {
                return;
            }
            match piece {
                Ok(frame) => self.call(|session, io| session.receive(&frame, now_ns, io)),
                Err(_) => self.call(|session, io| session.garbled(now_ns, io)),
            }
        }
    }

    /// Sends an application message of this type with this ClOrdID (11).
    pub fn send(&mut self, msg_type: &str, id: &str, now_ns: u64) -> Result<u64, SendError> {
        self.call(|session, io| session.send(msg_type.as_bytes(), now_ns, io, |body| body.text(tags::CL_ORD_ID, id)))
    }
}

/// Returns an event in words; `None` for the request of a logon.
fn described(event: SessionEvent<'_>) -> Option<String> {
    Some(match event {
        SessionEvent::LogonRequest { .. } => return None,
        SessionEvent::LoggedOn { heartbeat_s, .. } => format!("logged on, heartbeat {heartbeat_s}"),
        SessionEvent::Message { message, number, possible_duplicate, possible_resend } => {
            let duplicate = if possible_duplicate { ", duplicate" } else { "" };
            let resend = if possible_resend { ", resend" } else { "" };
            format!("message {number} {}{duplicate}{resend}", text(message.msg_type()))
        }
        SessionEvent::Rejected { number, text: why, .. } => format!("rejected {}: {}", number.unwrap_or(0), text(why)),
        SessionEvent::Skipped { from, to } => format!("skipped {from} to {to}"),
        SessionEvent::LoggedOut { text: b"" } => "logged out".to_owned(),
        SessionEvent::LoggedOut { text: why } => format!("logged out: {}", text(why)),
        SessionEvent::NumbersReset => "reset".to_owned(),
        SessionEvent::Disconnect(reason) => format!("end {reason:?}"),
        SessionEvent::Alarm(_) => "alarm".to_owned(),
    })
}

/// Usual settings of a session of this role.
pub fn config(role: Role, begin_string: BeginString) -> SessionConfig {
    SessionConfig::new(role, begin_string, "US", "THEM")
}

/// Makes a frame of fields with `|` behind each: BeginString, BodyLength and CheckSum are added.
pub fn frame(begin_string: &str, body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut frame = format!("8={begin_string}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = check_sum(&frame);
    frame.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    frame
}

/// Returns the sent messages, each with `|` behind its fields. Fields that are the same in all of them, and those about
/// times, are left out.
pub fn shown(bytes: &[u8]) -> Vec<String> {
    let (mut reader, mut table, mut messages) = (FrameReader::new(1 << 20), FieldTable::new(), Vec::new());
    reader.extend(bytes);
    while let Some(next) = reader.next() {
        let frame = next.expect("a session sends messages only");
        let message = table.read(frame.bytes, &DataTags::standard()).expect("a session sends right fields");
        messages.push(shown_message(&message));
    }
    assert_eq!(reader.unread(), 0, "a session sends whole messages");
    messages
}

fn shown_message(message: &Message<'_>) -> String {
    let left_out = [tags::BEGIN_STRING, tags::BODY_LENGTH, tags::CHECK_SUM, tags::SENDER_COMP_ID, tags::TARGET_COMP_ID];
    let times = [tags::SENDING_TIME, tags::ORIG_SENDING_TIME];
    let mut shown = String::new();
    for field in message.fields() {
        if !left_out.contains(&field.tag) && !times.contains(&field.tag) {
            write!(shown, "{}={}|", field.tag, text(message.value(field))).expect("a String takes any text");
        }
    }
    shown
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\x01', "^")
}

/// Returns the dictionary of a version.
fn dictionary(begin_string: BeginString) -> Arc<Dictionary> {
    let parsed = |xml: String| Dictionary::parse(&xml, "test.xml").unwrap_or_else(|e| panic!("{e}"));
    let all = [SESSION_MESSAGES, APPLICATION_MESSAGES].concat();
    Arc::new(match begin_string {
        BeginString::Fixt11 => {
            let transport = parsed(xml("type='FIXT' major='1' minor='1'", true, SESSION_MESSAGES));
            let application =
                parsed(xml("type='FIX' major='5' minor='0' servicepack='2'", false, APPLICATION_MESSAGES));
            Dictionary::with_transport(&transport, &application)
        }
        version => {
            let minor = version.text().trim_start_matches("FIX.4.");
            parsed(xml(&format!("type='FIX' major='4' minor='{minor}'"), true, &all))
        }
    })
}

fn xml(version: &str, has_frame: bool, messages: &[(&str, &str)]) -> String {
    let mut xml = format!("<fix {version}>");
    if has_frame {
        xml += &format!("<header>{}</header>", members(HEADER));
    }
    xml += "<messages>";
    for (msg_type, fields) in messages {
        let category = if SESSION_MESSAGES.iter().any(|(known, _)| known == msg_type) { "admin" } else { "app" };
        let (name, fields) = (format!("Message{msg_type}"), members(fields));
        xml += &format!("<message name='{name}' msgtype='{msg_type}' msgcat='{category}'>{fields}</message>");
    }
    xml += "</messages>";
    if has_frame {
        xml += &format!("<trailer>{}</trailer>", members("CheckSum!"));
    }
    xml += "<fields>";
    for (number, name, kind) in FIELDS {
        xml += &format!("<field number='{number}' name='{name}' type='{kind}'/>");
    }
    xml + "</fields></fix>"
}

fn members(names: &str) -> String {
    let member = |name: &str| {
        let required = if name.ends_with('!') { 'Y' } else { 'N' };
        format!("<field name='{}' required='{required}'/>", name.trim_end_matches('!'))
    };
    names.split_whitespace().map(member).collect()
}
