//! What the server answers to what is said about messages of a queue: one answer to each, all asked for together.

use async_nats::jetstream::AckKind;
use async_nats::{StatusCode, Subject, Subscriber};
use futures_util::StreamExt;

use crate::connected::Connected;
use crate::error::ServerError;

/// Where the answers come to.
pub(crate) struct Confirmations {
    address: String,
    subscription: Subscriber,
    /// Each question has an address of its own.
    questions: u64,
}

impl Confirmations {
    /// Subscribes.
    pub async fn open(connected: &Connected) -> Result<Self, ServerError> {
        let address = connected.client.new_inbox();
        let subscription = connected.client.subscribe(format!("{address}.*")).await.map_err(ServerError::closed)?;
        Ok(Self { address, subscription, questions: 0 })
    }

    /// Says this of the messages with these reply subjects; returns when the server has answered to each. Those that it
    /// has answered to are counted as it does.
    pub async fn ask(
        &mut self,
        connected: &Connected,
        replies: &[Subject],
        kind: AckKind,
        confirmed: &mut usize,
    ) -> Result<(), ServerError> {
        self.questions += 1;
        let address = Subject::from(format!("{}.{}", self.address, self.questions));
        for reply in replies {
            connected.client.publish_with_reply(reply.clone(), address.clone(), kind.into()).await?;
        }
        while *confirmed < replies.len() {
            let answer = self.subscription.next().await.ok_or(ServerError::Closed)?;
            if answer.subject != address {
                // To an earlier question, late.
                continue;
            }
            if answer.status == Some(StatusCode::NO_RESPONDERS) {
                // It knows of nobody who has such messages.
                return Err(ServerError::StreamGone);
            }
            *confirmed += 1;
        }
        Ok(())
    }
}
