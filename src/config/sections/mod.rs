//! The sections of a configuration file: what each key means, its default and its bounds.

pub(crate) mod agents;
pub(crate) mod chains;
pub(crate) mod providers;
pub(crate) mod servers;
pub(crate) mod settings;
pub(crate) mod synthesis;
pub(crate) mod worker;
pub(crate) mod streams;
pub(crate) mod retention;
pub(crate) mod trust;
