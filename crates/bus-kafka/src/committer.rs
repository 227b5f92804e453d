//! Commits offsets on a separate thread, so that waiting for the answer has a timeout.
//!
//! The client library has two commit calls. The synchronous call waits for the answer as long as the server is stalled.
//! The asynchronous call's answer is not available here: rdkafka calls `ConsumerContext::commit_callback` only for the
//! library's own commits. So this thread waits in the synchronous call.
//!
//! Answers do not name their commit, and a commit that the library resends may arrive after a later one. So one commit
//! is in flight at a time: the next one is sent after the answer to the last one, however late.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rdkafka::error::KafkaResult;

use crate::partitions::OffsetCommit;

pub(crate) struct Committer {
    /// None while the committer is dropped.
    requests: Option<Sender<Vec<OffsetCommit>>>,
    answers: Receiver<KafkaResult<()>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread, on which `commit` sends offsets and waits for the answer.
    pub fn start(mut commit: impl FnMut(&[OffsetCommit]) -> KafkaResult<()> + Send + 'static) -> io::Result<Self> {
        let (requests, receiver) = channel::<Vec<OffsetCommit>>();
        let (answer, answers) = channel();
        let work = move || {
            for offsets in receiver {
                // The receiver is gone if the puller was dropped meanwhile.
                let _ = answer.send(commit(&offsets));
            }
        };
        let thread = Builder::new().name("kafka-commit".to_owned()).spawn(work)?;
        Ok(Self { requests: Some(requests), answers, is_busy: false, thread: Some(thread) })
    }

    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Sends these offsets. No answer may be outstanding.
    pub fn send(&mut self, offsets: Vec<OffsetCommit>) {
        assert!(!self.is_busy, "one is on its way at a time");
        let requests = self.requests.as_ref().expect("it ends with its owner");
        requests.send(offsets).expect("the thread ends behind its requests");
        self.is_busy = true;
    }

    /// Returns the answer to the last commit, if it arrives within the timeout.
    pub fn wait_for_answer(&mut self, timeout: Duration) -> Option<KafkaResult<()>> {
        match self.answers.recv_timeout(timeout) {
            Ok(answer) => {
                self.is_busy = false;
                Some(answer)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the thread ends behind its requests"),
        }
    }
}

impl Drop for Committer {
    /// Joins the thread, which drops its consumer, unless an answer is outstanding. Then the thread ends by itself when
    /// the answer has come.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && !self.is_busy
        {
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::TryRecvError;

    use rdkafka::error::{KafkaError, RDKafkaErrorCode};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a committer whose answers the test sends, and the offsets that it commits as long as its thread runs.
    fn server() -> (Committer, Sender<KafkaResult<()>>, Receiver<i64>) {
        let (release, gate) = channel();
        let (sent, commits) = channel();
        let commit = move |offsets: &[OffsetCommit]| {
            offsets.iter().for_each(|entry| sent.send(entry.offset).unwrap());
            gate.recv().unwrap()
        };
        (Committer::start(commit).unwrap(), release, commits)
    }

    fn offsets(offset: i64) -> Vec<OffsetCommit> {
        vec![OffsetCommit { partition: 3, offset, note: String::new() }]
    }

    #[test]
    fn a_commit_wait_times_out_and_the_answer_still_arrives() {
        let refused = Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::UnknownMemberId));
        let (mut committer, release, commits) = server();
        for (offset, answer) in [(5, Ok(())), (7, refused)] {
            committer.send(offsets(offset));
            assert_eq!(commits.recv(), Ok(offset));
            for timeout in [Duration::ZERO, Duration::from_millis(1)] {
                assert_eq!((committer.wait_for_answer(timeout), committer.is_busy()), (None, true));
            }
            release.send(answer.clone()).unwrap();
            assert_eq!((committer.wait_for_answer(PATIENCE), committer.is_busy()), (Some(answer), false));
        }
        drop(committer);
        assert_eq!(commits.try_recv(), Err(TryRecvError::Disconnected), "its thread has ended");
    }

    #[test]
    fn a_dropped_committer_waits_for_no_answer() {
        let (mut committer, release, commits) = server();
        committer.send(offsets(5));
        assert_eq!(commits.recv(), Ok(5));
        drop(committer);
        assert_eq!(commits.try_recv(), Err(TryRecvError::Empty), "its thread waits for the answer");
        release.send(Ok(())).unwrap();
        assert!(commits.recv().is_err(), "then it ends");
    }
}
