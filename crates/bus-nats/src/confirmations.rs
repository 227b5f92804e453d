//! The server's answers to acknowledgements of a queue's messages: one answer each, all requested together.

use async_nats::jetstream::AckKind;
use async_nats::{StatusCode, Subject, Subscriber};
use futures_util::StreamExt;

use crate::connection::NatsConnection;
use crate::error::{NatsServerError, ServerResult};

/// The subscription that receives the answers.
pub(crate) struct Confirmations {
    address: String,
    subscription: Subscriber,
    /// The number of requests so far: each has an address of its own.
    request_count: u64,
}

impl Confirmations {
    pub async fn open(connected: &NatsConnection) -> ServerResult<Self> {
        let address = connected.client.new_inbox();
        let subscription = connected.client.subscribe(format!("{address}.*")).await.map_err(NatsServerError::closed)?;
        Ok(Self { address, subscription, request_count: 0 })
    }

    /// Acknowledges the messages with these reply subjects; returns when the server has answered for each. Counts the
    /// answers in `confirmed` as they come.
    pub async fn confirm(
        &mut self,
        connected: &NatsConnection,
        replies: &[Subject],
        kind: AckKind,
        confirmed: &mut usize,
    ) -> ServerResult {
        self.request_count += 1;
        let address = Subject::from(format!("{}.{}", self.address, self.request_count));
        for reply in replies {
            connected.client.publish_with_reply(reply.clone(), address.clone(), kind.into()).await?;
        }
        while *confirmed < replies.len() {
            let answer = self.subscription.next().await.ok_or(NatsServerError::Closed)?;
            if answer.subject != address {
                // A late answer to an earlier request.
                continue;
            }
            if answer.status == Some(StatusCode::NO_RESPONDERS) {
                // The server has no stream with such messages any more.
                return Err(NatsServerError::StreamGone);
            }
            *confirmed += 1;
        }
        Ok(())
    }
}
