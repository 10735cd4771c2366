//! Numbers on their way in and out. The database has signed types only; counters begin at 0 or 1 and never come near
//! the ends, so a value out of range is clamped, and a clamped one is refused by the comparison it takes part in.

use std::time::Duration;

/// For an `integer` column.
pub(crate) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// For a `bigint` column.
pub(crate) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// From an `integer` column.
pub(crate) fn from_int(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// From a `bigint` column.
pub(crate) fn from_big(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Milliseconds for a `bigint` column.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// From seconds as the database counts them.
pub(crate) fn from_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
