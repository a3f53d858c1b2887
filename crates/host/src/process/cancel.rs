//! Cancellation: the first request asks tools to stop, the second kills them.

use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The urgency of a cancellation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    GoOn,
    /// Tools get a moment to end by themselves.
    Stop,
    /// Tools are killed at once.
    StopNow,
}

/// A cloneable cancellation token. All clones share one state, and the urgency only increases.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: watch::Sender<Urgency>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// Creates a token without a request.
    pub fn new() -> Self {
        Self { state: watch::Sender::new(Urgency::GoOn) }
    }

    /// Requests a stop; the second call requests that tools are killed at once.
    pub fn request(&self) {
        self.state.send_modify(|state| {
            *state = match *state {
                Urgency::GoOn => Urgency::Stop,
                Urgency::Stop | Urgency::StopNow => Urgency::StopNow,
            };
        });
    }

    /// Returns whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.state.borrow() >= Urgency::Stop
    }

    /// Resolves once a stop is requested.
    pub async fn requested(&self) {
        self.reaches(Urgency::Stop).await;
    }

    /// Resolves once a second stop is requested.
    pub async fn insisted(&self) {
        self.reaches(Urgency::StopNow).await;
    }

    async fn reaches(&self, urgency: Urgency) {
        let mut state = self.state.subscribe();
        // `self` contains a sender, so the channel can't be closed while this waits.
        drop(state.wait_for(|now| *now >= urgency).await);
    }
}

/// The signals that ask a process to end.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Handles SIGINT, SIGTERM and SIGHUP as requests to stop until it is dropped. After that, these signals end
/// the process again, because no code waits for the token any more, and the remaining work, such as
/// resampling, may take minutes.
#[derive(Debug)]
pub struct Interrupts {
    pub cancel: Cancel,
    /// Dropping this field ends the listeners.
    _listeners: JoinSet<()>,
}

/// The number of listeners in this process. `aside` contains tokio's signal handlers while there are no
/// listeners, because tokio installs them only once.
#[derive(Debug)]
struct Listening {
    count: usize,
    aside: Vec<(Signal, SigAction)>,
}

static LISTENING: Mutex<Listening> = Mutex::new(Listening { count: 0, aside: Vec::new() });

/// Starts to listen for the signals. Must be called inside a runtime.
pub fn interrupts() -> std::io::Result<Interrupts> {
    let (cancel, mut listeners) = (Cancel::new(), JoinSet::new());
    let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    for kind in ENDING {
        let signals = unix::signal(SignalKind::from_raw(kind as i32))?;
        listeners.spawn(listen(signals, cancel.clone()));
    }
    for (kind, action) in listening.aside.drain(..) {
        // SAFETY: this is tokio's handler, which was set aside from this same signal and is safe to run at
        // any time.
        unsafe { sigaction(kind, &action) }?;
    }
    listening.count += 1;
    Ok(Interrupts { cancel, _listeners: listeners })
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let mut listening = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
        listening.count -= 1;
        if listening.count > 0 {
            return;
        }
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action runs no handler of this process.
        let set_aside = |kind| Some((kind, unsafe { sigaction(kind, &default) }.ok()?));
        // A signal whose action can't be changed keeps requesting cancellation.
        listening.aside = ENDING.into_iter().filter_map(set_aside).collect();
    }
}

async fn listen(mut signals: unix::Signal, cancel: Cancel) {
    while signals.recv().await.is_some() {
        cancel.request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_request_insists_and_all_clones_see_it() {
        let cancel = Cancel::new();
        let clone = cancel.clone();
        assert!(!clone.is_requested());
        cancel.request();
        clone.requested().await;
        assert_eq!(*clone.state.borrow(), Urgency::Stop);
        clone.request();
        cancel.insisted().await;
    }
}
