//! What JetStream says about a message, in the subject that an acknowledgement goes to.
//!
//! ```text
//!   $JS.ACK.<stream>.<consumer>.<delivered>.<stream sequence>.<consumer sequence>.<time>.<pending>
//!   $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream sequence>.…              of newer servers
//! ```

/// What is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The message's place in its stream, from 0; the server counts from 1.
    pub sequence: u64,
    /// It was delivered before, to whomever.
    pub redelivered: bool,
}

impl Receipt {
    /// Reads it; none if this is no such subject.
    pub fn parse(reply: &str) -> Option<Self> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let before = match rest.split('.').count() {
            7 => 2,
            9.. => 4,
            _ => return None,
        };
        let mut tokens = rest.split('.').skip(before);
        let delivered: u64 = tokens.next()?.parse().ok()?;
        let sequence: u64 = tokens.next()?.parse().ok()?;
        Some(Self { sequence: sequence.checked_sub(1)?, redelivered: delivered > 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_of_old_and_new_servers_are_read() {
        let receipt = |sequence, redelivered| Some(Receipt { sequence, redelivered });
        for (reply, expected) in [
            ("$JS.ACK.tickpath-topic-a=b.j879eeYx.1.3.1.1795192033655981456.0", receipt(2, false)),
            ("$JS.ACK.tickpath-queue-q.tickpath.4.2.15.1795192039167302160.0", receipt(1, true)),
            ("$JS.ACK._.hash.stream.consumer.1.7.1.1795192033655981456.0", receipt(6, false)),
            ("$JS.ACK.hub.hash.stream.consumer.2.9.1.1795192033655981456.0.token", receipt(8, true)),
            ("$JS.ACK.stream.consumer.1.0.1.1795192033655981456.0", None),
            ("$JS.ACK.stream.consumer.1.3.1", None),
            ("$JS.ACK.stream.consumer.one.3.1.1795192033655981456.0", None),
            ("_INBOX.somebody.else", None),
        ] {
            assert_eq!(Receipt::parse(reply), expected, "{reply}");
        }
    }
}
