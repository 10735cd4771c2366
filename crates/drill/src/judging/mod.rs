//! Judges the report of a real model: the format of rubrics, the numbers of a report, the outcome with its reasons.

pub mod rubric;
mod phrases;
pub mod grade;
#[cfg(test)]
mod tests;
