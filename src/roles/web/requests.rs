//! Questions, cancel requests, alerts and reruns of people: messages to the workers, as the commands send them. Nothing
//! is written to the database.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::backend::Backend;
use crate::admin::publishing::{questions, reruns};
use tarsy_bus::{ASKED_BY, Nats, NewAlert, PARENT_ID, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_reports::AlertReport;
use tarsy_web::ports::{
    Cancel, Published, Question, Refusal, Requests, Rerun, Submission, Submitted, Unavailable,
};

const PUBLISH_TIMEOUT: Duration = Duration::from_secs(15);

impl Requests for Backend {
    async fn ask(&self, question: Question) -> Result<Published, Refusal> {
        let Question { about, text, by } = question;
        questions::check_text(text.as_bytes()).map_err(Refusal::Invalid)?;
        let report = self.reported(about).await?;
        let parent = questions::may_ask(&report).map_err(Refusal::State)?;
        let nats = self.connected().await?;
        let session = SessionId(Uuid::now_v7());
        let message = NewAlert {
            priority: questions::urgency(&report),
            suffix: questions::SUFFIX.parse().ok(),
            body: text.into_bytes(),
            headers: json!({SESSION_ID: session.to_string(), PARENT_ID: parent.to_string(), ASKED_BY: by}),
        };
        let published = self.published(nats.publish_question(message)).await?;
        tracing::info!(session_id = %session, parent_id = %parent, by, "question published");
        Ok(Published {
            session_id: session,
            subject: published.subject,
            stream_sequence: published.sequence,
        })
    }

    async fn cancel(&self, cancel: Cancel) -> Result<(), Refusal> {
        let Cancel { session, by } = cancel;
        let report = self.reported(session).await?;
        may_cancel(&report).map_err(Refusal::State)?;
        let nats = self.connected().await?;
        self.published(nats.request_cancel_by(session, &by)).await?;
        tracing::info!(session_id = %session, by, "cancel request published");
        Ok(())
    }

    async fn submit(&self, submission: Submission) -> Result<Submitted, Refusal> {
        self.submit_alerts(submission).await
    }

    fn may_rerun(&self, report: &AlertReport) -> Result<(), Refusal> {
        reruns::may_rerun(report).map_err(Refusal::State)
    }

    async fn rerun(&self, rerun: Rerun) -> Result<Published, Refusal> {
        self.rerun_alert(rerun).await
    }

    fn chains(&self) -> &[String] {
        self.rules().chains().unwrap_or_default()
    }

    fn max_alert_bytes(&self) -> usize {
        self.rules().max_alert_bytes()
    }
}

/// Whether there is something to cancel; else the reason.
fn may_cancel(report: &AlertReport) -> Result<(), String> {
    let short = report.alert_id.short();
    if report.limited_by.is_some() {
        return Err(format!("alert {short} is not investigated"));
    }
    if let Some(joined) = report.joined_session_id {
        let joined = joined.short();
        return Err(format!(
            "alert {short} joined session {joined}, which continues"
        ));
    }
    match &report.session {
        Some(session) if session.finished_at.is_some() => Err(format!("session {short} is over")),
        Some(_) | None => Ok(()),
    }
}

impl Backend {
    pub(super) async fn reported(&self, id: SessionId) -> Result<AlertReport, Refusal> {
        let report = self.read(self.store.report(id)).await?;
        report
            .ok_or_else(|| Refusal::Unknown(format!("no worker has seen an alert or session {id}")))
    }

    /// The broker, if it is connected now: a message that waits for a connection would be sent in addition to the
    /// user's next try.
    pub(super) async fn connected(&self) -> Result<Nats, Unavailable> {
        let nats = self.first_connection().await?;
        if nats.connection_state().connected {
            return Ok(nats);
        }
        Err(Unavailable(
            "nats unavailable: nothing was published".to_owned(),
        ))
    }

    pub(super) async fn published<T>(
        &self,
        publish: impl Future<Output = Result<T, tarsy_bus::Error>> + Send,
    ) -> Result<T, Unavailable> {
        match tokio::time::timeout(PUBLISH_TIMEOUT, publish).await {
            Ok(Ok(published)) => Ok(published),
            Ok(Err(error)) => Err(self.unavailable("nats", &error)),
            Err(_) => Err(Unavailable(
                "nats unavailable: no answer to a message".to_owned(),
            )),
        }
    }
}
