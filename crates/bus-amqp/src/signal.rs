//! Wake-ups by the client library: a flag that is polled without a lock, or slept on.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A flag, up at first, which is raised as a [`Waker`].
#[derive(Debug)]
pub(crate) struct Signal {
    up: AtomicBool,
    lock: Mutex<()>,
    raised: Condvar,
}

impl Signal {
    pub fn new() -> Self {
        Self { up: AtomicBool::new(true), lock: Mutex::new(()), raised: Condvar::new() }
    }

    /// Raises the flag, and wakes a sleeping thread.
    pub fn raise(&self) {
        // Pairs with the loads in `lower` and `wait`: a thread that sees the flag up sees all that was written before.
        self.up.store(true, Ordering::Release);
        // A thread about to sleep holds the lock from its last look on, so the wake-up cannot fall in between.
        drop(self.lock());
        self.raised.notify_one();
    }

    /// Lowers the flag; returns true if it was up.
    pub fn lower(&self) -> bool {
        self.up.load(Ordering::Acquire) && self.up.swap(false, Ordering::Acquire)
    }

    /// Undoes [`Self::lower`], on the thread that called it, which is awake.
    pub fn restore(&self) {
        self.up.store(true, Ordering::Relaxed);
    }

    /// Sleeps until the flag is up, or until the timeout; returns true if it is up.
    pub fn wait(&self, timeout: Duration) -> bool {
        let is_down = |_: &mut ()| !self.up.load(Ordering::Acquire);
        let slept = self.raised.wait_timeout_while(self.lock(), timeout, is_down);
        !slept.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

/// Runs a future on this thread. Returns none if nothing wakes it within `timeout`.
pub(crate) fn complete<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let signal = Arc::new(Signal::new());
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    while signal.wait(timeout) {
        signal.lower();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_future_is_completed_by_another_thread_or_given_up() {
        const LONG: Duration = Duration::from_secs(60);
        for _ in 0..1000 {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let sending = std::thread::spawn(move || sender.send(7).expect("waited for"));
            assert_eq!(complete(receiver, LONG), Some(Ok(7)));
            sending.join().unwrap();
        }
        assert_eq!(complete(std::future::pending::<()>(), Duration::from_millis(1)), None);
    }

    #[test]
    fn a_flag_stays_up_until_it_is_lowered() {
        let signal = Signal::new();
        assert!(signal.wait(Duration::ZERO) && signal.lower());
        assert!(!signal.lower() && !signal.wait(Duration::from_millis(1)));
        signal.restore();
        assert!(signal.wait(Duration::ZERO) && signal.lower() && !signal.lower());
    }
}
