//! The engine: drives the core over ports. It owns the loop, time and tasks; it knows no database and no broker.

pub mod control;
pub mod dispatch;
mod execution;
pub mod planner;
pub mod ports;
pub mod renewal;
pub mod running;
pub mod session;
mod toolbatch;
pub mod world;

#[cfg(test)]
mod dispatching;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod survival;
#[cfg(test)]
mod testing;
