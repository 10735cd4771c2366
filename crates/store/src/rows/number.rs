//! Conversions of numbers. The database has signed types only. Counters begin at 0 or 1 and never come near the limits;
//! a number out of range is clamped, and the comparison that a clamped number takes part in refuses the write.

use std::time::Duration;

/// Converts a number for an `integer` column.
pub fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Converts a number for a `bigint` column.
pub(crate) fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number from an `integer` column.
pub(crate) fn from_int(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// Converts a number from a `bigint` column.
pub(crate) fn from_big(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Milliseconds for a `bigint` column.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Converts seconds in a `float8` column.
pub(crate) fn from_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
