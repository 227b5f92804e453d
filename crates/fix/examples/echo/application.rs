//! Application of the echo acceptor: it sends orders (D), security definitions (d) and emails (C) back as they came,
//! and rejects all other types (j, reason 3).
//!
//! An order with PossResend (97) is ignored if an order with its ClOrdID (11) came before, since the logon. The fields
//! of a reply are in the order of their tags, as in the session definitions of QuickFIX.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use tickpath_fix::{AppAnswer, Dictionary, Field, GroupId, Message, SOH, Section, SessionEvent, tags};

/// Value of BusinessRejectReason (380): the type of the message is not supported.
const UNSUPPORTED_TYPE: &[u8] = b"3";

/// A message that answers a received one.
pub struct Reply {
    /// MsgType (35).
    pub msg_type: Vec<u8>,
    /// Fields behind the header, each with its delimiter.
    pub body: Vec<u8>,
}

/// The application. It queues its replies: a session sends them after the call that reported their messages.
pub struct EchoApplication {
    dictionary: Arc<Dictionary>,
    /// ClOrdIDs (11) since the logon.
    order_ids: HashSet<Vec<u8>>,
    /// DefaultApplVerID (1137) of the peer's Logon, over FIXT.
    appl_ver_id: Option<Vec<u8>>,
    replies: VecDeque<Reply>,
}

impl EchoApplication {
    /// Makes the application of a session with this dictionary.
    pub fn new(dictionary: Arc<Dictionary>) -> Self {
        Self { dictionary, order_ids: HashSet::new(), appl_ver_id: None, replies: VecDeque::new() }
    }

    /// Takes an event of the session.
    pub fn handle(&mut self, event: SessionEvent<'_>) -> AppAnswer {
        match event {
            SessionEvent::LoggedOn { message, .. } => {
                self.appl_ver_id = message.get(tags::DEFAULT_APPL_VER_ID).map(<[u8]>::to_vec);
                AppAnswer::Taken
            }
            SessionEvent::LoggedOut { .. } => {
                self.order_ids.clear();
                self.replies.clear();
                AppAnswer::Taken
            }
            SessionEvent::Message { message, possible_resend, .. } => self.take(&message, possible_resend),
            _ => AppAnswer::Taken,
        }
    }

    /// Returns the next reply to send.
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    fn take(&mut self, message: &Message<'_>, possible_resend: bool) -> AppAnswer {
        match message.msg_type() {
            b"D" => {
                let is_new = self.order_ids.insert(message.get(tags::CL_ORD_ID).unwrap_or_default().to_vec());
                if is_new || !possible_resend {
                    self.echo(message);
                }
                AppAnswer::Taken
            }
            b"d" | b"C" => {
                self.echo(message);
                AppAnswer::Taken
            }
            _ => self.reject(message),
        }
    }

    fn echo(&mut self, message: &Message<'_>) {
        let mut body = Vec::new();
        if let Some(flag) = message.get(tags::POSS_RESEND) {
            append(&mut body, tags::POSS_RESEND, flag);
        }
        for block in sorted_blocks(&self.dictionary, message) {
            for field in &message.fields()[block] {
                append(&mut body, field.tag, message.value(field));
            }
        }
        self.replies.push_back(Reply { msg_type: message.msg_type().to_vec(), body });
    }

    /// Rejects a message of another type. Over FIXT the definitions of QuickFIX expect the version behind the reason,
    /// for which the application writes the reject itself.
    fn reject(&mut self, message: &Message<'_>) -> AppAnswer {
        let Some(appl_ver_id) = &self.appl_ver_id else { return AppAnswer::UnsupportedType };
        let mut body = Vec::new();
        append(&mut body, tags::REF_SEQ_NUM, message.get(tags::MSG_SEQ_NUM).unwrap_or_default());
        append(&mut body, tags::TEXT, b"Unsupported Message Type");
        append(&mut body, tags::REF_MSG_TYPE, message.msg_type());
        append(&mut body, tags::BUSINESS_REJECT_REASON, UNSUPPORTED_TYPE);
        append(&mut body, tags::DEFAULT_APPL_VER_ID, appl_ver_id);
        self.replies.push_back(Reply { msg_type: b"j".to_vec(), body });
        AppAnswer::Taken
    }
}

fn append(body: &mut Vec<u8>, tag: u32, value: &[u8]) {
    body.extend_from_slice(tag.to_string().as_bytes());
    body.push(b'=');
    body.extend_from_slice(value);
    body.push(SOH);
}

/// Returns the body of a message in the order of its tags, as ranges of fields: a field alone, or the count of a
/// repeating group with its instances.
fn sorted_blocks(dictionary: &Dictionary, message: &Message<'_>) -> Vec<Range<usize>> {
    let Some(definition) = dictionary.message(message.msg_type()) else { return Vec::new() };
    let fields = message.fields();
    let (mut blocks, mut at) = (Vec::new(), 0);
    while let Some(field) = fields.get(at) {
        let begin = at;
        at += 1;
        let Some(member) = definition.member(field.tag) else { continue };
        if let Some(group) = member.group.filter(|_| message.value(field) != b"0") {
            at = group_end(dictionary, group, fields, at);
        }
        if member.section == Section::Body {
            blocks.push(begin..at);
        }
    }
    blocks.sort_by_key(|block| fields[block.start].tag);
    blocks
}

/// Returns the index behind the instances of a group that begin at this one.
fn group_end(dictionary: &Dictionary, group: GroupId, fields: &[Field], mut at: usize) -> usize {
    let definition = dictionary.group(group);
    while let Some(member) = fields.get(at).and_then(|field| definition.member(field.tag)) {
        at += 1;
        if let Some(inner) = member.group {
            at = group_end(dictionary, inner, fields, at);
        }
    }
    at
}
