//! JetStream's metadata of a message, which it sends in the subject for the acknowledgement.
//!
//! ```text
//!   $JS.ACK.<stream>.<consumer>.<delivered>.<stream sequence>.<consumer sequence>.<time>.<pending>
//!   $JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream sequence>.…              by newer servers
//! ```

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The message's position in its stream, from 0; the server counts from 1.
    pub sequence: u64,
    /// The number of its deliveries to any puller, this one included.
    pub deliveries: u32,
    /// The time at which it came to its stream, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The number of messages that were not delivered yet at that moment; those that were given back do not count.
    pub pending: u64,
}

impl Receipt {
    /// Parses a reply subject; returns none for any other subject.
    pub fn parse(reply: &str) -> Option<Self> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let before = match rest.split('.').count() {
            7 => 2,
            9.. => 4,
            _ => return None,
        };
        let mut tokens = rest.split('.').skip(before);
        let mut number = || tokens.next()?.parse::<u64>().ok();
        let (delivered, sequence) = (number()?, number()?);
        let (_of_consumer, time_ns, pending) = (number()?, number()?, number()?);
        let deliveries = u32::try_from(delivered).unwrap_or(u32::MAX);
        Some(Self { sequence: sequence.checked_sub(1)?, deliveries, time_ns, pending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_of_old_and_new_servers_parse() {
        let receipt = |sequence, deliveries, time_ns, pending| Some(Receipt { sequence, deliveries, time_ns, pending });
        for (reply, expected) in [
            ("$JS.ACK.tickpath-topic-a=b.j879eeYx.1.3.1.1795192033655981456.0", receipt(2, 1, 1795192033655981456, 0)),
            ("$JS.ACK.tickpath-queue-q.tickpath.4.2.15.1795192039167302160.17", receipt(1, 4, 1795192039167302160, 17)),
            ("$JS.ACK._.hash.stream.consumer.1.7.1.1795192033655981456.3", receipt(6, 1, 1795192033655981456, 3)),
            ("$JS.ACK.hub.hash.stream.consumer.2.9.1.17.5.token", receipt(8, 2, 17, 5)),
            ("$JS.ACK.stream.consumer.1.0.1.1795192033655981456.0", None),
            ("$JS.ACK.stream.consumer.1.3.1", None),
            ("$JS.ACK.stream.consumer.one.3.1.1795192033655981456.0", None),
            ("$JS.ACK.stream.consumer.1.3.1.1795192033655981456.many", None),
            ("_INBOX.somebody.else", None),
        ] {
            assert_eq!(Receipt::parse(reply), expected, "{reply}");
        }
    }
}
