//! [`Wait::Adaptive`] over any transport that can sleep: the transport sleeps, this module decides when.

use tickpath_clock::{AdaptiveWait, HostClock, IdleAction, Wait, relax};

use crate::error::{ConnectError, LendError, ReceiveError};
use crate::lending::LendOutcome;
use crate::queue::{PulledMessage, Puller};
use crate::token::ResumeToken;
use crate::topic::{PublisherState, Subscriber, SubscriptionEvent};

/// Wraps a subscriber opened with [`Wait::Adaptive`], which then sleeps only when that strategy says so; returns any
/// other unchanged.
pub fn subscriber(wait: Wait, inner: impl Subscriber + 'static) -> Result<Box<dyn Subscriber>, ConnectError> {
    match wait {
        Wait::Adaptive => Ok(Box::new(AdaptiveReceiver { inner, wait_strategy: adaptive_wait()? })),
        _ => Ok(Box::new(inner)),
    }
}

/// Wraps a puller in the same way as [`subscriber`].
pub fn puller(wait: Wait, inner: impl Puller + 'static) -> Result<Box<dyn Puller>, ConnectError> {
    match wait {
        Wait::Adaptive => Ok(Box::new(AdaptiveReceiver { inner, wait_strategy: adaptive_wait()? })),
        _ => Ok(Box::new(inner)),
    }
}

fn adaptive_wait() -> Result<AdaptiveWait<HostClock>, ConnectError> {
    HostClock::get().map(AdaptiveWait::new).map_err(|e| ConnectError::Other(Box::new(e)))
}

struct AdaptiveReceiver<T> {
    inner: T,
    wait_strategy: AdaptiveWait<HostClock>,
}

impl<T: Subscriber> Subscriber for AdaptiveReceiver<T> {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(SubscriptionEvent<'_>)) -> Result<usize, ReceiveError> {
        let found = self.inner.poll(limit, handler)?;
        if found > 0 {
            self.wait_strategy.note_work();
        }
        Ok(found)
    }

    fn lend(&mut self) -> Result<LendOutcome, LendError> {
        let found = self.inner.lend()?;
        if !matches!(found, LendOutcome::Nothing) {
            self.wait_strategy.note_work();
        }
        Ok(found)
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait_strategy.next_action(timeout_ns) {
            IdleAction::Sleep(ns) => {
                self.inner.wait(ns);
                self.wait_strategy.note_wake_up();
            }
            IdleAction::Spin | IdleAction::Yield => _ = self.inner.idle(),
        }
    }

    fn idle(&mut self) -> bool {
        self.inner.idle()
    }

    fn set_warm_up(&mut self, keep: bool) {
        self.inner.set_warm_up(keep);
    }

    fn resume_token(&self) -> Option<ResumeToken> {
        self.inner.resume_token()
    }

    fn enable_bridge_mode(&mut self) {
        self.inner.enable_bridge_mode();
    }

    fn publisher_state(&self) -> PublisherState {
        self.inner.publisher_state()
    }

    fn reconnects(&self) -> Option<u64> {
        self.inner.reconnects()
    }

    fn duplicates(&self) -> Option<u64> {
        self.inner.duplicates()
    }

    fn out_of_order(&self) -> Option<u64> {
        self.inner.out_of_order()
    }

    fn outage(&self) -> Option<String> {
        self.inner.outage()
    }
}

impl<T: Puller> Puller for AdaptiveReceiver<T> {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(PulledMessage<'_>)) -> Result<usize, ReceiveError> {
        let found = self.inner.pull(limit, handler)?;
        if found > 0 {
            self.wait_strategy.note_work();
        }
        Ok(found)
    }

    fn acknowledge(&mut self) -> Result<(), ReceiveError> {
        self.inner.acknowledge()
    }

    fn give_back(&mut self, tag: u64) -> Result<(), ReceiveError> {
        self.inner.give_back(tag)
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.wait_strategy.next_action(timeout_ns) {
            IdleAction::Sleep(ns) => {
                self.inner.wait(ns);
                self.wait_strategy.note_wake_up();
            }
            IdleAction::Spin | IdleAction::Yield => relax(),
        }
    }

    fn reconnects(&self) -> Option<u64> {
        self.inner.reconnects()
    }

    fn outage(&self) -> Option<String> {
        self.inner.outage()
    }
}
