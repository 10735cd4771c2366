//! `lock`, for state that stays whole when its holder panics: every change of it is one assignment or one call.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a panic of a holder.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
