//! No role logs or prints a secret, whatever its input is and whatever fails.

use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use crate::interfaces::receive::metrics_of;
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::process::{TARSY, Tarsy};
use crate::support::system::follow_on;

const NATS_PASSWORD: &str = "n4ts-passw0rd";
const DATABASE_PASSWORD: &str = "d4tabase-passw0rd";
const TOKEN: &str = "rece1ver-t0ken";
const WRONG_TOKEN: &str = "wr0ng-t0ken";
const MASKED: &str = "m4sked-variable-value";
const IN_BODY: &str = "marker-0f-the-b0dy";

const ALERT: &str =
    "disk full marker-0f-the-b0dy key m4sked-variable-value\npassword=marker-0f-the-b0dy\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_role_logs_or_prints_a_secret() {
    let auth = format!("authorization {{ user: tarsy, password: \"{NATS_PASSWORD}\" }}");
    let (mut nats, database) = (
        NatsServer::start_with(&auth).await,
        TestDatabase::create().await,
    );
    let nats_url = nats
        .url()
        .replace("nats://", &format!("nats://tarsy:{NATS_PASSWORD}@"));
    let database_url =
        database
            .url()
            .replacen("postgres@", &format!("postgres:{DATABASE_PASSWORD}@"), 1);
    assert!(database_url.contains(DATABASE_PASSWORD));
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("tarsy.yaml");
    let text = format!(
        "mcp_servers:\n  drill: {{command: {TARSY}, args: [evidence-server, oom-killed, --no-delays]}}\n\
         masking:\n  variables: [CLUSTER_KEY]\nworker: {{lease: 2s}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut env = vec![
        ("NATS_URL", nats_url.clone()),
        ("DATABASE_URL", database_url),
        ("TARSY_CONFIG", config.display().to_string()),
        ("TARSY_RECEIVE_TOKEN", TOKEN.to_owned()),
        ("CLUSTER_KEY", MASKED.to_owned()),
    ];
    let spawn = |name: &str, args: &[&str], env: &[(&str, String)]| {
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        Tarsy::spawn(
            name,
            &[args, &["--log-level", "trace", "--log", "json"]].concat(),
            &env,
        )
    };
    let mut llm = spawn(
        "llm-service",
        &["llm-service", "--listen", "127.0.0.1:0", "--pace", "0ms"],
        &env,
    );
    env.push(("TARSY_LLM_ADDR", llm.ready().await));
    let mut migrate = spawn("migrate", &["migrate"], &env);
    assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
    let mut worker = spawn("worker", &["worker"], &env);
    worker.ready().await;
    let mut receive = spawn("receive", &["receive", "--listen", "127.0.0.1:0"], &env);
    let (address, metrics) = (receive.ready().await, metrics_of(&mut receive).await);
    super::status_is(&metrics, "/readyz", 200).await;
    // This worker cannot reach its database.
    let unreachable = (
        "DATABASE_URL",
        format!("postgres://postgres:{DATABASE_PASSWORD}@127.0.0.1:1/none"),
    );
    let waiting = spawn(
        "waiting",
        &["worker"],
        &[env.clone(), vec![unreachable]].concat(),
    );
    waiting.logged("database unavailable").await;

    let authorized = format!("Bearer {TOKEN}");
    let authorized = [("authorization", authorized.as_str())];
    let session = post_and_follow(&address, &authorized, &nats_url).await;
    let wrong = format!("Bearer {WRONG_TOKEN}");
    let refused = http::post(
        &address,
        "/alert",
        &[("authorization", &wrong)],
        ALERT.as_bytes(),
    )
    .await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        http::post(&address, "/alertmanager", &authorized, ALERT.as_bytes())
            .await
            .status,
        400
    );
    let mut broken = ALERT.as_bytes().to_vec();
    broken.extend([&[0xff][..], &vec![0; ALERT.len()]].concat());
    assert_eq!(
        http::post(&address, "/alert", &authorized, &broken)
            .await
            .status,
        400
    );
    nats.restart().await;
    super::status_is(&metrics, "/readyz", 200).await;
    worker.logged("nats is unavailable").await;
    post_and_follow(&address, &authorized, &nats_url).await;

    let mut all = waiting.log();
    for role in [&mut worker, &mut receive, &mut llm] {
        role.terminate();
        let (code, out) = role.finished().await;
        assert_eq!(code, 0, "{}", role.log());
        let lines: Vec<Value> = role
            .log()
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect();
        let about = |line: &&Value| line["session_id"] == session.to_string();
        assert!(
            lines.iter().filter(about).count() > 0,
            "no line of {session}: {}",
            role.log()
        );
        all += &(out + &role.log());
    }
    for secret in [
        NATS_PASSWORD,
        DATABASE_PASSWORD,
        TOKEN,
        WRONG_TOKEN,
        MASKED,
        IN_BODY,
    ] {
        let lines: Vec<&str> = all.lines().filter(|line| line.contains(secret)).collect();
        assert_eq!(lines, Vec::<&str>::new(), "{secret}");
    }
}

async fn post_and_follow(address: &str, authorized: &[(&str, &str)], nats_url: &str) -> SessionId {
    let body = format!("{ALERT}{}", uuid::Uuid::new_v4());
    let answer = http::post(address, "/alert", authorized, body.as_bytes()).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let session = SessionId::parse(answer.json()["session_id"].as_str().unwrap()).unwrap();
    let mut timeline = follow_on(nats_url, session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    session
}
