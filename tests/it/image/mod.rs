//! The image of `deploy/image/Dockerfile`, run as a cluster runs it: read-only, uid 65532, no capability, no new
//! privileges. `./dev image --check` sets `TARSY_TEST_IMAGE`; without it these tests are skipped, with a message.

mod engine;

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::figures::{Figures, from_env};
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;
use engine::{Container, Image};

const ALERT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/drills/oom-killed/alert.json"
);
/// The evidence of the drill is served by the program in the image, as a child of the worker.
const CONFIG: &str = "\
mcp_servers:
  drill:
    command: /usr/bin/tarsy
    args: [evidence-server, oom-killed]
worker: {slots: 2}
dedupe: {cooldown: 0s}
";

/// Limits of the figures in `docs/operations/image.md`.
const MAX_PROGRAM_BYTES: u64 = 42 << 20;
const MAX_COMPRESSED_BYTES: u64 = 30 << 20;
const MAX_START: Duration = Duration::from_millis(300);
const MAX_IDLE_BYTES: u64 = 40 << 20;

/// Servers on loopback, and the image.
struct Node {
    image: Image,
    nats: NatsServer,
    database: TestDatabase,
    config: tempfile::NamedTempFile,
}

impl Node {
    async fn start() -> Option<Self> {
        let image = Image::find()?;
        let config = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(config.path(), CONFIG).unwrap();
        // The file was made for its owner only.
        std::fs::set_permissions(
            config.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o444),
        )
        .unwrap();
        Some(Self {
            image,
            nats: NatsServer::start().await,
            database: TestDatabase::empty(),
            config,
        })
    }

    /// Starts a container. Names are resolved in it, so `localhost` shows that this works.
    fn run(&self, name: &str, args: &[&str], more: &[(&str, &str)]) -> Container {
        let here = |url: &str| url.replace("127.0.0.1", "localhost");
        let (nats, database) = (here(&self.nats.url()), here(self.database.url()));
        let mut env = vec![
            ("NATS_URL", nats.as_str()),
            ("DATABASE_URL", database.as_str()),
            ("TARSY_CONFIG", "/etc/tarsy/tarsy.yaml"),
        ];
        env.extend(more);
        let config = self.config.path().to_str().unwrap();
        let files = [
            ("/etc/tarsy/tarsy.yaml", config),
            ("/etc/tarsy/alert.json", ALERT),
        ];
        self.image.run(name, args, &env, &files)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_investigates_a_drill_read_only_and_without_privileges() {
    let Some(node) = Node::start().await else {
        return;
    };
    let mut migrate = node.run("migrate", &["migrate"], &[]);
    assert_eq!(
        migrate.process.finished().await.0,
        0,
        "{}",
        migrate.process.log()
    );
    let mut llm = node.run("llm", &["llm-service", "--listen", "127.0.0.1:0"], &[]);
    let address = llm.process.ready().await;
    let llm_addr = [("TARSY_LLM_ADDR", address.as_str())];
    let mut worker = node.run("worker", &["worker", "--listen", "127.0.0.1:0"], &llm_addr);
    let probes = worker.process.ready().await;
    eventually("the worker is ready", async || {
        http::get(&probes, "/readyz").await.status == 200
    })
    .await;
    for role in [&llm, &worker] {
        assert_eq!(role.confinement(), engine::Confinement::expected());
    }
    let idle: Vec<u64> = [&llm, &worker].map(Container::memory_bytes).to_vec();

    let mut health = node.run("health", &["health", &probes], &[]);
    assert_eq!(health.process.finished().await, (0, "ok\n".to_owned()));
    let mut submit = node.run(
        "submit",
        &["submit", "/etc/tarsy/alert.json", "--watch"],
        &llm_addr,
    );
    let (code, shown) = submit.process.finished().await;
    assert_eq!(code, 0, "{shown}{}", submit.process.log());
    // The cause, and a tool of the evidence.
    assert!(
        shown.contains("512Mi") && shown.contains("drill.query_range"),
        "{shown}"
    );
    let after: Vec<u64> = [&llm, &worker].map(Container::memory_bytes).to_vec();

    for role in [&mut worker, &mut llm] {
        let begun = Instant::now();
        role.process.terminate();
        assert_eq!(role.process.finished().await.0, 0, "{}", role.process.log());
        println!("SIGTERM to the end: {} ms", begun.elapsed().as_millis());
    }
    println!(
        "resident MiB, llm-service and worker: idle {:?}, after a drill {:?}",
        mib(&idle),
        mib(&after)
    );
    assert!(
        idle.iter().all(|bytes| *bytes < MAX_IDLE_BYTES),
        "{:?}",
        mib(&idle)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_is_small_and_starts_at_once() {
    let Some(node) = Node::start().await else {
        return;
    };
    let sizes = node.image.sizes();
    let shown = [
        sizes.program,
        sizes.unpacked,
        sizes.compressed.unwrap_or_default(),
    ];
    println!(
        "MiB: program, image unpacked, image compressed (0: unknown): {:?}",
        mib(&shown)
    );
    let mut migrate = node.run("migrate", &["migrate"], &[]);
    assert_eq!(
        migrate.process.finished().await.0,
        0,
        "{}",
        migrate.process.log()
    );

    let mut starts = Figures::default();
    for _ in 0..from_env("TARSY_IMAGE_STARTS", 10) {
        let begun = Instant::now();
        let mut service = node.run("start", &["llm-service", "--listen", "127.0.0.1:0"], &[]);
        let address = service.process.ready().await;
        starts.add(begun.elapsed());
        drop(address);
        service.process.terminate();
        assert_eq!(
            service.process.finished().await.0,
            0,
            "{}",
            service.process.log()
        );
    }
    println!("from the start of the container to `ready`: {starts}");
    assert!(sizes.program <= MAX_PROGRAM_BYTES, "{}", sizes.program);
    assert!(
        sizes.compressed.unwrap_or_default() <= MAX_COMPRESSED_BYTES,
        "{:?}",
        sizes.compressed
    );
    // With other tests in parallel a start takes longer.
    assert!(starts.median() < MAX_START * 4, "{starts}");
}

#[test]
fn the_image_names_every_component_and_has_their_licences() {
    let Some(image) = Image::find() else { return };
    let sbom: Value =
        serde_json::from_slice(&image.file("/usr/share/sbom/tarsy.cdx.json")).unwrap();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    assert_eq!(
        sbom["metadata"]["component"]["version"],
        env!("CARGO_PKG_VERSION")
    );
    let names = sbom["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|component| component["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    for name in [
        "tokio",
        "diesel",
        "rustls",
        "pq-src",
        "postgresql",
        "libssl-dev",
        "libc6-dev",
        "ca-certificates",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    assert!(
        !names.contains(&"insta") && !names.contains(&"protox"),
        "only what is in the program: {names:?}"
    );
    let notices =
        String::from_utf8(image.file("/usr/share/doc/tarsy/THIRD-PARTY-NOTICES")).unwrap();
    for text in [
        "tokio 1.",
        "Copyright (c) Tokio Contributors",
        "PostgreSQL Global Development Group",
        "OpenSSL",
    ] {
        assert!(notices.contains(text), "{text}");
    }
    assert!(
        String::from_utf8(image.file("/usr/share/doc/tarsy/LICENSE"))
            .unwrap()
            .contains("Apache License")
    );
    assert!(
        String::from_utf8(image.file("/etc/ssl/certs/ca-certificates.crt"))
            .unwrap()
            .contains("BEGIN CERTIFICATE")
    );
}

fn mib(bytes: &[u64]) -> Vec<f64> {
    bytes
        .iter()
        .map(|bytes| (*bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0)
        .collect()
}
