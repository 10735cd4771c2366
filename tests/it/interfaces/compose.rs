//! `deploy/compose.yaml` as processes of this machine: command lines, variables, files and secrets of each service, by
//! the real binary. What Compose would mount is a path here, and what listens takes a free port of loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value, json};

use super::commands::run_with;
use crate::support::http;
use crate::support::nats::NatsServer;
use crate::support::postgres::TestDatabase;
use crate::support::postgres_server::programs;
use crate::support::process::Tarsy;
use crate::support::wait::eventually;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
/// Services of tarsy; the others are servers of other projects.
const ROLES: [&str; 6] = [
    "migrate",
    "llm-service",
    "worker",
    "receive",
    "web",
    "tarsy",
];

/// The file, with the secrets that its script made.
struct Project {
    file: Value,
    secrets: tempfile::TempDir,
    /// Addresses in variables, and where those servers are here.
    addresses: Vec<(&'static str, String)>,
}

fn deploy(path: &str) -> PathBuf {
    Path::new(DEPLOY).join(path)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// `${NAME:-default}` becomes the default.
fn interpolated(value: &str) -> String {
    let Some((before, rest)) = value.split_once("${") else {
        return value.to_owned();
    };
    let (variable, after) = rest.split_once('}').unwrap();
    let (_, default) = variable
        .split_once(":-")
        .unwrap_or_else(|| panic!("{variable} has no default"));
    format!("{before}{default}{}", interpolated(after))
}

/// YAML as JSON, with merge keys resolved: a key beside `<<` has precedence.
fn resolved(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::String(text)) => json!(interpolated(text)),
        Yaml::Value(Scalar::Boolean(value)) => json!(value),
        Yaml::Value(Scalar::Integer(value)) => json!(value),
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Sequence(items) => items.iter().map(resolved).collect(),
        Yaml::Mapping(pairs) => {
            let mut fields = Map::new();
            for (key, value) in pairs {
                match key.as_str().unwrap() {
                    "<<" => resolved(value)
                        .as_object()
                        .unwrap()
                        .iter()
                        .for_each(|(key, value)| {
                            fields.entry(key).or_insert_with(|| value.clone());
                        }),
                    key => _ = fields.insert(interpolated(key), resolved(value)),
                }
            }
            Value::Object(fields)
        }
        other => panic!("{other:?}"),
    }
}

impl Project {
    fn load() -> Self {
        let file = std::fs::read_to_string(deploy("compose.yaml")).unwrap();
        let file = resolved(&Yaml::load_from_str(&file).unwrap()[0]);
        let project = Self {
            file,
            secrets: tempfile::tempdir().unwrap(),
            addresses: Vec::new(),
        };
        project.make_secrets();
        project
    }

    fn make_secrets(&self) {
        let mut script = Command::new(deploy("compose/secrets"));
        script
            .env("TARSY_SECRETS", self.secrets.path())
            .env_remove("GEMINI_API_KEY");
        assert!(script.status().unwrap().success());
    }

    fn secret(&self, name: &str) -> String {
        std::fs::read_to_string(self.secrets.path().join(name)).unwrap()
    }

    fn service(&self, name: &str) -> &Value {
        &self.file["services"][name]
    }

    /// The path on this machine of a container's path.
    fn here(&self, service: &str, path: &str) -> Option<String> {
        let service = self.service(service);
        if let Some(name) = path.strip_prefix("/run/secrets/") {
            assert!(
                texts(&service["secrets"]).contains(&name),
                "{service} does not mount {name}"
            );
            return Some(self.secrets.path().join(name).display().to_string());
        }
        let mount = service["configs"]
            .as_array()?
            .iter()
            .find(|mount| mount["target"] == path)?;
        let file = &self.file["configs"][text(&mount["source"])]["file"];
        Some(deploy(text(file)).display().to_string())
    }

    fn variables(&self, name: &str) -> BTreeMap<String, String> {
        let environment = &self.service(name)["environment"];
        let listed = texts_of_list(environment);
        let pairs = environment.as_object().into_iter().flatten();
        let pairs = pairs
            .map(|(key, value)| (key.clone(), text(value).to_owned()))
            .chain(listed);
        pairs
            .map(|(key, value)| (key, self.found(name, &value)))
            .collect()
    }

    /// A path or an address as it is on this machine; any other text as it is.
    fn found(&self, service: &str, value: &str) -> String {
        let address = self
            .addresses
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, address)| address.clone());
        address
            .or_else(|| self.here(service, value))
            .unwrap_or_else(|| value.to_owned())
    }

    fn start(&self, name: &str) -> Tarsy {
        let args = texts(&self.service(name)["command"])
            .into_iter()
            .map(|arg| match arg {
                listen if listen.starts_with("0.0.0.0:") => "127.0.0.1:0".to_owned(),
                arg => self.found(name, arg),
            });
        let (args, variables): (Vec<String>, _) = (args.collect(), self.variables(name));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        Tarsy::spawn(name, &args, &variables)
    }

    /// Runs the script of the service `reader` twice, as two starts do. The servers of tests share their roles, so the
    /// role has another name here.
    fn make_reader(&self, database: &str) -> Reader {
        let service = self.service("reader");
        let [sh, path] = texts(&service["command"])[..] else {
            panic!("{service}")
        };
        let script = std::fs::read_to_string(self.here("reader", path).unwrap()).unwrap();
        let role = format!("tarsy_reader_{}", uuid::Uuid::now_v7().simple());
        let variables = self.variables("reader");
        // psql is where the programs of the server are, or on PATH.
        let (programs, _) = programs();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let url = url::Url::parse(database).unwrap();
        let (host, port) = (
            url.host_str().unwrap(),
            url.port().unwrap_or(5432).to_string(),
        );
        for _ in 0..2 {
            let mut command = Command::new(sh);
            command
                .arg("-c")
                .arg(script.replace("tarsy_reader", &role))
                .envs(&variables);
            // The database of the test instead of that of the container.
            command
                .env("PGHOST", host)
                .env("PGPORT", &port)
                .env("PGUSER", url.username())
                .env("PATH", &path);
            command.env("PGDATABASE", url.path().trim_start_matches('/'));
            let made = command.output().unwrap();
            assert!(made.status.success(), "{made:?}");
        }
        Reader {
            url: address_of(database, &role),
            role,
            admin: database.to_owned(),
        }
    }

    /// The configuration of nats-server with its includes, without the lines that the server of the test has itself.
    fn nats_settings(&self) -> String {
        let own = ["http:", "jetstream ", "server_name:"];
        let config = std::fs::read_to_string(deploy("compose/nats.conf")).unwrap();
        let lines = config
            .lines()
            .filter(|line| !own.iter().any(|own| line.starts_with(own)));
        let included = lines.map(|line| match line.split_once("include \"") {
            Some((before, rest)) => {
                let (file, after) = rest.split_once('"').unwrap();
                let file = match file.strip_prefix("roles/") {
                    Some(role) => deploy("nats").join(role),
                    None => self.secrets.path().join("nats-passwords.conf"),
                };
                format!(
                    "{before}\n{}\n{after}\n",
                    std::fs::read_to_string(file).unwrap()
                )
            }
            None => format!("{line}\n"),
        });
        included.collect()
    }
}

/// The role that `make_reader` has made; it is dropped with the value.
struct Reader {
    role: String,
    url: String,
    admin: String,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut admin = PgConnection::establish(&self.admin).expect("connect");
        admin
            .batch_execute(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.role))
            .expect("drop the role");
    }
}

/// The address with another user and without a password.
fn address_of(address: &str, user: &str) -> String {
    let mut url = url::Url::parse(address).unwrap();
    url.set_username(user).unwrap();
    url.set_password(None).unwrap();
    url.to_string()
}

/// `NAME=value` in a list.
fn texts_of_list(environment: &Value) -> Vec<(String, String)> {
    let listed = texts(environment)
        .into_iter()
        .map(|pair| pair.split_once('=').unwrap());
    listed
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_compose_migrate_investigate_an_alert_and_drain() {
    let mut project = Project::load();
    let nats = NatsServer::start_with(&project.nats_settings()).await;
    let database = TestDatabase::empty();
    project.addresses.push(("nats://nats:4222", nats.url()));
    project.addresses.push((
        "postgres://tarsy@postgres:5432/tarsy",
        database.url().to_owned(),
    ));

    let mut migrate = project.start("migrate");
    assert_eq!(migrate.finished().await.0, 0, "{}", migrate.log());
    let mut llm = project.start("llm-service");
    project
        .addresses
        .push(("llm-service:50051", llm.ready().await));
    let reader = project.make_reader(database.url());
    project.addresses.push((
        "postgres://tarsy_reader@postgres:5432/tarsy",
        reader.url.clone(),
    ));
    let (mut worker, mut receiver, mut web) = (
        project.start("worker"),
        project.start("receive"),
        project.start("web"),
    );
    let (probes, alerts, pages) = (
        worker.ready().await,
        receiver.ready().await,
        web.ready().await,
    );
    let health = async || run_with(&[], &["health", &probes], b"").await;
    eventually("the worker is healthy", async || {
        health().await.out == "ok\n"
    })
    .await;
    health().await.exits(0);

    // The command that the head of the file names.
    let mut example = project.start("tarsy");
    let (code, output) = example.finished().await;
    assert_eq!(code, 0, "{output}{}", example.log());

    let bearer = format!("authorization: Bearer {}", project.secret("web-token"));
    let request = |headers: &str| {
        format!("GET /api/v1/sessions HTTP/1.0\r\nhost: 127.0.0.1:8476\r\n{headers}\r\n\r\n")
    };
    assert_eq!(
        http::send(&pages, request("accept: */*").as_bytes())
            .await
            .status,
        401
    );
    let listed = http::send(&pages, request(&bearer).as_bytes()).await;
    assert_eq!(
        listed.json()["sessions"].as_array().map(Vec::len),
        Some(1),
        "{listed:?}"
    );
    let rights = "SELECT string_agg(DISTINCT privilege_type, ' ') FROM information_schema.role_table_grants WHERE grantee = ";
    assert_eq!(
        database.text(&format!("{rights}'{}'", reader.role)),
        "SELECT"
    );

    let bearer = format!("Bearer {}", project.secret("receive-token"));
    let post = async |headers: &[(&str, &str)]| {
        http::post(&alerts, "/alert", headers, b"disk full")
            .await
            .status
    };
    eventually("the receiver takes alerts", async || {
        post(&[("authorization", &bearer)]).await == 202
    })
    .await;
    assert_eq!(post(&[]).await, 401);

    for role in [&mut worker, &mut receiver, &mut web, &mut llm] {
        role.terminate();
        assert_eq!(role.finished().await.0, 0, "{}", role.log());
    }
    let gone = run_with(&[], &["health", &probes], b"").await.exits(1);
    assert!(
        gone.err.contains(&format!("no answer from {probes}")),
        "{gone:?}"
    );
}

#[test]
fn every_service_of_tarsy_in_compose_is_confined_and_healthy_by_its_own_program() {
    let project = Project::load();
    for name in ROLES {
        let service = project.service(name);
        let confined = json!({
            "user": service["user"], "read_only": service["read_only"], "cap_drop": service["cap_drop"],
            "security_opt": service["security_opt"], "image": service["image"],
        });
        let expected = json!({
            "user": "65532:65532", "read_only": true, "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"], "image": format!("tarsy:{}", env!("CARGO_PKG_VERSION")),
        });
        assert_eq!(confined, expected, "{name}");
        let listens = texts(&service["command"]).contains(&"0.0.0.0:9090");
        assert_eq!(listens, !service["healthcheck"].is_null(), "{name}");
        if listens {
            assert_eq!(
                service["healthcheck"]["test"],
                json!(["CMD", "/usr/bin/tarsy", "health"]),
                "{name}"
            );
        }
    }
}

#[test]
fn every_secret_of_compose_is_a_file_that_the_script_makes_once() {
    let project = Project::load();
    let declared = project.file["secrets"].as_object().unwrap();
    let names: BTreeSet<String> = declared.keys().cloned().collect();
    for (name, secret) in declared {
        assert_eq!(secret["file"], format!("./compose/.secrets/{name}"));
    }
    let made = || -> BTreeMap<String, String> {
        let files = std::fs::read_dir(project.secrets.path())
            .unwrap()
            .map(|file| file.unwrap().file_name());
        files
            .map(|name| name.into_string().unwrap())
            .map(|name| (name.clone(), project.secret(&name)))
            .collect()
    };
    let first = made();
    assert_eq!(first.keys().cloned().collect::<BTreeSet<_>>(), names);
    let passwords = first
        .iter()
        .filter(|(name, _)| !name.starts_with("nats-passwords") && *name != "provider-key");
    let passwords: BTreeSet<&String> = passwords.map(|(_, value)| value).collect();
    assert!(
        passwords.len() == 9 && passwords.iter().all(|value| value.len() == 48),
        "{passwords:?}"
    );
    project.make_secrets();
    assert_eq!(made(), first);
    let mut script = Command::new(deploy("compose/secrets"));
    script
        .arg("A_KEY")
        .env("TARSY_SECRETS", project.secrets.path())
        .env("A_KEY", "abc");
    assert!(script.status().unwrap().success());
    assert_eq!(project.secret("provider-key"), "abc\n");

    let services = project.file["services"].as_object().unwrap();
    let mounted = services
        .values()
        .flat_map(|service| service["secrets"].as_array().into_iter().flatten());
    let mounted: BTreeSet<String> = mounted
        .map(|mount| {
            mount["source"]
                .as_str()
                .unwrap_or_else(|| text(mount))
                .to_owned()
        })
        .collect();
    assert_eq!(mounted, names, "each secret has a service");
}

#[test]
fn the_nats_server_of_compose_accepts_its_configuration() {
    let project = Project::load();
    let folder = tempfile::tempdir().unwrap();
    // The layout of the container.
    let copy = |from: PathBuf, to: &str| std::fs::copy(from, folder.path().join(to)).unwrap();
    std::fs::create_dir(folder.path().join("roles")).unwrap();
    for role in ["administrator", "worker", "watcher", "receiver"] {
        copy(
            deploy("nats").join(format!("{role}.conf")),
            &format!("roles/{role}.conf"),
        );
    }
    copy(deploy("compose/nats.conf"), "nats.conf");
    copy(
        project.secrets.path().join("nats-passwords.conf"),
        "passwords.conf",
    );
    let server = std::env::var_os("TARSY_TEST_NATS_SERVER")
        .expect("TARSY_TEST_NATS_SERVER is not set: run ./dev test");
    let checked = Command::new(server)
        .arg("-t")
        .arg("-c")
        .arg(folder.path().join("nats.conf"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}
