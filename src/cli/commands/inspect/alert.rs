//! `tarsy inspect alert`: the alerts of a body, and where each field of them came from.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::message::{check_source, received};
use crate::cli::args::{GlobalArgs, InspectAlertArgs};
use crate::cli::commands::output::print;
use crate::cli::commands::{load_config, submit};
use crate::cli::exit::Exit;
use crate::cli::render::json::pretty;
use crate::process::masked::{self, MaskedAlert};
use crate::process::secrets;
use crate::roles::worker::message;
use tarsy_core::alert::{Alert, AlertStatus};
use tarsy_core::intake::{Hints, Intake, IntakeError, sentences};
use tarsy_core::sources::Traced;
use tarsy_mask::Mask;

/// A body with the hints, the intake and the mask that decide how it is read.
struct Inspection<'r> {
    mask: &'r Mask,
    intake: &'r Intake,
    body: &'r [u8],
    hints: Hints,
}

/// Takes the same steps as the intake of a worker.
pub(super) fn run(global: &GlobalArgs, args: InspectAlertArgs) -> anyhow::Result<Exit> {
    let config = load_config(global)?;
    let mask = secrets::mask(&config, None)?;
    let max_alert_bytes = usize::try_from(config.worker.max_alert_bytes)?;
    let intake = Intake::new(config.sources.all()).with_max_alert_bytes(max_alert_bytes);
    check_source(&args.message, intake.sources())?;
    let mut body = submit::read(&args.file)?;
    let mut hints = message::hints(&received(&args.message));
    hints.source = args.message.source.clone().or(hints.source);
    let no_alert = || format!("{} is not an alert", submit::named(&args.file));
    // A body that is too large to be stored is reduced before a worker reads it.
    if let Some(reduced) = intake
        .reduced(&body, &hints, max_alert_bytes)
        .with_context(no_alert)?
    {
        hints = reduced.hints(hints);
        body = reduced.body.into_bytes();
    }
    let inspection = Inspection {
        mask: &mask,
        intake: &intake,
        body: &body,
        hints,
    };
    let alerts = inspection.alerts().with_context(no_alert)?;
    let mut shown = Vec::new();
    for (part, alert) in &alerts {
        let mut fields = fields(alert);
        if args.why {
            fields.extend(inspection.origins(*part)?);
        }
        shown.push(Value::Object(fields));
    }
    let shown = match <[Value; 1]>::try_from(shown) {
        Ok([only]) => only,
        Err(several) => Value::Array(several),
    };
    print(&[pretty(&shown)?])?;
    Ok(Exit::Done)
}

fn fields(alert: &Alert) -> Map<String, Value> {
    let shown = json!({
        "fingerprint": alert.fingerprint,
        "type": alert.alert_type,
        "severity": alert.severity.as_str(),
        "status": alert.status,
        "title": alert.title,
        "source": alert.source,
        "runbook": alert.runbook_url,
        "text": alert.text,
    });
    let mut fields = shown.as_object().cloned().unwrap_or_default();
    if !alert.refs.is_empty() {
        fields.insert("refs".to_owned(), json!(alert.refs));
    }
    if alert.status == AlertStatus::Ignored {
        fields.insert("reason".to_owned(), json!(alert.ignored_because));
    }
    fields
}

impl Inspection<'_> {
    /// Every alert of the body with the number of its part; only one if the headers name a part.
    fn alerts(&self) -> Result<Vec<(Option<u32>, Alert)>, IntakeError> {
        let read = |hints: &Hints| masked::alert(self.mask, self.intake, self.body, hints);
        let MaskedAlert {
            alert, other_parts, ..
        } = read(&self.hints)?;
        let mut alerts = vec![(self.hints.part, alert)];
        for part in other_parts {
            alerts.push((Some(part), read(&self.hints_of(Some(part)))?.alert));
        }
        Ok(alerts)
    }

    fn hints_of(&self, part: Option<u32>) -> Hints {
        Hints {
            part,
            ..self.hints.clone()
        }
    }

    /// A sentence for each decision, as `decisions`; what gave each field, as `why`; and remarks, as `notes`. The
    /// masked body is read, so no value of a secret field is shown.
    fn origins(&self, part: Option<u32>) -> Result<Map<String, Value>, IntakeError> {
        let written = self.intake.part(self.body, &self.hints_of(part))?;
        let masked = masked::body(self.mask, self.body, &self.hints);
        let hints = Hints {
            source: Some(written.alert.source),
            part: Some(written.index),
            content_type: None,
            content_encoding: None,
            ..self.hints.clone()
        };
        let masked = self
            .intake
            .part(&masked, &hints)
            .map(|part| part.trace)
            .unwrap_or_default();
        // The masked body was read with its source as a hint.
        let source = written
            .trace
            .into_iter()
            .filter(|line| line.field == "source");
        let others = masked.into_iter().filter(|line| line.field != "source");
        let trace: Vec<Traced> = source.chain(others).collect();
        let text = |text: &str| self.mask.apply(text).into_owned();
        let decisions: Vec<String> = sentences(&trace)
            .iter()
            .map(|sentence| text(sentence))
            .collect();
        let origins: Vec<Value> = trace
            .iter()
            .map(|line| {
                let value = (!line.value.is_empty()).then(|| text(&line.shown()));
                json!({"field": line.field, "from": text(&line.origin.to_string()), "value": value})
            })
            .collect();
        let notes: Vec<String> = written
            .notes
            .iter()
            .map(|note| text(&note.to_string()))
            .collect();
        Ok(Map::from_iter([
            ("decisions".to_owned(), json!(decisions)),
            ("why".to_owned(), json!(origins)),
            ("notes".to_owned(), json!(notes)),
        ]))
    }
}
