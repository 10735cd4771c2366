//! The built-in destinations: data in the program, read by the same reader as those of users.

use std::sync::LazyLock;

use super::declaration::Destination;
use super::read;
use crate::read::context::Context;
use crate::read::fault::{Fault, Faults};
use crate::read::reader::Field;
use crate::read::yaml;

/// Defines the list of destinations with their texts, and the list of names.
macro_rules! builtin {
    ($($name:literal,)*) => {
        /// Each built-in destination with its text, in the order of names.
        pub const BUILTIN_DESTINATIONS: &[BuiltinDestination] = &[$(BuiltinDestination {
            name: $name,
            text: include_str!(concat!("../../../destinations/", $name, "/destination.yaml")),
        },)*];

        /// The names of all built-in destinations.
        pub const BUILTIN_DESTINATION_NAMES: &[&str] = &[$($name,)*];
    };
}

builtin! {
    "dynatrace",
    "github",
    "gitlab",
    "grafana",
    "jira",
    "jsm",
    "opsgenie",
    "pagerduty",
    "servicenow",
    "zabbix",
}

/// A built-in destination as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinDestination {
    pub name: &'static str,
    pub text: &'static str,
}

struct Compiled {
    name: &'static str,
    destination: Destination,
}

static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
    // A test reads each of them without a fault.
    BUILTIN_DESTINATIONS
        .iter()
        .filter_map(|builtin| {
            Some(Compiled {
                name: builtin.name,
                destination: parse(builtin.name, builtin.text).ok()?,
            })
        })
        .collect()
});

/// Each built-in destination with its name.
pub fn builtin_destinations() -> impl Iterator<Item = (&'static str, &'static Destination)> {
    COMPILED
        .iter()
        .map(|compiled| (compiled.name, &compiled.destination))
}

/// The declaration of a built-in destination.
pub(super) fn builtin(name: &str) -> Option<Destination> {
    COMPILED
        .iter()
        .find(|compiled| compiled.name == name)
        .map(|compiled| compiled.destination.clone())
}

/// Reads a declaration by itself.
///
/// # Errors
/// All its faults.
pub(super) fn parse(file: &str, text: &str) -> Result<Destination, Faults> {
    let faults = |faults| Faults {
        file: file.to_owned(),
        faults,
    };
    let root = yaml::to_node(text).map_err(|error| {
        faults(vec![Fault {
            key: String::new(),
            line: error.line,
            problem: error.message,
        }])
    })?;
    let context = Context::new(&|_| None);
    let destination = Field::root(&context, &root).section(|map| read::read(map, None));
    let found = context.into_faults();
    match destination {
        Some(destination) if found.is_empty() => Ok(destination),
        Some(_) | None => Err(faults(found)),
    }
}
