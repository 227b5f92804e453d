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

/// Passes calls on to the wrapped receiver.
macro_rules! delegate {
    ($(fn $name:ident(self: $receiver:ty $(, $argument:ident: $type:ty)?) $(-> $result:ty)?;)+) => {
        $(fn $name(self: $receiver $(, $argument: $type)?) $(-> $result)? {
            self.inner.$name($($argument)?)
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
        fn idle(self: &mut Self) -> bool;
        fn set_warm_up(self: &mut Self, keep: bool);
        fn resume_token(self: &Self) -> Option<ResumeToken>;
        fn enable_bridge_mode(self: &mut Self);
        fn publisher_state(self: &Self) -> PublisherState;
        fn reconnects(self: &Self) -> Option<u64>;
        fn duplicates(self: &Self) -> Option<u64>;
        fn out_of_order(self: &Self) -> Option<u64>;
        fn outage(self: &Self) -> Option<String>;
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
        fn acknowledge(self: &mut Self) -> Result<(), ReceiveError>;
        fn give_back(self: &mut Self, tag: u64) -> Result<(), ReceiveError>;
        fn reconnects(self: &Self) -> Option<u64>;
        fn outage(self: &Self) -> Option<String>;
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
