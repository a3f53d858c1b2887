//! The token that says "stop": asked politely once, insisted on the second time.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How urgently to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    GoOn,
    /// Tools get a moment to end by themselves.
    Stop,
    /// Tools are killed at once.
    StopNow,
}

/// A cheap, cloneable request to stop. All clones share one state, and the state only rises.
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
    /// A token that nobody has used yet.
    pub fn new() -> Self {
        Self { state: watch::Sender::new(Urgency::GoOn) }
    }

    /// Asks to stop; asked again, insists.
    pub fn request(&self) {
        self.state.send_modify(|state| {
            *state = match *state {
                Urgency::GoOn => Urgency::Stop,
                Urgency::Stop | Urgency::StopNow => Urgency::StopNow,
            };
        });
    }

    /// Whether anyone asked to stop.
    pub fn is_requested(&self) -> bool {
        *self.state.borrow() >= Urgency::Stop
    }

    /// Resolves once anyone asks to stop.
    pub async fn requested(&self) {
        self.reaches(Urgency::Stop).await;
    }

    /// Resolves once anyone insists.
    pub async fn insisted(&self) {
        self.reaches(Urgency::StopNow).await;
    }

    async fn reaches(&self, urgency: Urgency) {
        let mut state = self.state.subscribe();
        // `self` holds a sender, so the channel can't be closed while this waits.
        drop(state.wait_for(|now| *now >= urgency).await);
    }
}

/// A token that SIGINT, SIGTERM and SIGHUP raise, once per signal. Must be called inside a runtime.
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
