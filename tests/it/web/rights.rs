//! Who may do what: every route in every mode, the headers of every answer, and hostile requests.

use serde_json::Value;

use super::Web;
use crate::interfaces::commands::run_with;
use crate::support::http::Answer;
use crate::support::system::TestSystem;

const TOKEN: &str = "s3cret-of-the-web";
const SECRET: &str = "s3cret-of-the-proxy";

/// The headers that every answer has, whatever it is.
const EVERYWHERE: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
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
    assert!(answer.header("cache-control").is_some() && answer.header("permissions-policy").is_some(), "{what}");
}

/// A system with one session that has ended, and a configuration for each mode.
struct Modes {
    system: TestSystem,
    session: String,
}

impl Modes {
    async fn start() -> Self {
        let system = TestSystem::start(&[]).await;
        let (_worker, _) = system.worker("w1").await;
        let session = system.publish().await;
        system.follow(session).await.finish().await;
        Self { system, session: session.to_string() }
    }

    async fn web(&self, section: &str, env: &[(&str, &str)]) -> Web {
        let file = self.system.file("web.yaml");
        std::fs::write(&file, format!("web: {section}\n")).unwrap();
        let config = file.display().to_string();
        Web::start(&self.system, &[env, &[("TARSY_CONFIG", config.as_str())]].concat()).await
    }

    /// Every route with its method.
    fn routes(&self) -> Vec<(&'static str, String)> {
        let session = &self.session;
        let get = |path: String| ("GET", path);
        vec![
            get("/".to_owned()),
            get("/api/v1/sessions".to_owned()),
            get(format!("/api/v1/sessions/{session}")),
            get(format!("/api/v1/sessions/{session}/events")),
            get(format!("/api/v1/sessions/{session}/events/1")),
            get("/api/v1/queue".to_owned()),
            get("/api/v1/dead-letters".to_owned()),
            get("/api/v1/openapi.json".to_owned()),
            ("POST", format!("/api/v1/sessions/{session}/questions")),
            ("POST", format!("/api/v1/sessions/{session}/cancel")),
            get("/nothing".to_owned()),
            get("/api/v1/nothing".to_owned()),
            ("POST", "/api/v1/sessions".to_owned()),
        ]
    }
}

/// The statuses of all routes for a client.
async fn statuses(modes: &Modes, web: &Web, headers: &[(&str, &str)]) -> Vec<u16> {
    let mut statuses = Vec::new();
    for (method, path) in modes.routes() {
        let answer = match method {
            "POST" => web.post(&path, headers, r#"{"question": "Why?"}"#).await,
            method => web.ask(method, &path, headers).await,
        };
        assert_headers(&answer, &path);
        if path.starts_with("/api/v1") && answer.status >= 400 {
            let error = answer.json()["error"].as_str().unwrap_or_default().to_owned();
            assert!(!error.is_empty() && !error.contains("s3cret"), "{answer:?}");
        }
        statuses.push(answer.status);
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_answers_as_the_table_of_modes_and_rights_says() {
    let modes = Modes::start().await;
    let own = ("sec-fetch-site", "same-origin");
    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    let (secret, user) = (("x-tarsy-proxy-secret", SECRET), ("x-forwarded-email", "ada@example.com"));
    let sre = ("x-forwarded-groups", "dev,sre");
    let reads: [u16; 8] = [200; 8];
    let [not_found, not_allowed] = [404, 405];
    // Reads, question, cancel, unknown page, unknown route, wrong method.
    let row = |reads: &[u16], rest: [u16; 5]| [reads, &rest].concat();
    let only_reads = row(&reads, [not_found, not_found, not_found, not_found, not_allowed]);
    let refused = |page: u16| [&[page], &[401; 9][..], &[page, 401, 401]].concat();

    let open = modes.web("{allow: {ask: ['*'], cancel: ['*']}}", &[]).await;
    assert_eq!(statuses(&modes, &open, &[own]).await, only_reads, "no one is known, so no one may do more");
    assert_eq!(statuses(&modes, &open, &[own, secret, user, sre, bearer]).await, only_reads, "headers are not trusted");

    let token = modes.web("{}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    assert_eq!(statuses(&modes, &token, &[own]).await, refused(303));
    assert_eq!(statuses(&modes, &token, &[own, ("authorization", "Bearer s3cret")]).await, refused(303));
    assert_eq!(statuses(&modes, &token, &[own, secret, user, sre]).await, refused(303));
    assert_eq!(statuses(&modes, &token, &[bearer]).await, only_reads);

    let allowed = modes.web("{allow: {ask: ['*']}}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let may_ask = row(&reads, [202, not_found, not_found, not_found, not_allowed]);
    assert_eq!(statuses(&modes, &allowed, &[bearer]).await, may_ask);

    let section = "{auth: proxy, allow: {ask: ['*'], cancel: [sre]}}";
    let proxy = modes.web(section, &[("TARSY_WEB_PROXY_SECRET", SECRET)]).await;
    assert_eq!(statuses(&modes, &proxy, &[own]).await, refused(401));
    assert_eq!(statuses(&modes, &proxy, &[own, user, sre]).await, refused(401), "without the secret");
    assert_eq!(statuses(&modes, &proxy, &[own, secret, sre]).await, refused(401), "without a user");
    assert_eq!(statuses(&modes, &proxy, &[own, bearer]).await, refused(401));
    assert_eq!(statuses(&modes, &proxy, &[own, secret, user]).await, may_ask);
    // The session has ended, so it is in the wrong state for a cancel request.
    let may_cancel = row(&reads, [202, 409, not_found, not_found, not_allowed]);
    assert_eq!(statuses(&modes, &proxy, &[own, secret, user, sre]).await, may_cancel);
    let doubled = [own, secret, user, ("x-forwarded-email", "eve@example.com")];
    assert_eq!(statuses(&modes, &proxy, &doubled).await, refused(401), "two users");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_host_and_another_site_are_refused_on_every_route() {
    let modes = Modes::start().await;
    let section = "{public_url: 'https://tarsy.example.com', hosts: [tarsy-web], allow: {ask: ['*']}}";
    let web = modes.web(section, &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let bearer = format!("Bearer {TOKEN}");
    let bearer = ("authorization", bearer.as_str());
    for host in
        ["evil.example", "evil.example:8476", "10.1.2.3", "tarsy.example.com.evil.example", "", "localhost@evil"]
    {
        let statuses = statuses(&modes, &web, &[bearer, ("host", host)]).await;
        assert!(statuses.iter().all(|status| [421, 400].contains(status)), "{host}: {statuses:?}");
    }
    for host in ["tarsy.example.com", "localhost:1", "[::1]", "tarsy-web:8476"] {
        assert_eq!(statuses(&modes, &web, &[bearer, ("host", host)]).await[1], 200, "{host}");
    }
    let path = format!("/api/v1/sessions/{}/questions", modes.session);
    for (headers, status) in [
        (vec![bearer, ("origin", "https://evil.example")], 403),
        (vec![bearer, ("origin", "null")], 403),
        (vec![bearer, ("sec-fetch-site", "cross-site")], 403),
        (vec![bearer, ("sec-fetch-site", "same-site"), ("origin", "https://tarsy.example.com")], 403),
        (vec![bearer, ("sec-fetch-site", "same-origin"), ("origin", "https://tarsy.example.com")], 202),
    ] {
        let answer = web.post(&path, &headers, r#"{"question": "Why?"}"#).await;
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_sets_a_cookie_that_reads_and_ends() {
    let modes = Modes::start().await;
    let web = modes.web("{}", &[("TARSY_WEB_TOKEN", TOKEN)]).await;
    let asked = web.get("/?status=failed").await;
    assert_eq!((asked.status, asked.header("location")), (303, Some("/login?next=%2F%3Fstatus%3Dfailed")));
    let form = web.get("/login?next=%2F%3Fstatus%3Dfailed").await;
    assert!(form.status == 200 && form.body.contains("value=\"/?status=failed\""), "{form:?}");
    assert_headers(&form, "/login");
    let own = ("origin", format!("http://{}", web.address));
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let log_in = async |token: &str, origin: &str| {
        web.post("/login", &[kind, ("origin", origin)], &format!("token={token}&next=%2Fapi%2Fv1%2Fqueue")).await
    };
    let wrong = log_in("s3cret", &own.1).await;
    assert!(wrong.status == 403 && wrong.header("set-cookie").is_none(), "{wrong:?}");
    assert_eq!(log_in(TOKEN, "https://evil.example").await.status, 403);
    let done = log_in(TOKEN, &own.1).await;
    assert_eq!((done.status, done.header("location")), (303, Some("/api/v1/queue")));
    let cookie = done.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains(TOKEN), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(web.ask("GET", "/api/v1/sessions", &[("cookie", pair)]).await.status, 200);
    let forged = format!("{pair}x");
    assert_eq!(web.ask("GET", "/api/v1/sessions", &[("cookie", &forged)]).await.status, 401);
    // A link on another site comes without the cookie; the answer asks again, as this site.
    let linked = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    let again = web.ask("GET", "/?status=failed", &linked).await;
    assert!(again.body.contains("http-equiv=\"refresh\" content=\"0;url=/?status=failed\""), "{again:?}");
    let out = web.post("/logout", &[("cookie", pair), ("origin", &own.1)], "").await;
    assert!(out.status == 303 && out.header("set-cookie").unwrap().contains("Max-Age=0"), "{out:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_other_machines_needs_users_who_are_known() {
    let system = TestSystem::start(&[]).await;
    let env = system.env(system.database.url());
    let args = ["web", "--listen", "0.0.0.0:0"];
    let refused = run_with(&env.each(), &args, b"").await.exits(78);
    assert!(refused.err.contains("TARSY_WEB_TOKEN") && refused.err.contains("127.0.0.1"), "{refused:?}");
    for (auth, variable) in [("token", "TARSY_WEB_TOKEN"), ("proxy", "TARSY_WEB_PROXY_SECRET")] {
        let file = system.file("web.yaml");
        std::fs::write(&file, format!("web: {{auth: {auth}}}\n")).unwrap();
        let config = file.display().to_string();
        let env = [&env.each()[..], &[("TARSY_CONFIG", config.as_str())]].concat();
        let refused = run_with(&env, &["web", "--listen", "127.0.0.1:0"], b"").await.exits(78);
        assert!(refused.err.contains(variable), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_stands_in_the_timeline() {
    let modes = Modes::start().await;
    let (_worker, _) = modes.system.worker("w2").await;
    let section = "{auth: proxy, allow: {ask: [sre]}}";
    let web = modes.web(section, &[("TARSY_WEB_PROXY_SECRET", SECRET)]).await;
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
    let id = tarsy::investigation::ids::SessionId::parse(&session).unwrap();
    modes.system.follow(id).await.finish().await;
    let events = web.ask("GET", &format!("/api/v1/sessions/{session}/events"), &headers).await.json();
    let question: &Value = &events["events"][1];
    assert_eq!((&question["event_type"], &question["content"]), (&"user_question".into(), &"Why?".into()));
    assert_eq!(question["metadata"]["asked_by"], "ada@example.com");
    for (body, status) in [("{}", 400), (r#"{"question": " "}"#, 400), ("Why?", 400)] {
        assert_eq!(web.post(&path, &headers, body).await.status, status, "{body}");
    }
}
