//! The engine: drives the core over ports. It owns the loop, time and tasks; it knows no database and no broker.

mod attention;
pub mod background;
pub mod control;
pub mod dispatch;
mod execution;
pub mod follow_up;
pub mod hesitation;
mod leased;
pub mod masked;
mod measure;
mod native;
pub mod outage;
pub mod planner;
pub mod ports;
pub mod presence;
pub mod probes;
mod reading;
pub mod renewal;
pub mod requests;
pub mod running;
pub mod session;
mod settle;
pub mod settler;
mod staffing;
pub mod sweeper;
pub mod timeline_probe;
mod toolbatch;
pub mod world;

#[cfg(test)]
mod chains;
#[cfg(test)]
mod citing;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod dispatching;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod readings;
mod recovery;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod survival;
#[cfg(test)]
mod testing;
