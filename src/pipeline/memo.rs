//! Results that a run computes only once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

/// Results by key. If a result is being computed, others wait for it. A failed computation is repeated.
#[derive(Debug)]
pub(super) struct Memo<K, V>(Mutex<HashMap<K, Arc<OnceCell<V>>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    pub(super) async fn get<E, F: Future<Output = Result<V, E>>>(
        &self,
        key: K,
        ask: impl FnOnce() -> F,
    ) -> Result<V, E> {
        let cell = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        cell.get_or_try_init(ask).await.cloned()
    }

    /// Stores a result that is already known.
    pub(super) fn set(&self, key: K, value: V) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key, Arc::new(OnceCell::new_with(Some(value))));
    }
}
