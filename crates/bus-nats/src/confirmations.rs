//! The server's answers to acknowledgements of a queue's messages: one answer each, all requested together.

use async_nats::jetstream::AckKind;
use async_nats::{StatusCode, Subject, Subscriber};
use futures_util::StreamExt;

use crate::connected::Connected;
use crate::error::ServerError;

/// The subscription that receives the answers.
pub(crate) struct Confirmations {
    address: String,
    subscription: Subscriber,
    /// The number of requests so far: each has an address of its own.
    questions: u64,
}

impl Confirmations {
    /// Subscribes.
    pub async fn open(connected: &Connected) -> Result<Self, ServerError> {
        let address = connected.client.new_inbox();
        let subscription = connected.client.subscribe(format!("{address}.*")).await.map_err(ServerError::closed)?;
        Ok(Self { address, subscription, questions: 0 })
    }

    /// Acknowledges the messages with these reply subjects; returns when the server has answered for each. Counts the
    /// answers in `confirmed` as they come.
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
                // A late answer to an earlier request.
                continue;
            }
            if answer.status == Some(StatusCode::NO_RESPONDERS) {
                // The server has no stream with such messages any more.
                return Err(ServerError::StreamGone);
            }
            *confirmed += 1;
        }
        Ok(())
    }
}
