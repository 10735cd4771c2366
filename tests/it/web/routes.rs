//! Every route of the web server, and what it answers to whom.

use std::collections::BTreeSet;
use std::path::Path;

use super::Web;
use crate::support::http::Answer;

const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "any"];
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// The users who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    /// Clients without a login, too.
    Everyone,
    /// As `Everyone`; only the login by a token has this route.
    Login,
    Readers,
    /// As `Readers`; only the login by a token has this route.
    Logout,
    Askers,
    Cancellers,
    Judges,
    /// Other readers get 403.
    Rerunners,
    /// As `Rerunners`.
    Submitters,
    /// Other readers get 403.
    ReadersOfPrompts,
    /// Other readers get 403.
    ReadersOfSystem,
}

/// A client, as the server knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    /// `None` for a client that is known; else the answer to its request for a page.
    pub(super) unknown: Option<u16>,
    pub(super) may_ask: bool,
    pub(super) may_cancel: bool,
    pub(super) may_judge: bool,
    pub(super) may_rerun: bool,
    pub(super) may_submit: bool,
    pub(super) may_see_prompts: bool,
    pub(super) may_see_system: bool,
    /// Users log in with a token.
    pub(super) has_login: bool,
}

/// A method of a route with an example of its path.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) method: &'static str,
    /// With the names of its parameters; empty for an address without a route.
    pub(super) route: &'static str,
    pub(super) path: String,
    users: Users,
    /// The status that permitted users get.
    status: u16,
    body: &'static str,
}

impl Row {
    fn get(route: &'static str, users: Users, status: u16) -> Self {
        Self {
            method: "GET",
            route,
            path: route.to_owned(),
            users,
            status,
            body: "",
        }
    }

    fn post(route: &'static str, users: Users, status: u16) -> Self {
        Self {
            method: "POST",
            ..Self::get(route, users, status)
        }
    }

    fn with(self, body: &'static str) -> Self {
        Self { body, ..self }
    }

    fn without_route(self) -> Self {
        Self { route: "", ..self }
    }

    pub(super) fn is_of_api(&self) -> bool {
        self.path.starts_with("/api/v1")
    }

    /// The status for this client.
    pub(super) fn expected(&self, client: Client) -> u16 {
        let is_free = matches!(self.users, Users::Everyone | Users::Login);
        if let Some(page) = client.unknown.filter(|_| !is_free) {
            return if self.is_of_api() { 401 } else { page };
        }
        let may = match self.users {
            Users::Everyone | Users::Readers => true,
            Users::Login | Users::Logout => client.has_login,
            Users::Askers => client.may_ask,
            Users::Cancellers => client.may_cancel,
            Users::Judges => client.may_judge,
            Users::Rerunners if !client.may_rerun => return 403,
            Users::Submitters if !client.may_submit => return 403,
            Users::ReadersOfPrompts if !client.may_see_prompts => return 403,
            Users::ReadersOfSystem if !client.may_see_system => return 403,
            Users::Rerunners
            | Users::Submitters
            | Users::ReadersOfPrompts
            | Users::ReadersOfSystem => true,
        };
        if may { self.status } else { 404 }
    }

    /// Sends the request of this row. Of a stream without an end, the head is read alone.
    pub(super) async fn send(&self, web: &Web, headers: &[(&str, &str)]) -> Answer {
        if self.path == "/api/v1/events" {
            let stream = web.stream(&self.path, headers).await;
            if stream.status == 200 {
                return Answer {
                    status: 200,
                    head: stream.head,
                    body: String::new(),
                };
            }
        }
        if self.method != "POST" {
            return web.ask(self.method, &self.path, headers).await;
        }
        let is_form = !self.is_of_api();
        web.post(
            &self.path,
            &[headers, if is_form { &[FORM] } else { &[] }].concat(),
            self.body,
        )
        .await
    }
}

/// A row for each method of each route, about a session that has ended; and addresses and methods without one.
pub(super) fn rows(session: &str, asset: &str) -> Vec<Row> {
    use Users::{
        Askers, Cancellers, Everyone, Judges, Login, Logout, Readers, ReadersOfPrompts,
        ReadersOfSystem, Rerunners, Submitters,
    };
    let rows = [
        Row::get("/", Readers, 200),
        Row::get("/sessions/{part}", Readers, 200),
        Row::get("/sessions/{part}/report.md", Readers, 200),
        Row::get("/sessions/{part}/rows", Readers, 200),
        Row::get("/sessions/{part}/live", Readers, 200),
        Row::get("/sessions/{part}/events/{number}", Readers, 200),
        Row::get("/sessions/{part}/search", Readers, 200),
        Row::get("/sessions/{part}/calls", ReadersOfPrompts, 200),
        Row::get("/sessions/{part}/calls/{number}", ReadersOfPrompts, 200),
        Row::post("/sessions/{part}/questions", Askers, 303).with("question=Why%3F"),
        Row::get("/sessions/{part}/cancel", Cancellers, 200),
        // The session has ended, so it is in the wrong state for a cancel request.
        Row::post("/sessions/{part}/cancel", Cancellers, 409),
        Row::get("/sessions/{part}/rerun", Rerunners, 200),
        Row::post("/sessions/{part}/rerun", Rerunners, 303),
        Row::post("/sessions/{part}/verdict", Judges, 202).with("verdict=right"),
        Row::get("/submit", Submitters, 200),
        Row::post("/submit", Submitters, 303).with("alert=disk+94+%25+full"),
        Row::get("/approvals", Readers, 200),
        // The event of the example asks no person.
        Row::get("/approvals/{part}/{number}", Readers, 404),
        Row::post("/approvals/{part}/{number}", Readers, 404).with("decision=deny"),
        // No person of the configuration may freeze changes.
        Row::post("/approvals/freeze", Readers, 404).with("freeze=begin"),
        Row::get("/s/{part}", Readers, 302),
        Row::get("/s/{part}/{number}", Readers, 302),
        Row::get("/queue", Readers, 200),
        Row::get("/system", ReadersOfSystem, 200),
        Row::get("/keys", Readers, 200),
        Row::get("/keys/{state}", Readers, 303),
        Row::get("/theme/{name}", Readers, 303),
        Row::get("/assets/{name}", Everyone, 200),
        Row::get("/login", Login, 200),
        // The form has no token.
        Row::post("/login", Login, 403).with("next=%2F"),
        Row::post("/logout", Logout, 303),
        Row::get("/api/v1/sessions", Readers, 200),
        Row::get("/api/v1/sessions/{part}", Readers, 200),
        Row::get("/api/v1/sessions/{part}/events", Readers, 200),
        Row::get("/api/v1/sessions/{part}/events/{number}", Readers, 200),
        Row::get("/api/v1/sessions/{part}/calls", ReadersOfPrompts, 200),
        Row::get(
            "/api/v1/sessions/{part}/calls/{number}",
            ReadersOfPrompts,
            200,
        ),
        Row::post("/api/v1/sessions/{part}/questions", Askers, 202).with(r#"{"question": "Why?"}"#),
        Row::post("/api/v1/sessions/{part}/cancel", Cancellers, 409),
        Row::post("/api/v1/sessions/{part}/rerun", Rerunners, 202),
        Row::post("/api/v1/alerts", Submitters, 202).with("disk 94 % full"),
        Row::get("/api/v1/approvals", Readers, 200),
        Row::get("/api/v1/approvals/{part}/{number}", Readers, 404),
        Row::post("/api/v1/approvals/{part}/{number}", Readers, 404)
            .with(r#"{"decision": "deny"}"#),
        Row::get("/api/v1/events", Readers, 200),
        Row::get("/api/v1/queue", Readers, 200),
        Row::get("/api/v1/system", ReadersOfSystem, 200),
        Row::get("/api/v1/dead-letters", Readers, 200),
        Row::get("/api/v1/openapi.json", Readers, 200),
        Row::get("/nothing", Readers, 404).without_route(),
        Row::get("/api/v1/nothing", Readers, 404).without_route(),
        Row::post("/queue", Readers, 405).without_route(),
        Row::post("/api/v1/sessions", Readers, 405).without_route(),
    ];
    let values = [
        ("{part}", session),
        ("{number}", "1"),
        ("{state}", "off"),
        ("/theme/{name}", "/theme/dark"),
    ];
    let path = |row: &Row| {
        let path = values.iter().fold(row.path.clone(), |path, (name, value)| {
            path.replace(name, value)
        });
        path.replace("/assets/{name}", asset)
    };
    rows.into_iter()
        .map(|row| Row {
            path: path(&row),
            ..row
        })
        .collect()
}

/// The methods of the routes in the source of a folder, with their paths.
pub(super) fn in_source(folder: &str) -> BTreeSet<(String, String)> {
    let mut routes = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            routes.extend(in_source(&name));
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let prefix = if name.starts_with("crates/web/src/api/") {
                "/api/v1"
            } else {
                ""
            };
            let found = text.split(".route(").skip(1).flat_map(methods);
            routes.extend(found.map(|(method, path)| (method, format!("{prefix}{path}"))));
        }
    }
    routes
}

/// The methods of one call of `route`, from its arguments on.
fn methods(rest: &str) -> Vec<(String, String)> {
    let mut open = 1;
    let end = rest.find(|character| {
        open += i32::from(character == '(') - i32::from(character == ')');
        open == 0
    });
    let call = &rest[..end.expect("the end of a call")];
    let path = call.split('"').nth(1).expect("a path");
    let named = METHODS
        .iter()
        .filter(|method| call.contains(&format!("{method}(")));
    let methods: Vec<_> = named
        .map(|method| (method.to_uppercase(), path.to_owned()))
        .collect();
    assert!(!methods.is_empty(), "a route without a method: {call}");
    methods
}

#[test]
fn every_method_of_every_route_has_a_row() {
    let rows = rows("", "").into_iter().filter(|row| !row.route.is_empty());
    let rows: BTreeSet<_> = rows
        .map(|row| (row.method.to_owned(), row.route.to_owned()))
        .collect();
    assert_eq!(rows, in_source("crates/web/src"));
}
