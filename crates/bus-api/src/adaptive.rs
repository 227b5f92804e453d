//! [`Wait::Adaptive`] over any transport that can sleep: the transport sleeps, this module decides when.

use tickpath_clock::{AdaptiveWait, HostClock, IdleAction, Wait, relax};

use crate::error::{ConnectError, LendError, ReceiveError};
use crate::lending::LendOutcome;
use crate::queue::{PulledMessage, Puller};
use crate::token::ResumeToken;
use crate::topic::{PublisherState, Subscriber, SubscriptionEvent};

/// Wraps a subscriber opened with [`Wait::Adaptive`], so that it sleeps only when that strategy decides.
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

/// Passes calls on to the wrapped receiver.
macro_rules! delegate {
    (
        &mut self: $(fn $change:ident($($argument:ident: $type:ty)?) $(-> $changed:ty)?;)+
        &self: $(fn $query:ident() -> $answer:ty;)+
    ) => {
        $(fn $change(&mut self $(, $argument: $type)?) $(-> $changed)? {
            self.inner.$change($($argument)?)
        })+
        $(fn $query(&self) -> $answer {
            self.inner.$query()
        })+
    };
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

    delegate! {
        &mut self:
        fn idle() -> bool;
        fn set_warm_up(keep: bool);
        fn enable_bridge_mode();
        &self:
        fn resume_token() -> Option<ResumeToken>;
        fn publisher_state() -> PublisherState;
        fn reconnects() -> Option<u64>;
        fn duplicates() -> Option<u64>;
        fn out_of_order() -> Option<u64>;
        fn outage() -> Option<String>;
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

    delegate! {
        &mut self:
        fn acknowledge() -> Result<(), ReceiveError>;
        fn give_back(tag: u64) -> Result<(), ReceiveError>;
        &self:
        fn reconnects() -> Option<u64>;
        fn outage() -> Option<String>;
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
}
