//! Alerts that programs submit for people, and investigations that run again.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};

use super::{Answer, find, query};
use crate::fault::Fault;
use crate::json;
use crate::ports::{Backend, Cooldown, Published, Rerun, Submission, Submitted};
use crate::rights::Access;
use crate::state::Shared;
use crate::submissions::{body, request_id, rerunner, submitter};
use tarsy_core::alert::Severity;

/// The settings of an alert, which is the body.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    priority: Option<String>,
    chain: Option<String>,
    force: bool,
    request_id: Option<String>,
}

/// The settings of a rerun, as JSON in the body.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RerunSettings {
    chain: Option<String>,
    request_id: Option<String>,
}

/// The first alert, and all of them if there are several: as the receiver answers.
#[derive(Serialize)]
struct Queued {
    #[serde(flatten)]
    first: Published,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alerts: Vec<Published>,
}

pub(super) async fn submit<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    uri: Uri,
    sent: Body,
) -> Answer {
    let by = submitter(&access)?;
    let Settings {
        priority,
        chain,
        force,
        request_id: request,
    } = query(&uri)?;
    let request = request_id(request.as_deref())?;
    let priority = priority
        .filter(|word| !word.is_empty())
        .map(|word| word.parse::<Severity>())
        .transpose()
        .map_err(|problem| Fault::Invalid(format!("priority: {problem}")))?;
    let alert = String::from_utf8(body(&web, sent).await?.to_vec()).map_err(|_| {
        Fault::Invalid("the alert is not UTF-8 text: nothing was published".to_owned())
    })?;
    let submission = Submission {
        request,
        alert,
        priority,
        chain: chain.filter(|chain| !chain.is_empty()),
        cooldown: if force {
            Cooldown::Ignored
        } else {
            Cooldown::Counts
        },
        by,
    };
    let Submitted { first, others } = web.backend.submit(submission).await?;
    let alerts = if others.is_empty() {
        Vec::new()
    } else {
        [vec![first.clone()], others].concat()
    };
    Ok(json::response(
        StatusCode::ACCEPTED,
        &Queued { first, alerts },
    ))
}

pub(super) async fn rerun<B: Backend>(
    State(web): State<Shared<B>>,
    Extension(access): Extension<Access>,
    Path(part): Path<String>,
    sent: Body,
) -> Answer {
    let by = rerunner(&access)?;
    let sent = body(&web, sent).await?;
    let settings = if sent.trim_ascii().is_empty() {
        Ok(RerunSettings::default())
    } else {
        serde_json::from_slice(&sent)
    };
    let RerunSettings {
        chain,
        request_id: request,
    } = settings.map_err(|_| {
        Fault::Invalid(
            "accepted: no body, or {\"chain\": \"a name\", \"request_id\": \"a UUID\"} as JSON"
                .to_owned(),
        )
    })?;
    let request = request_id(request.as_deref())?;
    let of = find(&web, &part).await?;
    let chain = chain.filter(|chain| !chain.is_empty());
    let published = web
        .backend
        .rerun(Rerun {
            request,
            of,
            chain,
            by,
        })
        .await?;
    Ok(json::response(StatusCode::ACCEPTED, &published))
}
