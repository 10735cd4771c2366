//! The parts of an investigation alone: the checkpoint statement, a claim with its double ack, the stream of an answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tarsy_bus::{ClaimSettings, Claims, Flow};
use tarsy_engine::ports::{Delivery as _, Journal as _};
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{ConversationMessage, GenerateRequest, LlmConfig};
use tokio::sync::{Semaphore, watch};
use tonic::transport::Endpoint;

use crate::fixture::{checkpoint, running_session};
use crate::line;
use crate::meter::{own_processor_time, processor_time};
use crate::rig::{AT_ONCE, Rig};
use crate::support::figures::Figures;

const WARM_UP: usize = 100;
const COUNT: usize = 2_000;

pub(crate) async fn measure() {
    let rig = Rig::start(&AT_ONCE, &[]).await;
    checkpoints(&rig).await;
    claims(&rig).await;
    streams(&rig).await;
}

fn print(name: &str, figures: &Figures, server: &str, used: Duration) {
    let ms = |part: f64| figures.quantile(part).as_secs_f64() * 1e3;
    line(
        &format!("{name}, p50 / p99"),
        format_args!("{:.2} / {:.2} ms", ms(0.5), ms(0.99)),
    );
    let each = used.as_secs_f64() * 1e3 / figures.count() as f64;
    line(
        &format!("  processor time of {server} for each"),
        format_args!("{each:.2} ms"),
    );
}

/// Checkpoints of one session, one after the other: an answer with a call, two events and the records of both calls.
async fn checkpoints(rig: &Rig) {
    let store = rig.system.database.store();
    let (lease, executions) = running_session(&store, 1).await;
    let (mut figures, mut before) = (Figures::default(), Duration::ZERO);
    for number in 1..=WARM_UP + COUNT {
        if number == WARM_UP + 1 {
            (figures, before) = (Figures::default(), processor_time(rig.postgres.pid()));
        }
        let checkpoint = checkpoint(executions[0], u32::try_from(number).unwrap());
        let began = Instant::now();
        store.append(lease, checkpoint).await.unwrap();
        figures.add(began.elapsed());
    }
    print(
        "the checkpoint statement alone",
        &figures,
        "Postgres",
        processor_time(rig.postgres.pid()) - before,
    );
}

/// Alerts that are claimed for one slot and acknowledged, one after the other.
async fn claims(rig: &Rig) {
    rig.publish(WARM_UP + COUNT).await;
    let nats = rig.system.connect().await;
    let (_flow, flows) = watch::channel(Flow::Claim);
    let mut claims = Claims::start(
        &nats,
        ClaimSettings::default(),
        Arc::new(Semaphore::new(1)),
        flows,
    );
    let (mut figures, mut before) = (Figures::default(), Duration::ZERO);
    for number in 1..=WARM_UP + COUNT {
        if number == WARM_UP + 1 {
            (figures, before) = (
                Figures::default(),
                own_processor_time(rig.system.nats.pid()),
            );
        }
        let began = Instant::now();
        let claimed = claims.next().await.unwrap();
        claimed.job.delivery.ack().await.unwrap();
        figures.add(began.elapsed());
    }
    let used = own_processor_time(rig.system.nats.pid()) - before;
    print(
        "a claim and its double ack alone",
        &figures,
        "nats-server",
        used,
    );
    claims.stop().await;
}

/// Answers of the recording, one after the other.
async fn streams(rig: &Rig) {
    let endpoint = Endpoint::from_shared(format!("http://{}", rig.system.llm_addr())).unwrap();
    let channel = endpoint.connect().await.unwrap();
    let (mut figures, mut before) = (Figures::default(), Duration::ZERO);
    for number in 1..=WARM_UP + COUNT {
        if number == WARM_UP + 1 {
            (figures, before) = (Figures::default(), own_processor_time(rig.system.llm.pid()));
        }
        let content = "MeasuredDrill: something is wrong".to_owned();
        let message = ConversationMessage {
            role: "user".into(),
            content,
            ..ConversationMessage::default()
        };
        let config = LlmConfig {
            backend: "scripted".into(),
            provider: "scripted".into(),
            model: "scripted".into(),
            ..LlmConfig::default()
        };
        let request = GenerateRequest {
            messages: vec![message],
            llm_config: Some(config),
            ..GenerateRequest::default()
        };
        let began = Instant::now();
        let mut stream = LlmServiceClient::new(channel.clone())
            .generate(request)
            .await
            .unwrap()
            .into_inner();
        while stream.message().await.unwrap().is_some() {}
        figures.add(began.elapsed());
    }
    let used = own_processor_time(rig.system.llm.pid()) - before;
    print(
        "the scripted stream alone",
        &figures,
        "the LLM service",
        used,
    );
}
