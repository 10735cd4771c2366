//! `PgBouncer`: in session mode a worker investigates through it, in the other modes it is refused at the start.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use tarsy_core::timeline::EventType;
use tarsy_store::{ConnectOptions, Store};

use crate::support::process::Tarsy;
use crate::support::process::ports::free_port;
use crate::support::system::TestSystem;
use crate::support::wait::eventually_within;

const VARIABLE: &str = "TARSY_TEST_PGBOUNCER";
const READY_WITHIN: Duration = Duration::from_secs(180);

/// The program; `None` after printing why the test is skipped.
fn program() -> Option<PathBuf> {
    let program = std::env::var_os(VARIABLE).filter(|program| !program.is_empty());
    if program.is_none() {
        // This bypasses the test harness, which captures the output of tests.
        let why = format!("\nSKIPPED: pooler: {VARIABLE} is not set, ./dev test sets it\n\n");
        std::io::stderr().write_all(why.as_bytes()).unwrap();
    }
    program.map(PathBuf::from)
}

/// Starts `PgBouncer` in front of the system's server. Returns it with the address of the system's database.
async fn start(program: &std::path::Path, system: &TestSystem, settings: &str) -> (Tarsy, String) {
    let (scheme, rest) = system.database.url().split_once("://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let (user, server) = authority.split_once('@').unwrap();
    let (host, server_port) = server.split_once(':').unwrap();
    let (user, port) = (user.split(':').next().unwrap(), free_port());
    let file = system.file(&format!("pgbouncer-{port}.ini"));
    let configuration = format!(
        "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\n{settings}\n"
    )
    .replace("* = ", &format!("* = user={user} "));
    std::fs::write(&file, configuration).unwrap();
    // It refuses to run as root, and any user can read its configuration.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(
        file.parent().unwrap(),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let mut arguments = vec![file.to_str().unwrap()];
    if rustix::process::geteuid().is_root() {
        arguments.extend(["-u", "nobody"]);
    }
    let pooler = Tarsy::spawn_program(program, "pgbouncer", &arguments, &[]);
    let address = format!("127.0.0.1:{port}");
    eventually_within(READY_WITHIN, "PgBouncer accepts connections", async || {
        tokio::net::TcpStream::connect(&address).await.is_ok()
    })
    .await;
    (pooler, format!("{scheme}://{user}@{address}/{path}"))
}

/// The exit code and the log of a command on this database.
async fn ended(system: &TestSystem, command: &[&str], url: &str) -> (i32, String) {
    let mut process = Tarsy::spawn(command[0], command, &system.env(url).each());
    let (code, out) = process.finished().await;
    let text = out + &process.log();
    // The table of `tarsy doctor` wraps its lines.
    (code, text.split_whitespace().collect::<Vec<_>>().join(" "))
}

const LOST: &str = "database connection does not keep its settings: a pooler (such as PgBouncer) shares connections \
                    between transactions or ignores `options`";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_shares_connections_is_refused_with_a_sentence() {
    let Some(program) = program() else { return };
    let system = TestSystem::start(&[]).await;
    // Where the settings are ignored, `tarsy doctor` can read, and says that no worker starts.
    for (setting, of_doctor) in [
        ("pool_mode = transaction", 1),
        (
            "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 4",
            1,
        ),
        ("pool_mode = statement", 1),
        (
            "pool_mode = transaction\nignore_startup_parameters = options",
            0,
        ),
        (
            "pool_mode = session\nignore_startup_parameters = options",
            0,
        ),
    ] {
        let (_pooler, url) = start(&program, &system, setting).await;
        for (command, expected) in [("worker", 78), ("doctor", of_doctor)] {
            let (code, log) = ended(&system, &[command], &url).await;
            assert_eq!(code, expected, "{setting} {log}");
            assert!(log.contains(LOST), "{setting} {command}: {log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_investigates_through_a_pooler_of_sessions_with_its_own_time_limits() {
    let Some(program) = program() else { return };
    let mut system = TestSystem::start(&[]).await;
    system.start_llm_service("127.0.0.1:0").await;
    let (_pooler, url) = start(&program, &system, "pool_mode = session").await;
    let (code, log) = ended(&system, &["migrate"], &url).await;
    assert_eq!(code, 0, "{log}");
    let (_worker, _) = system.worker_on("w1", &url).await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    system.assert_invariants(session, &timeline.seen).await;
    let (_, log) = ended(&system, &["doctor"], &url).await;
    assert!(log.contains("ok postgres"), "{log}");

    // The server ends a statement of this client that waits for a row; what it may not write it does not write.
    let options = ConnectOptions {
        lock_timeout: Duration::from_millis(300),
        ..ConnectOptions::new(&url)
    };
    let store = Store::new(&ConnectOptions {
        only_reads: true,
        ..options
    })
    .unwrap();
    let refused = store
        .cancel_unanswered(session)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("read-only transaction"), "{refused}");
}
