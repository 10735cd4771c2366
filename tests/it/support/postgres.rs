//! A database for each test, copied from a template that has the schema.
//!
//! The template is named by a hash of the migrations and made once, by the first test; copying it takes
//! milliseconds. The server comes from the environment.

use std::path::Path;
use std::sync::Mutex;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Text};
use sha2::{Digest, Sha256};
use tarsy_store::{ConnectOptions, MIGRATION_TIMEOUT, Store, migrate};
use tokio::sync::OnceCell;
use uuid::Uuid;

const ADMIN_VARIABLE: &str = "TARSY_TEST_DATABASE_URL";
const LOCK: i64 = 8_115_002_417;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();

/// A database that is dropped with the value.
pub(crate) struct TestDatabase {
    name: String,
    url: String,
    admin: String,
    /// A connection for repeated queries.
    looking: Mutex<Option<PgConnection>>,
}

impl TestDatabase {
    /// Creates a database with the current schema.
    pub(crate) async fn create() -> Self {
        let template = TEMPLATE.get_or_init(make_template).await;
        Self::copy_of(template, admin_url())
    }

    /// Creates a database without a schema.
    pub(crate) fn empty() -> Self {
        Self::copy_of("template0", admin_url())
    }

    /// Creates a database without a schema, on another server.
    pub(crate) fn empty_on(admin_url: String) -> Self {
        Self::copy_of("template0", admin_url)
    }

    /// A database that exists, and is not dropped.
    pub(crate) fn kept(url: String) -> Self {
        Self {
            url,
            name: String::new(),
            admin: String::new(),
            looking: Mutex::default(),
        }
    }

    fn copy_of(template: &str, admin: String) -> Self {
        let name = format!("tarsy_t_{}", Uuid::now_v7().simple());
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
        PgConnection::establish(&admin)
            .expect("connect")
            .batch_execute(&sql)
            .expect("create a database");
        Self {
            url: url_of(&admin, &name),
            name,
            admin,
            looking: Mutex::default(),
        }
    }

    /// The URL of the database.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A separate connection, for queries and changes.
    pub(crate) fn connection(&self) -> PgConnection {
        PgConnection::establish(&self.url).expect("connect to the test's database")
    }

    /// A store with the defaults of a worker.
    pub(crate) fn store(&self) -> Store {
        Store::new(&ConnectOptions::new(&self.url)).expect("a pool")
    }

    /// Runs statements that return nothing.
    pub(crate) fn execute(&self, sql: &str) {
        self.connection().batch_execute(sql).expect(sql);
    }

    /// Runs a query that returns one number.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let query = || diesel::select(diesel::dsl::sql::<BigInt>(&format!("({sql})")));
        self.look(sql, |connection| query().get_result(connection))
    }

    /// Runs a query that returns one text.
    pub(crate) fn text(&self, sql: &str) -> String {
        let query = || diesel::select(diesel::dsl::sql::<Text>(&format!("({sql})")));
        self.look(sql, |connection| query().get_result(connection))
    }

    /// Runs a query that returns a boolean.
    pub(crate) fn holds(&self, sql: &str) -> bool {
        let query = || diesel::select(diesel::dsl::sql::<Bool>(&format!("({sql})")));
        self.look(sql, |connection| query().get_result(connection))
    }

    /// Keeps the connection for the next query; reconnects when the server was unavailable since the last one.
    fn look<T>(&self, sql: &str, query: impl Fn(&mut PgConnection) -> QueryResult<T>) -> T {
        let mut kept = self.looking.lock().unwrap();
        if let Some(answer) = kept.as_mut().and_then(|connection| query(connection).ok()) {
            return answer;
        }
        let connection = kept.insert(self.connection());
        query(connection).expect(sql)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped =
            PgConnection::establish(&self.admin).map(|mut admin| admin.batch_execute(&sql));
        if !std::thread::panicking() {
            dropped.expect("connect").expect("drop the test's database");
        }
    }
}

async fn make_template() -> String {
    let template = format!("tarsy_template_{}", migrations_hash());
    let making = format!("{template}_making");
    let mut admin = admin();
    diesel::sql_query("SELECT pg_advisory_lock($1)")
        .bind::<BigInt, _>(LOCK)
        .execute(&mut admin)
        .expect("the lock");
    let exists = format!("EXISTS (SELECT FROM pg_database WHERE datname = '{template}')");
    let exists: bool = diesel::select(diesel::dsl::sql::<Bool>(&exists))
        .get_result(&mut admin)
        .expect("a look");
    if !exists {
        // The template gets its name when it is complete, so an incomplete one is never copied.
        admin
            .batch_execute(&format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)"))
            .expect("drop");
        admin
            .batch_execute(&format!("CREATE DATABASE {making} TEMPLATE template0"))
            .expect("create the template");
        migrate(
            &ConnectOptions::new(url_of(&admin_url(), &making)),
            MIGRATION_TIMEOUT,
        )
        .await
        .expect("migrate the template");
        admin
            .batch_execute(&format!("ALTER DATABASE {making} RENAME TO {template}"))
            .expect("rename the template");
    }
    template
}

fn migrations_hash() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .expect("migrations")
        .flat_map(|migration| {
            std::fs::read_dir(migration.expect("migration").path()).expect("migration")
        })
        .map(|file| file.expect("file").path())
        .collect();
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.file_name().expect("name").as_encoded_bytes());
        hash.update(std::fs::read(&file).expect("sql"));
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn admin_url() -> String {
    std::env::var(ADMIN_VARIABLE)
        .unwrap_or_else(|_| panic!("{ADMIN_VARIABLE} is not set: run ./dev test"))
}

pub(super) fn admin() -> PgConnection {
    PgConnection::establish(&admin_url()).expect("connect to the test server")
}

/// The admin URL with another database.
fn url_of(admin: &str, database: &str) -> String {
    let (base, parameters) = admin
        .split_once('?')
        .map_or((admin, None), |(base, rest)| (base, Some(rest)));
    let (server, _) = base.rsplit_once('/').expect("a URL with a database");
    match parameters {
        Some(parameters) => format!("{server}/{database}?{parameters}"),
        None => format!("{server}/{database}"),
    }
}
