//! The ports of the web server with one session, without a database and without a broker.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::data::{report, story, system};
use crate::access::{Allow, Gate, Hosts, Mode};
use crate::hub::Hub;
use crate::ports::{
    Cancel, Cast, Decision, Freeze, Judgement, Lane, MayDecide, Notice, People, Published,
    Question, Queue, Reader, Recorded, Refusal, Requests, Rerun, Submission, Submitted, Timelines,
    Unavailable, Update, Updates, WorkerSystem,
};
use crate::rendering::Renderer;
use crate::router::router;
use crate::server::Settings;
use crate::state::Web;
use tarsy_core::approvals::{RequestId, Voter};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::TimelineEvent;
use tarsy_engine::ports::WorkerStatus;
use tarsy_http::listener::Limits;
use tarsy_reports::calls::testing::rebuilt;
use tarsy_reports::calls::{CallNumber, NumberedCall, RebuiltCall};
use tarsy_reports::{
    AlertReport, ApprovalDetail, ApprovalFilter, ApprovalRow, Check, DeadAlert, EventSearch,
    Excerpt, ExcerptPage, Facets, FoundEvent, FoundEvents, FreezeReport, IdMatch, Match, Place,
    SessionEntry, SessionPage, StatusCounts, Verdict,
};

/// A session whose stored events and whose live ones the test decides.
#[derive(Debug)]
pub(crate) struct FakeBackend {
    stored: Mutex<Result<Vec<TimelineEvent>, Unavailable>>,
    live: broadcast::Sender<Update>,
    read: Mutex<ExcerptsRead>,
    /// Whether the broker is connected.
    is_live: AtomicBool,
    report: Mutex<Option<AlertReport>>,
}

/// The excerpts that were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExcerptsRead {
    pub events: usize,
    pub bytes: usize,
}

/// A server without authentication.
pub fn settings() -> Settings {
    let allow = Allow {
        prompts: vec!["*".to_owned()],
        ..Allow::default()
    };
    let gate = Gate {
        mode: Mode::Open,
        hosts: Hosts::default(),
        allow,
    };
    Settings {
        gate,
        limits: Limits {
            connections: 8,
            per_address: 8,
        },
        streams_per_user: 8,
    }
}

impl FakeBackend {
    /// The first `count` events of [`story`] are stored.
    pub(crate) fn with_events(count: usize) -> Arc<Self> {
        Self::with(story().into_iter().take(count).collect())
    }

    /// These events are stored.
    pub(crate) fn with(events: Vec<TimelineEvent>) -> Arc<Self> {
        Arc::new(Self {
            stored: Mutex::new(Ok(events)),
            live: broadcast::channel(64).0,
            read: Mutex::default(),
            is_live: AtomicBool::new(true),
            report: Mutex::new(Some(report())),
        })
    }

    /// The excerpts that were read since the last call.
    pub(crate) fn excerpts_read(&self) -> ExcerptsRead {
        std::mem::take(&mut self.read.lock())
    }

    /// From now on the broker is connected, as it is at first.
    pub(crate) fn connect_broker(&self) {
        self.is_live.store(true, Ordering::Relaxed);
    }

    /// From now on the broker is not connected.
    pub(crate) fn lose_broker(&self) {
        self.is_live.store(false, Ordering::Relaxed);
    }

    /// From now on this is the report about every id.
    pub(crate) fn report(&self, report: Option<AlertReport>) {
        *self.report.lock() = report;
    }

    /// Stores an event and publishes it.
    pub(crate) fn emit(&self, event: &TimelineEvent) {
        if let Ok(stored) = self.stored.lock().as_mut() {
            stored.push(event.clone());
        }
        self.live.send(Update::Event(event.clone())).unwrap();
    }

    /// From now on the events cannot be read.
    pub(crate) fn lose_events(&self) {
        *self.stored.lock() = Err(Unavailable("database unavailable: no answer".to_owned()));
    }

    /// Answers a request as the server does, without authentication.
    pub(crate) async fn answer(self: &Arc<Self>, path: &str, headers: &[(&str, &str)]) -> Response {
        self.answer_with(settings(), path, headers).await
    }

    /// The same, by a server on which no user may see what models were asked.
    pub(crate) async fn answer_without_prompts(self: &Arc<Self>, path: &str) -> Response {
        let mut settings = settings();
        settings.gate.allow.prompts.clear();
        self.answer_with(settings, path, &[]).await
    }

    async fn answer_with(
        self: &Arc<Self>,
        settings: Settings,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let hub = Hub::new(
            Arc::clone(self),
            settings.streams_per_user,
            CancellationToken::new(),
        );
        let web = Web {
            backend: Arc::clone(self),
            hub,
            renderer: Renderer::default(),
        };
        let router = router(Arc::new(web), Arc::new(settings.gate));
        let request = Request::builder().uri(path).header("host", "localhost");
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        TowerToHyperService::new(router)
            .call(request.body(Body::empty()).unwrap())
            .await
            .unwrap()
    }
}

impl Reader for FakeBackend {
    async fn sessions(&self, _: SessionPage) -> Result<Vec<SessionEntry>, Unavailable> {
        Ok(Vec::new())
    }

    async fn counts(&self, _: SessionPage) -> Result<StatusCounts, Unavailable> {
        Ok(StatusCounts::default())
    }

    async fn facets(&self) -> Result<Facets, Unavailable> {
        Ok(Facets {
            chains: vec!["default".to_owned()],
            sources: vec!["alertmanager".to_owned()],
        })
    }

    async fn find(&self, part: &str) -> Result<IdMatch, Unavailable> {
        let id = report().alert_id;
        Ok(if id.to_string().starts_with(part) {
            IdMatch::One(id)
        } else {
            IdMatch::None
        })
    }

    async fn report(&self, _: SessionId) -> Result<Option<AlertReport>, Unavailable> {
        Ok(self.report.lock().clone())
    }

    async fn events(
        &self,
        _: SessionId,
        after: u32,
        limit: u32,
    ) -> Result<Vec<TimelineEvent>, Unavailable> {
        let stored = self.stored.lock().clone()?;
        let limit = usize::try_from(limit).unwrap();
        Ok(stored
            .into_iter()
            .filter(|event| event.session_seq > after)
            .take(limit)
            .collect())
    }

    async fn excerpts(&self, page: ExcerptPage) -> Result<Vec<Excerpt>, Unavailable> {
        let events = self.events(page.session, page.after, page.limit).await?;
        let characters = usize::try_from(page.characters).unwrap();
        let excerpt = |mut event: TimelineEvent| {
            let is_cut = event.content.chars().count() > characters;
            event.content = event.content.chars().take(characters).collect();
            Excerpt { event, is_cut }
        };
        let excerpts: Vec<Excerpt> = events.into_iter().map(excerpt).collect();
        let mut read = self.read.lock();
        read.events += excerpts.len();
        read.bytes += excerpts
            .iter()
            .map(|excerpt| excerpt.event.content.len())
            .sum::<usize>();
        Ok(excerpts)
    }

    /// Searches two events at once.
    async fn search_events(&self, search: EventSearch) -> Result<FoundEvents, Unavailable> {
        let searched = self.events(search.session, search.after, 2).await?;
        let searched_to = searched
            .last()
            .map_or(search.after, |event| event.session_seq);
        let rest = self.events(search.session, searched_to, 1).await?;
        let events = searched.into_iter().map(|event| {
            let excerpt = search.text.pieces(&event.content);
            let found = Match {
                event: event.session_seq,
                place: Place::Content,
                excerpt,
                cut_before: false,
                cut_after: false,
            };
            FoundEvent { event, found }
        });
        Ok(FoundEvents {
            events: events
                .filter(|each| each.found.excerpt.iter().any(|piece| piece.is_match))
                .collect(),
            searched_to,
            is_complete: rest.is_empty(),
        })
    }

    async fn calls(&self, _: SessionId) -> Result<Option<Vec<NumberedCall>>, Unavailable> {
        Ok(Some(vec![rebuilt().call]))
    }

    async fn call(
        &self,
        _: SessionId,
        number: CallNumber,
    ) -> Result<Option<RebuiltCall>, Unavailable> {
        Ok(matches!(number, CallNumber::Last | CallNumber::Number(1)).then(rebuilt))
    }

    async fn dead_letters(&self, _: u32) -> Result<Vec<DeadAlert>, Unavailable> {
        Ok(Vec::new())
    }
}

impl Timelines for FakeBackend {
    type Session = FakeUpdates;
    type All = FakeUpdates;

    fn follow(&self, _: SessionId, _: u32) -> Result<FakeUpdates, Unavailable> {
        Ok(FakeUpdates(self.live.subscribe()))
    }

    async fn follow_all(&self) -> Result<FakeUpdates, Unavailable> {
        Ok(FakeUpdates(self.live.subscribe()))
    }

    fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Relaxed)
    }
}

/// The updates that [`FakeBackend::emit`] publishes.
#[derive(Debug)]
pub(crate) struct FakeUpdates(broadcast::Receiver<Update>);

impl Updates for FakeUpdates {
    async fn next(&mut self) -> Option<Update> {
        self.0.recv().await.ok()
    }
}

impl Queue for FakeBackend {
    async fn lanes(&self) -> Result<Vec<Lane>, Unavailable> {
        Ok(Vec::new())
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        Vec::new()
    }

    fn systems(&self) -> Vec<WorkerSystem> {
        vec![system("w1", "aaaa"), system("w2", "bbbb")]
    }

    async fn checks(&self) -> Vec<Check> {
        vec![
            Check::new("postgres", Verdict::Fail, "schema <b>0001</b> (behind)")
                .fix("tarsy migrate"),
        ]
    }
}

impl Requests for FakeBackend {
    async fn ask(&self, _: Question) -> Result<Published, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    async fn cancel(&self, _: Cancel) -> Result<(), Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    async fn submit(&self, _: Submission) -> Result<Submitted, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    fn may_rerun(&self, _: &AlertReport) -> Result<(), Refusal> {
        Ok(())
    }

    async fn rerun(&self, _: Rerun) -> Result<Published, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    fn chains(&self) -> &[String] {
        &[]
    }

    fn max_alert_bytes(&self) -> usize {
        1024
    }
}

impl People for FakeBackend {
    async fn approvals(&self, _: ApprovalFilter) -> Result<Vec<ApprovalRow>, Unavailable> {
        Ok(Vec::new())
    }

    async fn approval(&self, _: RequestId) -> Result<Option<ApprovalDetail>, Unavailable> {
        Ok(None)
    }

    async fn freeze_now(&self) -> Result<Option<FreezeReport>, Unavailable> {
        Ok(None)
    }

    async fn notice(&self) -> Notice {
        Notice::default()
    }

    fn may_decide(&self, _: &Voter, _: &ApprovalDetail) -> MayDecide {
        MayDecide::Nothing
    }

    fn may_freeze(&self, _: &Voter) -> bool {
        false
    }

    async fn decide(&self, _: Decision) -> Result<Cast, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    async fn judge(&self, _: Judgement) -> Result<Recorded, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }

    async fn freeze(&self, _: Freeze) -> Result<Recorded, Refusal> {
        Err(Refusal::State("not here".to_owned()))
    }
}
