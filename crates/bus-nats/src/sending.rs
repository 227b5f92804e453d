//! Messages on their way to the server, and what becomes of each.

use async_nats::Subject;
use async_nats::jetstream::message::PublishMessage;
use tickpath_bus_api::{Fate, Origin};

use crate::connected::Connected;
use crate::error::{ServerError, is_not_stored};

/// A message as it is sent.
#[derive(Clone)]
pub(crate) struct Outgoing {
    /// Whose it is, and his which.
    pub origin: Origin,
    /// How often messages of its sender were refused before it.
    pub refusals: u16,
    /// With its header.
    pub bytes: Vec<u8>,
}

/// What has become of the messages of one call so far.
pub(crate) struct Sending {
    /// Of each.
    pub fates: Vec<Fate>,
    /// So many, from the first on, have been on their way, each whole.
    pub handed_over: usize,
    /// What was said to the first one that was refused.
    refusal: Option<ServerError>,
}

impl Sending {
    /// So many, of which none is sent yet.
    pub fn of(count: usize) -> Self {
        Self { fates: vec![Fate::NotPublished; count], handed_over: 0, refusal: None }
    }

    /// Those that are to be sent, or once more.
    pub fn not_published(&self) -> Vec<usize> {
        (0..self.fates.len()).filter(|&at| self.fates[at] != Fate::Published).collect()
    }

    /// Those of which nobody knows.
    pub fn unknown(&self) -> impl Iterator<Item = usize> {
        Fate::unknown(&self.fates)
    }

    /// What became of the first one that is not published.
    pub fn first_fate(&self) -> Fate {
        self.fates.iter().copied().find(|&fate| fate != Fate::Published).unwrap_or(Fate::Published)
    }

    /// How many from the first on have had their numbers: all up to the last one that is published, or may be.
    pub fn used(&self) -> usize {
        Fate::used(&self.fates)
    }

    /// These have been sent before and may be there, whatever was said to the last attempt.
    pub fn doubt(&mut self, sent: impl IntoIterator<Item = usize>) {
        for at in sent {
            if self.fates[at] == Fate::NotPublished {
                self.fates[at] = Fate::Unknown;
            }
        }
    }

    /// Why the first one that is not published is not, where all ended with this error.
    pub fn first_error(&mut self, end: ServerError) -> ServerError {
        if end.is_refused_publish() {
            for fate in self.fates.iter_mut().filter(|fate| **fate == Fate::Unknown) {
                *fate = Fate::NotPublished;
            }
        }
        self.refusal.take().unwrap_or(end)
    }

    fn hand_over(&mut self, at: usize) {
        self.fates[at] = Fate::Unknown;
        self.handed_over = self.handed_over.max(at + 1);
    }

    fn refuse(&mut self, at: usize, is_known: bool, error: ServerError) {
        if is_known {
            self.fates[at] = Fate::NotPublished;
        }
        self.refusal.get_or_insert(error);
    }
}

/// Returns when all is written to the socket. More is not confirmed.
pub(crate) async fn write(
    connected: &Connected,
    subject: &Subject,
    together: &[usize],
    message: &dyn Fn(usize) -> Outgoing,
    sending: &mut Sending,
) -> Result<(), ServerError> {
    for &at in together {
        connected.client.publish(subject.clone(), message(at).bytes.into()).await?;
        sending.hand_over(at);
    }
    connected.client.flush().await.map_err(ServerError::closed)?;
    for &at in together {
        sending.fates[at] = Fate::Published;
    }
    Ok(())
}

/// Sends all, then waits for all the confirmations, in the same order.
pub(crate) async fn store(
    connected: &Connected,
    subject: &Subject,
    together: &[usize],
    message: &dyn Fn(usize) -> Outgoing,
    sending: &mut Sending,
) -> Result<(), ServerError> {
    let mut confirmations = Vec::with_capacity(together.len());
    let mut end = Ok(());
    for &at in together {
        let Outgoing { origin, refusals, bytes } = message(at);
        let publish = PublishMessage::build().payload(bytes.into()).message_id(id(origin, refusals));
        match connected.context.send_publish(subject.clone(), publish).await {
            Ok(confirmation) => confirmations.push((at, confirmation)),
            Err(e) => {
                end = Err(e.into());
                break;
            }
        }
        sending.hand_over(at);
    }
    for (at, confirmation) in confirmations {
        match confirmation.await {
            Ok(_confirmed) => sending.fates[at] = Fate::Published,
            Err(e) => sending.refuse(at, is_not_stored(&e), e.into()),
        }
    }
    match sending.refusal.take() {
        Some(refusal) => Err(refusal),
        None => end,
    }
}

/// By what JetStream knows a message again. It may keep an id in mind whose message it has refused, and would take the
/// next one of that number for it: so that has another id.
fn id(origin: Origin, refusals: u16) -> String {
    format!("{:016x}{:016x}", origin.publisher, origin.number ^ u64::from(refusals) << 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_is_unknown_whatever_the_second_attempt_is_told() {
        let mut sending = Sending::of(4);
        (0..3).for_each(|at| sending.hand_over(at));
        let sent: Vec<usize> = sending.unknown().collect();
        assert_eq!(sent, [0, 1, 2]);
        sending.refuse(0, true, ServerError::Busy("maximum messages exceeded".to_owned()));
        sending.fates[1] = Fate::Published;
        let end = ServerError::Refused("Permissions Violation for Publish to \"a\"".to_owned());
        assert!(matches!(sending.first_error(end), ServerError::Busy(_)), "the first one is told");
        sending.doubt(sent);
        assert_eq!(sending.fates, [Fate::Unknown, Fate::Published, Fate::Unknown, Fate::NotPublished]);
    }

    #[test]
    fn a_number_that_was_refused_has_another_id() {
        let origin = Origin { clock: 1, publisher: 0x2a, number: 7 };
        assert_eq!(id(origin, 0), "000000000000002a0000000000000007");
        assert_eq!(id(origin, 1), "000000000000002a0001000000000007");
    }
}
