//! [`Wait::Adaptive`] over any transport that can sleep: the transport sleeps, this module decides when.

use tickpath_clock::{AdaptiveWait, HostClock, Rest, Wait, relax};

use crate::error::{ConnectError, LendError, ReceiveError};
use crate::lent::Lending;
use crate::queue::{Pulled, Puller};
use crate::token::ResumeToken;
use crate::topic::{Event, PublisherState, Subscriber};

/// Wraps a subscriber opened with [`Wait::Adaptive`], which then sleeps only when that strategy says so; returns any
/// other unchanged.
pub fn subscriber(wait: Wait, inner: impl Subscriber + 'static) -> Result<Box<dyn Subscriber>, ConnectError> {
    match wait {
        Wait::Adaptive => Ok(Box::new(Adaptive { inner, rests: rests()? })),
        _ => Ok(Box::new(inner)),
    }
}

/// Wraps a puller in the same way as [`subscriber`].
pub fn puller(wait: Wait, inner: impl Puller + 'static) -> Result<Box<dyn Puller>, ConnectError> {
    match wait {
        Wait::Adaptive => Ok(Box::new(Adaptive { inner, rests: rests()? })),
        _ => Ok(Box::new(inner)),
    }
}

fn rests() -> Result<AdaptiveWait<HostClock>, ConnectError> {
    HostClock::get().map(AdaptiveWait::new).map_err(|e| ConnectError::Other(Box::new(e)))
}

struct Adaptive<T> {
    inner: T,
    rests: AdaptiveWait<HostClock>,
}

impl<T: Subscriber> Subscriber for Adaptive<T> {
    fn poll(&mut self, limit: usize, handler: &mut dyn FnMut(Event<'_>)) -> Result<usize, ReceiveError> {
        let found = self.inner.poll(limit, handler)?;
        if found > 0 {
            self.rests.found();
        }
        Ok(found)
    }

    fn lend(&mut self) -> Result<Lending, LendError> {
        let found = self.inner.lend()?;
        if !matches!(found, Lending::Nothing) {
            self.rests.found();
        }
        Ok(found)
    }

    fn wait(&mut self, timeout_ns: u64) {
        match self.rests.rest(timeout_ns) {
            Rest::Sleep(ns) => {
                self.inner.wait(ns);
                self.rests.woke();
            }
            Rest::Spin | Rest::Yield => _ = self.inner.idle(),
        }
    }

    fn idle(&mut self) -> bool {
        self.inner.idle()
    }

    fn keep_warm(&mut self, keep: bool) {
        self.inner.keep_warm(keep);
    }

    fn token(&self) -> Option<ResumeToken> {
        self.inner.token()
    }

    fn carry_on(&mut self) {
        self.inner.carry_on();
    }

    fn publisher(&self) -> PublisherState {
        self.inner.publisher()
    }

    fn reconnects(&self) -> Option<u64> {
        self.inner.reconnects()
    }

    fn duplicates(&self) -> Option<u64> {
        self.inner.duplicates()
    }

    fn late(&self) -> Option<u64> {
        self.inner.late()
    }

    fn outage(&self) -> Option<String> {
        self.inner.outage()
    }
}

impl<T: Puller> Puller for Adaptive<T> {
    fn pull(&mut self, limit: usize, handler: &mut dyn FnMut(Pulled<'_>)) -> Result<usize, ReceiveError> {
        let found = self.inner.pull(limit, handler)?;
        if found > 0 {
            self.rests.found();
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
        match self.rests.rest(timeout_ns) {
            Rest::Sleep(ns) => {
                self.inner.wait(ns);
                self.rests.woke();
            }
            Rest::Spin | Rest::Yield => relax(),
        }
    }

    fn reconnects(&self) -> Option<u64> {
        self.inner.reconnects()
    }

    fn outage(&self) -> Option<String> {
        self.inner.outage()
    }
}
