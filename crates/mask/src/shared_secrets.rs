//! The secrets that the process knows, shared by all clones of a mask: those of its start and those read later.
//!
//! A value stays known after a newer one has replaced it in its file, because texts that contain it may still arrive.

use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::Arc;

use super::known_secrets::{KnownSecrets, MIN_BYTES};

/// More values are not kept in addition to those of the start: the oldest one is dropped.
const MAX_LATER_VALUES: usize = 512;

/// The values, and the automaton that finds them.
pub(super) struct SharedSecrets {
    current: RwLock<Arc<KnownSecrets>>,
    /// The values of the start, which are never dropped.
    first: Vec<String>,
    /// The values that were read later, the newest at the end.
    later: Mutex<VecDeque<String>>,
}

impl Default for SharedSecrets {
    fn default() -> Self {
        Self::new(std::iter::empty())
    }
}

impl SharedSecrets {
    pub(super) fn new(values: impl Iterator<Item = String>) -> Self {
        let first = KnownSecrets::new(values);
        Self {
            first: first.iter().cloned().collect(),
            current: RwLock::new(Arc::new(first)),
            later: Mutex::default(),
        }
    }

    /// The values of this moment.
    pub(super) fn current(&self) -> Arc<KnownSecrets> {
        Arc::clone(&self.current.read())
    }

    /// Adds values. When this returns, every search finds them.
    pub(super) fn add(&self, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values
            .map(|value| value.trim().to_owned())
            .filter(|value| value.len() >= MIN_BYTES)
            .collect();
        let known = self.current();
        if values.iter().all(|value| known.has(value)) {
            return;
        }
        let mut later = self.later.lock();
        for value in values {
            later.retain(|other| *other != value);
            if self.first.binary_search(&value).is_err() {
                later.push_back(value);
            }
        }
        while later.len() > MAX_LATER_VALUES {
            later.pop_front();
        }
        let all = KnownSecrets::new(self.first.iter().chain(later.iter()).cloned());
        *self.current.write() = Arc::new(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(first: &[&str]) -> SharedSecrets {
        SharedSecrets::new(first.iter().map(|value| (*value).to_owned()))
    }

    fn add(secrets: &SharedSecrets, values: &[&str]) {
        secrets.add(values.iter().map(|value| (*value).to_owned()));
    }

    #[test]
    fn a_value_that_is_read_later_is_known_beside_the_earlier_ones() {
        let secrets = shared(&["first-value"]);
        let before = secrets.current();
        add(&secrets, &["first-value", " ", "five5"]);
        assert!(Arc::ptr_eq(&before, &secrets.current()), "nothing is new");
        add(&secrets, &[" second-value\n"]);
        add(&secrets, &["third-value", "third-value"]);
        let known = secrets.current();
        assert!(
            ["first-value", "second-value", "third-value"]
                .iter()
                .all(|value| known.has(value))
        );
        assert_eq!(known.count(), 3);
    }

    #[test]
    fn of_too_many_later_values_the_oldest_are_dropped_and_those_of_the_start_stay() {
        let secrets = shared(&["first-value"]);
        let later = |number: usize| format!("later-value-{number:04}");
        secrets.add((0..MAX_LATER_VALUES).map(later));
        secrets.add(std::iter::once(later(MAX_LATER_VALUES)));
        secrets.add(std::iter::once(later(MAX_LATER_VALUES + 1)));
        let known = secrets.current();
        assert_eq!(known.count(), MAX_LATER_VALUES + 1);
        assert!(
            known.has("first-value")
                && known.has("later-value-0513")
                && known.has("later-value-0002")
        );
        assert!(!known.has("later-value-0001"));
    }
}
