//! The rules of axe-core (WCAG 2.2 AA and best practice) on every page in every state, with every part opened. The
//! suite has each of two widths with one of the two themes, the proof has each width with both.

use serde_json::{Value, json};

use super::OVERFLOW;
use super::driver::Browser;
use super::states::States;
use crate::support::figures::is_proof;
use crate::web::Web;
use crate::web::approvals::fixture::{PEOPLE, ask};

/// A change of theme changes colours alone.
const RULES: &str = "axe.run(ONLY).then((found) => found.violations.map((rule) => rule.id + ': ' + rule.nodes.map((node) => \
                     node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? node.all[0]?.message ?? '')).slice(0, 3).join(' | ')))";
const EACH_RULE: &str = "{ resultTypes: ['violations'] }";
const COLOURS: &str = "{ resultTypes: ['violations'], runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }";

const FREEZE: &str = "INSERT INTO approval_freezes (freeze_id, is_end, person, reason) \
                      VALUES (gen_random_uuid(), false, 'bob', 'a release')";

const TOKEN: &str = "s3cret-of-the-web";
const SECRET: &str = "s3cret-of-the-proxy";

/// A server for each mode that shows other parts.
struct Servers {
    forms: Web,
    login: Web,
}

impl Servers {
    async fn start(states: &States) -> Self {
        let start = async |name: &str, section: &str, env: (&str, &str)| {
            let file = states.system.file(name);
            std::fs::write(&file, format!("web: {section}\n{PEOPLE}")).unwrap();
            Web::start(
                &states.system,
                &[("TARSY_CONFIG", file.to_str().unwrap()), env],
            )
            .await
        };
        let forms = "{auth: proxy, allow: {ask: ['*'], cancel: ['*'], rerun: ['*'], submit: ['*'], judge: ['*']}}";
        Self {
            forms: start("forms.yaml", forms, ("TARSY_WEB_PROXY_SECRET", SECRET)).await,
            login: start("login.yaml", "{}", ("TARSY_WEB_TOKEN", TOKEN)).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_in_any_state_breaks_a_rule_of_axe() {
    let Some(axe) = std::env::var("TARSY_TEST_AXE")
        .ok()
        .filter(|file| !file.is_empty())
    else {
        return;
    };
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap();
    let states = States::make().await;
    let request = ask(&states.system, "default", "{\"pod\":\"db\u{202e}-1\"}").await;
    states.system.database.execute(FREEZE);
    let servers = Servers::start(&states).await;
    let base = format!("http://{}", servers.forms.address);
    let session = states.session;
    let path_of = |state: &str| {
        states
            .pages
            .iter()
            .find(|(name, _)| *name == state)
            .unwrap()
            .1
            .clone()
    };
    let mut pages: Vec<(&str, String)> = states
        .pages
        .iter()
        .map(|(name, path)| (*name, format!("{base}{path}")))
        .collect();
    for (name, path) in [
        ("list", "/?since=".to_owned()),
        ("empty list", "/?q=nothing-like-this".to_owned()),
        ("queue", "/queue".to_owned()),
        ("every event", format!("/sessions/{session}?view=all")),
        ("one event", format!("/sessions/{session}/events/6")),
        ("model calls", format!("/sessions/{session}/calls")),
        ("one model call", format!("/sessions/{session}/calls/2")),
        ("cancel", path_of("running") + "/cancel"),
        ("submit", "/submit".to_owned()),
        ("rerun", format!("/sessions/{session}/rerun")),
        ("approvals", "/approvals".to_owned()),
        ("request", format!("/approvals/{request}")),
        ("waiting", format!("/sessions/{}", request.session)),
        ("keys", "/keys".to_owned()),
        ("unseen", format!("/sessions/{}", uuid::Uuid::now_v7())),
        ("fault", "/nothing".to_owned()),
    ] {
        pages.push((name, format!("{base}{path}")));
    }
    pages.push(("login", format!("http://{}/login", servers.login.address)));
    browser
        .headers(json!({"X-Tarsy-Proxy-Secret": SECRET, "X-Forwarded-User": "lea", "X-Forwarded-Groups": "sre"}))
        .await;
    let mut found = Vec::new();
    for (number, (name, url)) in pages.iter().enumerate() {
        let wrong = violations(&mut browser, &axe, url, looks(number)).await;
        found.extend(wrong.into_iter().map(|rule| format!("{name} {rule}")));
    }
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(
        browser
            .problems()
            .into_iter()
            .filter(|report| !report.contains("/nothing"))
            .collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

/// The violations of the page in its present state.
pub(super) async fn of_state(browser: &mut Browser) -> Vec<String> {
    let Some(axe) = std::env::var("TARSY_TEST_AXE")
        .ok()
        .filter(|file| !file.is_empty())
    else {
        return Vec::new();
    };
    violations_now(browser, &std::fs::read_to_string(axe).unwrap(), looks(0)).await
}

/// The same in a narrow and in a wide window, with every rule.
pub(super) async fn in_each_width(browser: &mut Browser) -> Vec<String> {
    let Some(axe) = std::env::var("TARSY_TEST_AXE")
        .ok()
        .filter(|file| !file.is_empty())
    else {
        return Vec::new();
    };
    let looks = [(390, "light", EACH_RULE), (1280, "dark", EACH_RULE)];
    violations_now(browser, &std::fs::read_to_string(axe).unwrap(), &looks).await
}

async fn violations(browser: &mut Browser, axe: &str, url: &str, looks: &[Look]) -> Vec<String> {
    browser.looks(390, "light").await;
    browser.open(url).await;
    violations_now(browser, axe, looks).await
}

/// A width and a theme with the rules that are checked in them.
type Look = (u32, &'static str, &'static str);

/// The ways of looking at a page. The suite looks at each page once, in turn in one of two ways.
fn looks(number: usize) -> &'static [Look] {
    const ALL: [Look; 4] = [
        (390, "light", EACH_RULE),
        (390, "dark", COLOURS),
        (1280, "dark", COLOURS),
        (1280, "light", EACH_RULE),
    ];
    const IN_TURN: [[Look; 1]; 2] = [[(390, "light", EACH_RULE)], [(1280, "dark", EACH_RULE)]];
    if is_proof() {
        &ALL
    } else {
        &IN_TURN[number % IN_TURN.len()]
    }
}

/// The violations of the page in each width and theme, with all of its parts opened.
async fn violations_now(browser: &mut Browser, axe: &str, looks: &[Look]) -> Vec<String> {
    let mut found = Vec::new();
    browser.eval("document.querySelectorAll('details').forEach((details) => { details.open = true; }); 0").await;
    browser
        .call("Runtime.evaluate", json!({"expression": axe}))
        .await;
    for (width, theme, rules) in looks {
        browser.looks(*width, theme).await;
        let rules: Vec<Value> =
            serde_json::from_value(browser.eval(&RULES.replace("ONLY", rules)).await).unwrap();
        found.extend(
            rules
                .into_iter()
                .map(|rule| format!("{width} {theme}: {rule}")),
        );
    }
    let widths: &[u32] = if is_proof() {
        &[320, 390, 820, 1280, 1920]
    } else {
        &[320, 1280]
    };
    for width in widths.iter().copied() {
        browser.looks(width, "light").await;
        if browser.eval(OVERFLOW).await != 0 {
            found.push(format!("{width}: it scrolls sideways"));
        }
    }
    found
}
