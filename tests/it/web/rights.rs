//! Tests of access control: every route in every mode, the headers of every answer, and hostile requests.

use serde_json::Value;

use super::Web;
use super::routes::{Client, Row, rows};
use crate::interfaces::commands::run_with;
use crate::support::http::Answer;
use crate::support::system::TestSystem;

const TOKEN: &str = "s3cret-of-the-web";
const SECRET: &str = "s3cret-of-the-proxy";

/// The headers that every answer has, whatever it is.
const EVERYWHERE: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types tarsy",
    ),
];

fn assert_headers(answer: &Answer, what: &str) {
    for (name, value) in EVERYWHERE {
        assert_eq!(answer.header(name), Some(value), "{what}: {answer:?}");
    }
    assert!(
        answer.header("cache-control").is_some() && answer.header("permissions-policy").is_some(),
        "{what}"
    );
}

/// A system with one session that has ended, and a configuration for each mode.
struct Modes {
    system: TestSystem,
    session: String,
    /// The path of a file that every page loads.
    asset: String,
}

impl Modes {
    async fn start() -> Self {
        let system = TestSystem::start(&[]).await;
        let (_worker, _) = system.worker("w1").await;
        let session = system.publish().await;
        system.follow(session).await.finish().await;
        let page = Web::start(&system, &[]).await.get("/").await.body;
        let asset = page
            .split('"')
            .find(|part| part.starts_with("/assets/"))
            .expect("a file")
            .to_owned();
        Self {
            system,
            session: session.to_string(),
            asset,
        }
    }

    async fn web(&self, section: &str, env: &[(&str, &str)]) -> Web {
        let file = self.system.file("web.yaml");
        std::fs::write(&file, format!("web: {section}\n")).unwrap();
        let config = file.display().to_string();
        Web::start(
            &self.system,
            &[env, &[("TARSY_CONFIG", config.as_str())]].concat(),
        )
        .await
    }

    /// A row for each route, with a file that the pages load.
    fn rows(&self) -> Vec<Row> {
        rows(&self.session, &self.asset)
    }
}

/// A method with the route or, without one, the path.
fn label(row: &Row) -> String {
    format!(
        "{} {}",
        row.method,
        if row.route.is_empty() {
            &row.path
        } else {
            row.route
        }
    )
}

/// The statuses of all routes.
async fn statuses(modes: &Modes, web: &Web, headers: &[(&str, &str)]) -> Vec<(String, u16)> {
    let mut statuses = Vec::new();
    for row in modes.rows() {
        let answer = row.send(web, headers).await;
        assert_headers(&answer, &row.path);
        assert!(
            answer.status < 400 || !answer.body.contains("s3cret"),
            "{row:?}: {answer:?}"
        );
        if row.is_of_api() && answer.status >= 400 {
            assert!(
                !answer.json()["error"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty(),
                "{row:?}: {answer:?}"
            );
        }
        statuses.push((label(&row), answer.status));
    }
    statuses
}

async fn assert_rights(modes: &Modes, web: &Web, headers: &[(&str, &str)], client: Client) {
    let expected: Vec<_> = modes
        .rows()
        .iter()
        .map(|row| (label(row), row.expected(client)))
        .collect();
    assert_eq!(statuses(modes, web, headers).await, expected, "{headers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_answers_as_the_table_of_modes_and_rights_says() {
    let modes = Modes::start().await;
    let own = ("sec-fetch-site", "same-origin");
    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    let (secret, user) = (
        ("x-tarsy-proxy-secret", SECRET),
        ("x-forwarded-email", "ada@example.com"),
    );
    let sre = ("x-forwarded-groups", "dev,sre");
    let reader = Client {
        unknown: None,
        may_ask: false,
        may_cancel: false,
        may_judge: false,
        may_rerun: false,
        may_submit: false,
        may_see_prompts: true,
        may_see_system: false,
        has_login: false,
    };

    let open = modes
        .web(
            "{allow: {ask: ['*'], cancel: ['*'], rerun: ['*'], submit: ['*'], system: ['*']}}",
            &[],
        )
        .await;
    // No one is known, so no one may do more than read; and the headers are not trusted.
    assert_rights(&modes, &open, &[own], reader).await;
    assert_rights(&modes, &open, &[own, secret, user, sre, bearer], reader).await;

    let token = modes.web("{}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let known = Client {
        has_login: true,
        ..reader
    };
    let unknown = Client {
        unknown: Some(303),
        ..known
    };
    assert_rights(&modes, &token, &[own], unknown).await;
    assert_rights(
        &modes,
        &token,
        &[own, ("authorization", "Bearer s3cret")],
        unknown,
    )
    .await;
    assert_rights(&modes, &token, &[own, secret, user, sre], unknown).await;
    assert_rights(&modes, &token, &[bearer], known).await;

    let allowed = modes
        .web("{allow: {ask: ['*']}}", &[("TARSY_WEB_TOKEN", TOKEN)])
        .await;
    assert_rights(
        &modes,
        &allowed,
        &[bearer],
        Client {
            may_ask: true,
            ..known
        },
    )
    .await;

    let allowed = modes
        .web(
            "{allow: {rerun: ['*'], submit: [sre]}}",
            &[("TARSY_WEB_TOKEN", TOKEN)],
        )
        .await;
    assert_rights(
        &modes,
        &allowed,
        &[bearer],
        Client {
            may_rerun: true,
            ..known
        },
    )
    .await;

    let section = "{auth: proxy, allow: {ask: ['*'], cancel: [sre], rerun: [sre], submit: [ops]}}";
    let proxy = modes
        .web(section, &[("TARSY_WEB_PROXY_SECRET", SECRET)])
        .await;
    let unknown = Client {
        unknown: Some(401),
        ..reader
    };
    let doubled = ("x-forwarded-email", "eve@example.com");
    for headers in [
        &[own][..],
        &[own, user, sre],
        &[own, secret, sre],
        &[own, bearer],
        &[own, secret, user, doubled],
    ] {
        assert_rights(&modes, &proxy, headers, unknown).await;
    }
    let may_ask = Client {
        may_ask: true,
        ..reader
    };
    assert_rights(&modes, &proxy, &[own, secret, user], may_ask).await;
    let of_sre = Client {
        may_cancel: true,
        may_rerun: true,
        ..may_ask
    };
    assert_rights(&modes, &proxy, &[own, secret, user, sre], of_sre).await;
    let ops = ("x-forwarded-groups", "ops");
    assert_rights(
        &modes,
        &proxy,
        &[own, secret, user, ops],
        Client {
            may_submit: true,
            ..may_ask
        },
    )
    .await;

    let without = Client {
        may_see_prompts: false,
        ..reader
    };
    let closed = modes.web("{allow: {prompts: []}}", &[]).await;
    assert_rights(&modes, &closed, &[own], without).await;
    let section = "{auth: proxy, allow: {prompts: [sre], system: [sre]}}";
    let listed = modes
        .web(section, &[("TARSY_WEB_PROXY_SECRET", SECRET)])
        .await;
    let of_system = Client {
        may_see_system: true,
        ..reader
    };
    assert_rights(&modes, &listed, &[own, secret, user], without).await;
    assert_rights(&modes, &listed, &[own, secret, user, sre], of_system).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_host_and_another_site_are_refused_on_every_route() {
    let modes = Modes::start().await;
    let allow = "{ask: ['*'], cancel: ['*'], rerun: ['*'], submit: ['*']}";
    let section =
        format!("{{public_url: 'https://tarsy.example.com', hosts: [tarsy-web], allow: {allow}}}");
    let web = modes.web(&section, &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    for host in [
        "evil.example",
        "evil.example:8476",
        "10.1.2.3",
        "tarsy.example.com.evil.example",
        "",
        "localhost@evil",
    ] {
        let statuses = statuses(&modes, &web, &[bearer, ("host", host)]).await;
        assert!(
            statuses
                .iter()
                .all(|(_, status)| [421, 400].contains(status)),
            "{host}: {statuses:?}"
        );
    }
    for host in [
        "tarsy.example.com",
        "localhost:1",
        "[::1]",
        "tarsy-web:8476",
    ] {
        assert_eq!(
            web.ask("GET", "/api/v1/sessions", &[bearer, ("host", host)])
                .await
                .status,
            200,
            "{host}"
        );
    }
    for headers in [
        &[bearer, ("origin", "https://evil.example")][..],
        &[bearer, ("origin", "null")],
        &[bearer, ("sec-fetch-site", "cross-site")],
        &[
            bearer,
            ("sec-fetch-site", "same-site"),
            ("origin", "https://tarsy.example.com"),
        ],
    ] {
        for row in modes.rows().iter().filter(|row| row.method == "POST") {
            let answer = row.send(&web, headers).await;
            assert_headers(&answer, &row.path);
            assert_eq!(answer.status, 403, "{row:?} {headers:?}: {answer:?}");
        }
    }
    let own = [
        bearer,
        ("sec-fetch-site", "same-origin"),
        ("origin", "https://tarsy.example.com"),
    ];
    let client = Client {
        unknown: None,
        may_ask: true,
        may_cancel: true,
        may_judge: false,
        may_rerun: true,
        may_submit: true,
        may_see_prompts: true,
        may_see_system: false,
        has_login: true,
    };
    assert_rights(&modes, &web, &own, client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_sets_a_cookie_that_reads_and_ends() {
    let modes = Modes::start().await;
    let web = modes.web("{}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let asked = web.get("/?status=failed").await;
    assert_eq!(
        (asked.status, asked.header("location")),
        (303, Some("/login?next=%2F%3Fstatus%3Dfailed"))
    );
    let form = web.get("/login?next=%2F%3Fstatus%3Dfailed").await;
    assert!(
        form.status == 200 && form.body.contains("value=\"/?status=failed\""),
        "{form:?}"
    );
    assert_headers(&form, "/login");
    let own = ("origin", format!("http://{}", web.address));
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let log_in = async |token: &str, origin: &str| {
        web.post(
            "/login",
            &[kind, ("origin", origin)],
            &format!("token={token}&next=%2Fapi%2Fv1%2Fqueue"),
        )
        .await
    };
    let wrong = log_in("s3cret", &own.1).await;
    assert!(
        wrong.status == 403 && wrong.header("set-cookie").is_none(),
        "{wrong:?}"
    );
    assert_eq!(log_in(TOKEN, "https://evil.example").await.status, 403);
    let done = log_in(TOKEN, &own.1).await;
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/api/v1/queue"))
    );
    let cookie = done.header("set-cookie").unwrap();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(
        web.ask("GET", "/api/v1/sessions", &[("cookie", pair)])
            .await
            .status,
        200
    );
    let forged = format!("{pair}x");
    assert_eq!(
        web.ask("GET", "/api/v1/sessions", &[("cookie", &forged)])
            .await
            .status,
        401
    );
    // A link on another site comes without the cookie; the answer asks again, as this site.
    let linked = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
    ];
    let again = web.ask("GET", "/?status=failed", &linked).await;
    assert!(
        again
            .body
            .contains("http-equiv=\"refresh\" content=\"0;url=/?status=failed\""),
        "{again:?}"
    );
    let out = web
        .post("/logout", &[("cookie", pair), ("origin", &own.1)], "")
        .await;
    assert!(
        out.status == 303 && out.header("set-cookie").unwrap().contains("Max-Age=0"),
        "{out:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_other_machines_needs_users_who_are_known() {
    let system = TestSystem::start(&[]).await;
    let env = system.env(system.database.url());
    let args = ["web", "--listen", "0.0.0.0:0"];
    let refused = run_with(&env.each(), &args, b"").await.exits(78);
    assert!(
        refused.err.contains("TARSY_WEB_TOKEN") && refused.err.contains("127.0.0.1"),
        "{refused:?}"
    );
    for (auth, variable) in [
        ("token", "TARSY_WEB_TOKEN"),
        ("proxy", "TARSY_WEB_PROXY_SECRET"),
    ] {
        let file = system.file("web.yaml");
        std::fs::write(&file, format!("web: {{auth: {auth}}}\n")).unwrap();
        let config = file.display().to_string();
        let env = [&env.each()[..], &[("TARSY_CONFIG", config.as_str())]].concat();
        let refused = run_with(&env, &["web", "--listen", "127.0.0.1:0"], b"")
            .await
            .exits(78);
        assert!(refused.err.contains(variable), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_stands_in_the_timeline() {
    let modes = Modes::start().await;
    let (_worker, _) = modes.system.worker("w2").await;
    let section = "{auth: proxy, allow: {ask: [sre]}}";
    let web = modes
        .web(section, &[("TARSY_WEB_PROXY_SECRET", SECRET)])
        .await;
    let headers = [
        ("x-tarsy-proxy-secret", SECRET),
        ("x-forwarded-email", "ada@example.com"),
        ("x-forwarded-groups", "sre"),
        ("sec-fetch-site", "same-origin"),
    ];
    let path = format!("/api/v1/sessions/{}/questions", modes.session);
    let asked = web.post(&path, &headers, r#"{"question": "Why?"}"#).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let session = asked.json()["session_id"].as_str().unwrap().to_owned();
    let id = tarsy_core::ids::SessionId::parse(&session).unwrap();
    modes.system.follow(id).await.finish().await;
    let events = web
        .ask(
            "GET",
            &format!("/api/v1/sessions/{session}/events"),
            &headers,
        )
        .await
        .json();
    let question: &Value = &events["events"][1];
    assert_eq!(
        (&question["event_type"], &question["content"]),
        (&"user_question".into(), &"Why?".into())
    );
    assert_eq!(question["metadata"]["asked_by"], "ada@example.com");
    for (body, status) in [("{}", 400), (r#"{"question": " "}"#, 400), ("Why?", 400)] {
        assert_eq!(
            web.post(&path, &headers, body).await.status,
            status,
            "{body}"
        );
    }
}
