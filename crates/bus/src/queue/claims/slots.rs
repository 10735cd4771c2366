//! The worker's slots as the claim loop sees them: those that are free, and how many of them a priority may take.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::names::Priority;

/// The free slots of a worker, acquired by the claim loop until a job takes them.
#[derive(Debug)]
pub(super) struct Slots {
    semaphore: Arc<Semaphore>,
    free: Option<OwnedSemaphorePermit>,
    reserved_critical: usize,
}

impl Slots {
    pub(super) fn new(semaphore: Arc<Semaphore>, reserved_critical: usize) -> Self {
        Self {
            semaphore,
            free: None,
            reserved_critical,
        }
    }

    /// Acquires every slot that is free now.
    pub(super) fn acquire_free(&mut self) {
        while let Ok(another) = Arc::clone(&self.semaphore).try_acquire_owned() {
            match &mut self.free {
                Some(free) => free.merge(another),
                None => self.free = Some(another),
            }
        }
    }

    /// Releases the slots that no job has taken.
    pub(super) fn release_free(&mut self) {
        self.free = None;
    }

    /// The number of alerts of this priority that may be claimed now.
    pub(super) fn available(&self, priority: Priority) -> usize {
        let free = self
            .free
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        match priority {
            Priority::Critical => free,
            Priority::High | Priority::Normal | Priority::Low => {
                free.saturating_sub(self.reserved_critical)
            }
        }
    }

    /// Takes a slot for an alert of this priority; `None` if none is available.
    pub(super) fn take(&mut self, priority: Priority) -> Option<OwnedSemaphorePermit> {
        if self.available(priority) == 0 {
            return None;
        }
        self.free.as_mut()?.split(1)
    }

    /// Returns when a further slot is free. It is not acquired.
    pub(super) fn freed(&self) -> impl Future<Output = ()> + Send + use<> {
        let semaphore = Arc::clone(&self.semaphore);
        async move {
            if semaphore.acquire().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_slots_are_for_critical_alerts() {
        let available = |priority: Priority, free: usize| {
            let mut slots = Slots::new(Arc::new(Semaphore::new(free)), 2);
            slots.acquire_free();
            slots.available(priority)
        };
        assert_eq!(available(Priority::Critical, 2), 2);
        assert_eq!(available(Priority::High, 2), 0);
        assert_eq!(available(Priority::Low, 5), 3);
    }
}
