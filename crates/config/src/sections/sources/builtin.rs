//! The built-in sources: data in the program, read by the same reader as those of users.

use std::sync::LazyLock;

use super::declaration::{self, Origin};
use crate::read::context::Context;
use crate::read::fault::{Fault, Faults};
use crate::read::reader::Field;
use crate::read::yaml;
use tarsy_core::sources::{NamedSource, Reader, Source};

/// Defines the list of sources with their texts, and the list of names.
macro_rules! builtin {
    ($($name:literal,)*) => {
        /// Each built-in source with its text, in the order of names.
        pub const BUILTIN: &[BuiltinSource] = &[$(BuiltinSource {
            name: $name,
            text: include_str!(concat!("../../../sources/", $name, "/source.yaml")),
        },)*];

        /// The names of all built-in sources, those that code reads among them.
        pub const BUILTIN_SOURCE_NAMES: &[&str] = &[ALERTMANAGER, GRAFANA, $($name,)*];
    };
}

builtin! {
    "azure",
    "azure-classic",
    "cloudevents",
    "cloudwatch",
    "cloudwatch-eventbridge",
    "cloudwatch-lambda",
    "datadog",
    "dynatrace",
    "elastic",
    "google-cloud",
    "grafana-legacy",
    "graylog",
    "labels",
    "monit",
    "newrelic",
    "newrelic-classic",
    "opsgenie",
    "pagerduty",
    "pagerduty-v2",
    "pingdom",
    "robusta",
    "sentry",
    "sns",
    "sns-control",
    "splunk",
    "uptime-kuma",
    "zabbix",
}

const ALERTMANAGER: &str = "alertmanager";
const GRAFANA: &str = "grafana";

/// A built-in source as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinSource {
    pub name: &'static str,
    pub text: &'static str,
}

static COMPILED: LazyLock<Vec<NamedSource>> = LazyLock::new(|| {
    let named = |name: &str, reader| NamedSource {
        name: name.to_owned(),
        reader,
    };
    let by_code = [
        named(ALERTMANAGER, Reader::Alertmanager(Vec::new())),
        named(GRAFANA, Reader::Grafana(Vec::new())),
    ];
    // A test reads each of them without a fault.
    let declared = BUILTIN.iter().filter_map(|builtin| {
        let source = parse_source(builtin.name, builtin.text).ok()?;
        Some(named(builtin.name, Reader::Declared(Box::new(source))))
    });
    by_code.into_iter().chain(declared).collect()
});

/// All built-in sources, compiled once.
pub fn builtin_sources() -> &'static [NamedSource] {
    &COMPILED
}

/// Reads the declaration of a built-in source.
///
/// # Errors
/// All its faults.
pub fn parse_source(file: &str, text: &str) -> Result<Source, Faults> {
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
    let source = Field::root(&context, &root)
        .section(|map| declaration::read(map, Source::default(), Origin::Builtin));
    let found = context.into_faults();
    if found.is_empty() {
        Ok(source)
    } else {
        Err(faults(found))
    }
}
