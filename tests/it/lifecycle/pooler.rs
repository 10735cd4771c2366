//! `PgBouncer` in transaction mode is refused at the start, with a sentence that names it.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

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
async fn start(program: &std::path::Path, system: &TestSystem, setting: &str) -> (Tarsy, String) {
    let (scheme, rest) = system.database.url().split_once("://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let (user, server) = authority.split_once('@').unwrap();
    let (host, server_port) = server.split_once(':').unwrap();
    let (user, port) = (user.split(':').next().unwrap(), free_port());
    let file = system.file(&format!("pgbouncer-{port}.ini"));
    let settings = format!(
        "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\npool_mode = transaction\n{setting}\n"
    )
    .replace("* = ", &format!("* = user={user} "));
    std::fs::write(&file, settings).unwrap();
    // It refuses to run as root, and any user can read its configuration.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_in_transaction_mode_is_refused_with_a_sentence() {
    let Some(program) = program() else { return };
    let system = TestSystem::start(&[]).await;
    let (_pooler, url) = start(&program, &system, "").await;
    for (command, expected) in [("worker", 78), ("doctor", 1)] {
        let (code, log) = ended(&system, &[command], &url).await;
        assert_eq!(code, expected, "{log}");
        assert!(log.contains("a pooler (such as PgBouncer) does not pass settings on: use Postgres itself"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_ignores_settings_is_refused_with_a_sentence() {
    let Some(program) = program() else { return };
    let system = TestSystem::start(&[]).await;
    let (_pooler, url) = start(&program, &system, "ignore_startup_parameters = options").await;
    let (code, log) = ended(&system, &["worker"], &url).await;
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("database connection does not keep its settings: a pooler"), "{log}");
}
