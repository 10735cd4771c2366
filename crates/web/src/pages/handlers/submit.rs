//! Handlers of `/submit` and `/sessions/{id}/rerun`: the forms that queue an alert.

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::{Asked, Page};
use crate::api::report;
use crate::fault::Fault;
use crate::pages::submit::{Again, Submit, again, submit};
use crate::ports::{Backend, Cooldown, Refusal, Rerun, Submission};
use crate::shell::{Frame, NavEntry};
use crate::state::Shared;
use crate::submissions::{body, new_request, request_id, rerunner, submitter};
use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::readable::text::{Charset, clean};

/// The fields of a form. A browser sends its lines with the line breaks of Windows.
#[derive(Debug, Default)]
struct Sent {
    request: String,
    alert: String,
    priority: String,
    chain: Option<String>,
    cooldown: Cooldown,
}

impl Sent {
    fn parse(body: &Bytes) -> Self {
        let mut sent = Self::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            match name.as_ref() {
                "request_id" => sent.request = value.into_owned(),
                "alert" => sent.alert = value.replace("\r\n", "\n"),
                "priority" => sent.priority = value.into_owned(),
                "chain" => sent.chain = Some(value.into_owned()).filter(|chain| !chain.is_empty()),
                "cooldown" if value == "ignored" => sent.cooldown = Cooldown::Ignored,
                _ => {}
            }
        }
        sent
    }

    fn priority(&self) -> Result<Option<Severity>, Refusal> {
        if self.priority.is_empty() {
            return Ok(None);
        }
        match self.priority.parse() {
            Ok(priority) => Ok(Some(priority)),
            Err(problem) => Err(Refusal::Invalid(format!("priority: {problem}"))),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Source {
    /// The session whose alert fills the form.
    from: Option<String>,
}

/// The form: empty, or with the alert of a session.
pub(super) async fn show<B: Backend>(State(web): State<Shared<B>>, asked: Asked) -> Page {
    submitter(&asked.viewer.access)?;
    let Source { from } = asked.query()?;
    let source = match from {
        Some(part) => Some(report(&web, &part).await?),
        None => None,
    };
    let text = source
        .as_ref()
        .and_then(|report| report.body.as_deref())
        .unwrap_or_default();
    let alert = clean(text, Charset::Unicode);
    let form = Submit {
        request: new_request(),
        alert: &alert,
        priority: source.as_ref().and_then(|report| report.severity),
        chain: None,
        // It was investigated already, and a person asks for it once more.
        cooldown: if source.is_some() {
            Cooldown::Ignored
        } else {
            Cooldown::Counts
        },
        chains: web.backend.chains(),
        problem: None,
    };
    Ok(submit_page(&asked, &form))
}

/// Queues the alert. A problem is shown above the form, which keeps what was typed.
pub(super) async fn send<B: Backend>(
    State(web): State<Shared<B>>,
    asked: Asked,
    form: Body,
) -> Page {
    let by = submitter(&asked.viewer.access)?;
    let sent = Sent::parse(&body(&web, form).await?);
    let request = request_id(Some(&sent.request))?;
    let priority = sent.priority();
    let chosen = priority.clone().unwrap_or_default();
    let outcome = match priority {
        Ok(priority) => {
            let submission = Submission {
                request,
                alert: sent.alert.clone(),
                priority,
                chain: sent.chain.clone(),
                cooldown: sent.cooldown,
                by,
            };
            web.backend.submit(submission).await
        }
        Err(refusal) => Err(refusal),
    };
    let refusal = match outcome {
        Ok(submitted) => return Ok(moved(submitted.first.session_id)),
        Err(refusal) => refusal,
    };
    let problem = refusal.to_string();
    let form = Submit {
        request: next_request(request, &refusal),
        alert: &sent.alert,
        priority: chosen,
        chain: sent.chain.as_deref(),
        cooldown: sent.cooldown,
        chains: web.backend.chains(),
        problem: Some(&problem),
    };
    Ok(Fault::from(refusal).with_page(submit_page(&asked, &form)))
}

/// The form with the alert of a session that is over.
pub(super) async fn confirm<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
) -> Page {
    rerunner(&asked.viewer.access)?;
    let report = report(&web, &part).await?;
    web.backend.may_rerun(&report)?;
    let form = Again {
        request: new_request(),
        report: &report,
        chain: None,
        chains: web.backend.chains(),
        problem: None,
    };
    Ok(rerun_page(&asked, &form))
}

/// Queues the alert once more.
pub(super) async fn rerun<B: Backend>(
    State(web): State<Shared<B>>,
    Path(part): Path<String>,
    asked: Asked,
    form: Body,
) -> Page {
    let by = rerunner(&asked.viewer.access)?;
    let sent = Sent::parse(&body(&web, form).await?);
    let request = request_id(Some(&sent.request))?;
    let report = report(&web, &part).await?;
    let rerun = Rerun {
        request,
        of: report.alert_id,
        chain: sent.chain.clone(),
        by,
    };
    let refusal = match web.backend.rerun(rerun).await {
        Ok(published) => return Ok(moved(published.session_id)),
        Err(refusal @ (Refusal::State(_) | Refusal::Unknown(_))) => return Err(refusal.into()),
        Err(refusal @ (Refusal::Invalid(_) | Refusal::Unavailable(_))) => refusal,
    };
    let problem = refusal.to_string();
    let form = Again {
        request: next_request(request, &refusal),
        report: &report,
        chain: sent.chain.as_deref(),
        chains: web.backend.chains(),
        problem: Some(&problem),
    };
    Ok(Fault::from(refusal).with_page(rerun_page(&asked, &form)))
}

fn submit_page(asked: &Asked, form: &Submit<'_>) -> Response {
    let frame = Frame::plain("Submit an alert", NavEntry::Submit);
    asked.page(&frame, &submit(form))
}

fn rerun_page(asked: &Asked, form: &Again<'_>) -> Response {
    let frame = Frame::plain("Investigate again", NavEntry::Session);
    asked.page(&frame, &again(form, &asked.viewer))
}

/// The id of the form after a problem. If the alert may be queued, the same one: then it is not queued twice.
fn next_request(request: SessionId, refusal: &Refusal) -> SessionId {
    match refusal {
        Refusal::Unavailable(_) => request,
        Refusal::Unknown(_) | Refusal::State(_) | Refusal::Invalid(_) => new_request(),
    }
}

fn moved(session: SessionId) -> Response {
    Redirect::to(&format!("/sessions/{session}")).into_response()
}
