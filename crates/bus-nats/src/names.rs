//! Names of topics and queues on the server. Each mapping is one to one.
//!
//! ```text
//!   topic  a.b..c.      subject  a.b/.c/             stream  tickpath-topic-a=b==c=
//!   queue  r1:orders    subject  queue/r1:orders     stream  tickpath-queue-r1+orders
//! ```
//! In a subject a point separates two tokens, and no token may be empty: a point that would leave an empty token is a
//! `/`. A stream's name has neither points nor, because it is also a file name, colons. Our own names hold no `/`, `=`
//! or `+`.

pub(crate) fn topic_subject(topic: &str) -> String {
    let separates_tokens = |point: usize| topic.as_bytes().get(point + 1).is_some_and(|&next| next != b'.');
    let mapped = |(index, letter): (usize, char)| if letter == '.' && !separates_tokens(index) { '/' } else { letter };
    topic.char_indices().map(mapped).collect()
}

/// Returns the subject of a queue; never that of a topic, where `/` comes before a point, before another `/`, or last.
pub(crate) fn queue_subject(queue: &str) -> String {
    format!("queue/{}", topic_subject(queue))
}

pub(crate) fn topic_stream(topic: &str) -> String {
    format!("tickpath-topic-{}", without_points(topic))
}

pub(crate) fn queue_stream(queue: &str) -> String {
    format!("tickpath-queue-{}", without_points(queue))
}

fn without_points(name: &str) -> String {
    let replaced = |letter| match letter {
        '.' => '=',
        ':' => '+',
        other => other,
    };
    name.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_mapped_one_to_one() {
        let names = names();
        for map in [topic_stream, queue_stream] {
            let streams: HashSet<String> = names.iter().map(|name| map(name)).collect();
            assert_eq!(streams.len(), names.len());
            assert!(streams.iter().all(|stream| !stream.contains(['.', ':', '*', '>', '/', '\\', ' '])));
        }
        let topics = names.iter().map(|name| topic_subject(name));
        let queues = names.iter().map(|name| queue_subject(name));
        let subjects: HashSet<String> = topics.chain(queues).collect();
        assert_eq!(subjects.len(), 2 * names.len());
        for subject in subjects {
            assert!(subject.split('.').all(|token| !token.is_empty()), "'{subject}' has an empty token");
        }
    }

    #[test]
    fn usual_names_equal_their_subjects() {
        for name in ["ticks", "r1:BTC-USDT", "venue.btc_usdt.book"] {
            assert_eq!(topic_subject(name), name);
        }
        assert_eq!(topic_subject("a.b..c."), "a.b/.c/");
        assert_eq!(topic_stream("a.b..c."), "tickpath-topic-a=b==c=");
    }

    /// Returns all names of up to six letters out of a few, and some that look like a queue's subject.
    fn names() -> Vec<String> {
        let mut names: Vec<String> = ["queue", "queue.", "queue..", "queue.a", "queue..a"].map(str::to_owned).to_vec();
        let mut last = vec![String::new()];
        for _length in 1..=6 {
            last = last.iter().flat_map(|name| ["a", ".", ":", "-"].map(|letter| format!("{name}{letter}"))).collect();
            names.extend(last.iter().filter(|name| !name.starts_with('.')).cloned());
        }
        names
    }
}
