//! The variables that configure the export of traces. They are those of OpenTelemetry's specification
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::pairs::{Pairs, pairs};
use super::sampler::{Sampler, WORDS};
use tarsy_config::{Env, Faults, Secret, environment_fault};
use tarsy_mask::Mask;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Whether prompts, answers, arguments and results are attributes.
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The settings for the export of traces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http://` or `https://` with host and port.
    pub(super) endpoint: Url,
    /// Headers of each request, for the authentication at the collector.
    pub(super) headers: Option<Secret>,
    /// The authorities that may have signed the collector's certificate, in PEM; `None` represents those of the system.
    pub(super) certificate: Option<PathBuf>,
    /// The time limit for one request.
    pub(super) timeout: Duration,
    /// Attributes of this process.
    pub(super) resource: Pairs,
    pub(super) sampler: Sampler,
    pub(super) captures_content: bool,
}

impl Settings {
    /// The settings of the process `tarsy-<role>`; `None` unless the environment names a collector.
    ///
    /// # Errors
    /// When a variable has a value that cannot be used. No message shows a header.
    pub fn read(role: &str, env: Env<'_>) -> Result<Option<Self>, Faults> {
        let env = |name: &str| {
            env(name)
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        let Some((variable, endpoint)) = otlp("ENDPOINT", &env) else {
            return Ok(None);
        };
        let exporter = env("OTEL_TRACES_EXPORTER");
        if is_true("OTEL_SDK_DISABLED", &env)? || exporter.as_deref() == Some("none") {
            return Ok(None);
        }
        if let Some(exporter) = exporter.filter(|exporter| exporter != "otlp") {
            return Err(invalid("OTEL_TRACES_EXPORTER", &exporter, "otlp, none"));
        }
        if let Some((variable, protocol)) =
            otlp("PROTOCOL", &env).filter(|(_, protocol)| protocol != "grpc")
        {
            return Err(invalid(&variable, &protocol, "grpc"));
        }
        Ok(Some(Self {
            endpoint: endpoint_of(&variable, &endpoint)?,
            headers: headers(&env)?,
            certificate: otlp("CERTIFICATE", &env).map(|(_, file)| file.into()),
            timeout: timeout(&env)?,
            resource: resource(role, &env)?,
            sampler: sampler(&env)?,
            captures_content: is_true(CONTENT, &env)?,
        }))
    }
}

/// The variable for traces, or else the one for all signals, with its value.
fn otlp(name: &str, env: Env<'_>) -> Option<(String, String)> {
    let names = [
        format!("OTEL_EXPORTER_OTLP_TRACES_{name}"),
        format!("OTEL_EXPORTER_OTLP_{name}"),
    ];
    names
        .into_iter()
        .find_map(|name| env(&name).map(|text| (name, text)))
}

fn invalid(variable: &str, value: &str, accepted: &str) -> Faults {
    environment_fault(
        variable,
        format!("has the value {value:?}; accepted: {accepted}"),
    )
}

fn is_true(variable: &str, env: Env<'_>) -> Result<bool, Faults> {
    match env(variable)
        .map(|word| word.to_ascii_lowercase())
        .as_deref()
    {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(word) => Err(invalid(variable, word, "true, false")),
    }
}

/// The value is not shown, because an address may have a password.
fn endpoint_of(variable: &str, text: &str) -> Result<Url, Faults> {
    let invalid = |problem: &str| {
        environment_fault(
            variable,
            format!("{problem}; accepted: http://host:4317 or https://host:4317"),
        )
    };
    let url = Url::parse(text).map_err(|error| invalid(&format!("is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(invalid("is no address of a collector"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "has a user or a password, which belong in OTEL_EXPORTER_OTLP_HEADERS",
        ));
    }
    if url.path() != "/" || url.query().is_some() {
        return Err(invalid("has a path, which OTLP over gRPC does not use"));
    }
    Ok(url)
}

/// The headers are read once here, so that a fault is found at the start.
fn headers(env: Env<'_>) -> Result<Option<Secret>, Faults> {
    let of_traces = Secret::find("OTEL_EXPORTER_OTLP_TRACES_HEADERS", env)?;
    let Some(secret) = of_traces.map_or_else(
        || Secret::find("OTEL_EXPORTER_OTLP_HEADERS", env),
        |own| Ok(Some(own)),
    )?
    else {
        return Ok(None);
    };
    match super::otlp::metadata(&secret, &Mask::default()) {
        Ok(_) => Ok(Some(secret)),
        Err(error) => Err(environment_fault(&error.place, error.reason)),
    }
}

fn timeout(env: Env<'_>) -> Result<Duration, Faults> {
    let Some((variable, text)) = otlp("TIMEOUT", env) else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let millis: Option<u32> = text.parse().ok().filter(|millis| *millis > 0);
    let millis = millis.ok_or_else(|| invalid(&variable, &text, "milliseconds, at least 1"))?;
    Ok(Duration::from_millis(millis.into()))
}

fn resource(role: &str, env: Env<'_>) -> Result<Pairs, Faults> {
    const VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let given = env(VARIABLE).unwrap_or_default();
    let given = pairs(&given).map_err(|fault| environment_fault(VARIABLE, fault.to_string()))?;
    let mut resource: Pairs = [
        (
            "service.name",
            if role.is_empty() {
                "tarsy".to_owned()
            } else {
                format!("tarsy-{role}")
            },
        ),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", uuid::Uuid::new_v4().to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    resource.extend(given);
    if let Some(name) = env("OTEL_SERVICE_NAME") {
        resource.insert("service.name".to_owned(), name);
    }
    Ok(resource)
}

fn sampler(env: Env<'_>) -> Result<Sampler, Faults> {
    const ARGUMENT: &str = "OTEL_TRACES_SAMPLER_ARG";
    let ratio = match env(ARGUMENT) {
        None => 1.0,
        Some(text) => {
            let ratio = text
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio));
            ratio.ok_or_else(|| invalid(ARGUMENT, &text, "a number from 0 to 1"))?
        }
    };
    let Some(word) = env("OTEL_TRACES_SAMPLER") else {
        return Ok(Sampler::default());
    };
    Sampler::new(&word, ratio)
        .ok_or_else(|| invalid("OTEL_TRACES_SAMPLER", &word, &WORDS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLLECTOR: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317");

    fn read(set: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let set: std::collections::HashMap<_, _> = set.iter().copied().collect();
        Settings::read("worker", &|name| set.get(name).map(ToString::to_string))
            .map_err(|faults| faults.to_string())
    }

    fn with(variable: &str, value: &str) -> Result<Option<Settings>, String> {
        read(&[COLLECTOR, (variable, value)])
    }

    #[test]
    fn nothing_is_exported_unless_a_collector_is_named() {
        assert!(read(&[]).unwrap().is_none());
        assert!(
            read(&[("OTEL_SERVICE_NAME", "a"), ("OTEL_TRACES_SAMPLER", "wrong")])
                .unwrap()
                .is_none()
        );
        assert!(with("OTEL_SDK_DISABLED", "TRUE").unwrap().is_none());
        assert!(with("OTEL_TRACES_EXPORTER", "none").unwrap().is_none());
        let settings = read(&[COLLECTOR]).unwrap().unwrap();
        assert_eq!(settings.endpoint.as_str(), "http://collector:4317/");
        assert_eq!(
            (settings.timeout, settings.sampler),
            (DEFAULT_TIMEOUT, Sampler::default())
        );
        assert!(
            !settings.captures_content
                && settings.headers.is_none()
                && settings.certificate.is_none()
        );
        assert_eq!(settings.resource["service.name"], "tarsy-worker");
    }

    #[test]
    fn a_variable_for_traces_precedes_the_one_for_all_signals() {
        let settings = with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces:1")
            .unwrap()
            .unwrap();
        assert_eq!(settings.endpoint.as_str(), "https://traces:1/");
        let both = [
            COLLECTOR,
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2000"),
        ];
        assert_eq!(
            read(&both).unwrap().unwrap().timeout,
            Duration::from_secs(2)
        );
    }

    #[test]
    fn a_service_has_the_name_and_the_attributes_of_the_environment() {
        let attributes = with(
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=a, deployment.environment.name=pro%20d",
        );
        let resource = attributes.unwrap().unwrap().resource;
        assert_eq!(
            [
                &resource["service.name"],
                &resource["deployment.environment.name"]
            ],
            ["a", "pro d"]
        );
        let both = [
            COLLECTOR,
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a"),
            ("OTEL_SERVICE_NAME", "b"),
        ];
        assert_eq!(read(&both).unwrap().unwrap().resource["service.name"], "b");
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named_with_what_is_accepted() {
        for (variable, value, message) in [
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "collector:4317",
                "accepted: http://host:4317",
            ),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://u:w0rd@h:1",
                "belong in OTEL_EXPORTER_OTLP_HEADERS",
            ),
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://h:4318/v1/traces",
                "OTLP over gRPC does not use",
            ),
            (
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                "http/protobuf",
                "\"http/protobuf\"; accepted: grpc",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "accepted: milliseconds"),
            ("OTEL_TRACES_EXPORTER", "zipkin", "accepted: otlp, none"),
            (
                "OTEL_TRACES_SAMPLER",
                "jaeger_remote",
                "accepted: always_on, always_off, traceidratio",
            ),
            (
                "OTEL_TRACES_SAMPLER_ARG",
                "1.5",
                "accepted: a number from 0 to 1",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name",
                "\"service.name\" is no pair",
            ),
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret-w0rd", "is no pair"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "a b=s3cret-w0rd",
                "no name of a header",
            ),
            (
                "OTEL_EXPORTER_OTLP_HEADERS_FILE",
                "/no/such/file",
                "there is no such file",
            ),
            (CONTENT, "yes", "accepted: true, false"),
        ] {
            let first = if variable == COLLECTOR.0 {
                (variable, value)
            } else {
                COLLECTOR
            };
            let message_of = read(&[first, (variable, value)]).unwrap_err();
            assert!(
                message_of.contains(message) && message_of.contains(variable),
                "{message_of}"
            );
            assert!(!message_of.contains("w0rd"), "{message_of}");
        }
    }
}
