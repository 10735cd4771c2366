//! The memory budget for the bodies of all connections.
//!
//! A body takes from the budget as it arrives, so a client that is slow holds what it has sent and not what it has
//! declared. The beginning of each body comes from a part that large bodies never take from: alerts of usual sizes are
//! accepted whatever else arrives. Everything is given back when the guard is dropped, on every path.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The memory for all bodies together, apart from their beginnings.
const LARGE_BYTES: usize = 128 * 1024 * 1024;
/// The beginning of a body, and what the beginnings may have together. Beyond it they take from the rest.
const BEGINNING_BYTES: usize = 512 * 1024;
const BEGINNINGS_BYTES: usize = 16 * 1024 * 1024;
/// A permit of the semaphores.
const UNIT_BYTES: usize = 1_024;

/// Cheap to clone; clones share the memory.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    beginnings: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The memory of one body.
#[derive(Debug)]
pub(super) struct Held {
    budget: Budget,
    permits: Vec<OwnedSemaphorePermit>,
    units: usize,
}

impl Default for Budget {
    fn default() -> Self {
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes / UNIT_BYTES));
        Self {
            beginnings: semaphore(BEGINNINGS_BYTES),
            large: semaphore(LARGE_BYTES),
        }
    }
}

impl Budget {
    /// The memory of a body of which nothing has arrived.
    pub(super) fn hold(&self) -> Held {
        Held {
            budget: self.clone(),
            permits: Vec::new(),
            units: 0,
        }
    }

    /// The number of free bytes, of both parts.
    #[cfg(test)]
    fn free_bytes(&self) -> usize {
        (self.beginnings.available_permits() + self.large.available_permits()) * UNIT_BYTES
    }
}

impl Held {
    /// Takes memory for a body of so many bytes, in all.
    ///
    /// # Errors
    /// When the other bodies leave too little.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        const BEGINNING: usize = BEGINNING_BYTES / UNIT_BYTES;
        let wanted = bytes.div_ceil(UNIT_BYTES);
        let of_beginning = wanted.min(BEGINNING).saturating_sub(self.units);
        if of_beginning > 0 {
            let budget = &self.budget;
            let permit = take(&budget.beginnings, of_beginning)
                .or_else(|Exhausted| take(&budget.large, of_beginning))?;
            self.add(permit, of_beginning);
        }
        let more = wanted.saturating_sub(self.units);
        if more > 0 {
            let permit = take(&self.budget.large, more)?;
            self.add(permit, more);
        }
        Ok(())
    }

    fn add(&mut self, permit: OwnedSemaphorePermit, units: usize) {
        self.units += units;
        let same = self
            .permits
            .iter_mut()
            .find(|held| Arc::ptr_eq(held.semaphore(), permit.semaphore()));
        match same {
            Some(held) => held.merge(permit),
            None => self.permits.push(permit),
        }
    }
}

fn take(from: &Arc<Semaphore>, units: usize) -> Result<OwnedSemaphorePermit, Exhausted> {
    let units = u32::try_from(units).map_err(|_| Exhausted)?;
    Arc::clone(from)
        .try_acquire_many_owned(units)
        .map_err(|_| Exhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn large_bodies_share_the_budget_and_leave_room_for_beginnings() {
        let budget = Budget::default();
        let whole = budget.free_bytes();
        let mut held: Vec<Held> = Vec::new();
        for _ in 0..4 {
            let mut body = budget.hold();
            for arrived in 1..=32 {
                assert_eq!(body.grow(arrived * MIB), Ok(()));
            }
            held.push(body);
        }
        let mut fifth = budget.hold();
        assert_eq!(
            fifth.grow(BEGINNING_BYTES),
            Ok(()),
            "a small body beside large ones"
        );
        assert_eq!(fifth.grow(32 * MIB), Err(Exhausted));
        held.pop();
        assert_eq!(fifth.grow(32 * MIB), Ok(()));
        drop((held, fifth));
        assert_eq!(budget.free_bytes(), whole);
    }

    #[test]
    fn beginnings_without_room_of_their_own_take_from_the_rest() {
        let budget = Budget::default();
        let bodies = BEGINNINGS_BYTES / BEGINNING_BYTES + 1;
        let mut held: Vec<Held> = (0..bodies).map(|_| budget.hold()).collect();
        assert!(
            held.iter_mut()
                .all(|body| body.grow(BEGINNING_BYTES).is_ok())
        );
        assert_eq!(budget.free_bytes(), LARGE_BYTES - BEGINNING_BYTES);
    }
}
