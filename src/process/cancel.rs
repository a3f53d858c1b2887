//! Cancellation: the first request asks tools to stop, the second kills them.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The urgency of the request.
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
    /// A token without a request.
    pub fn new() -> Self {
        Self { state: watch::Sender::new(Urgency::GoOn) }
    }

    /// Asks to stop; the second call insists.
    pub fn request(&self) {
        self.state.send_modify(|state| {
            *state = match *state {
                Urgency::GoOn => Urgency::Stop,
                Urgency::Stop | Urgency::StopNow => Urgency::StopNow,
            };
        });
    }

    /// Whether a stop was requested.
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
        // `self` holds a sender, so the channel can't be closed while this waits.
        drop(state.wait_for(|now| *now >= urgency).await);
    }
}

/// A token on which each SIGINT, SIGTERM and SIGHUP requests a stop. Must be called inside a runtime.
///
/// # Errors
/// The operating system refused a signal handler.
pub fn interrupts() -> std::io::Result<Cancel> {
    let cancel = Cancel::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        tokio::spawn(listen(signal(kind)?, cancel.clone()));
    }
    Ok(cancel)
}

async fn listen(mut signals: Signal, cancel: Cancel) {
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
