//! The earlier investigations of an alert and a second look at an analysis, as people see and click them.

use serde_json::json;

use crate::faults::survive::settled;
use crate::support::system::{Setup, TestSystem};
use crate::web::browser::driver::Browser;
use crate::web::browser::{OVERFLOW, web_of};

const CHAIN: &str = "
agents: {sre: {}}
agent_chains: {look: {review: {when: [always]}, stages: [{name: look, agents: [{name: sre}]}]}}
";
const CALL: &str = "call: {tool: drill.describe_pod, arguments: {namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}";

/// An agent and a reviewer whose words are hostile.
fn transcripts() -> [String; 2] {
    let hostile =
        "<img src=x onerror=\\\"document.title='taken'\\\"><script>document.title='taken'</script>";
    let transcript = |agent: &str, analysis: &str| {
        format!(
            "name: {agent}\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n  - chunks: [{CALL}]\n  \
             - chunks: [text: \"{analysis}\"]\n"
        )
    };
    [
        transcript(
            "sre",
            &format!(
                "Cause: the limit {hostile} [[*]]\\nSure: certain\\nEvidence:\\n- it is low [[*]]\\nDo next: raise it"
            ),
        ),
        transcript(
            "reviewer",
            &format!("Verdict: weakened\\nWhy: {hostile} one fact"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seen_before_leads_to_the_earlier_session_and_a_second_look_is_shown() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let transcripts = transcripts();
    let transcripts = transcripts.each_ref().map(String::as_str);
    let setup = Setup {
        sections: CHAIN,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let _worker = system.worker("w1").await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = system.publish().await;
        system.follow(session).await.finish().await;
        settled(&system, session).await;
        sessions.push(session);
    }
    let (_web, base) = web_of(&system).await;
    let [first, second] = sessions.as_slice() else {
        panic!("two sessions")
    };

    for width in [1_280, 320] {
        browser.looks(width, "light").await;
        browser.open(&format!("{base}/sessions/{second}")).await;
        let seen = browser
            .eval("document.querySelector('section.seen').innerText")
            .await;
        let seen = seen.as_str().unwrap();
        assert!(
            seen.contains("1 time in the 30 days before") && seen.contains("likely, weakened"),
            "{seen}"
        );
        assert!(
            seen.contains("<script>"),
            "a cause is shown as it is: {seen}"
        );
        assert_eq!(browser.eval(OVERFLOW).await, 0, "at {width}");

        let link = format!("section.seen a[href='/sessions/{first}']");
        browser.click(&link).await;
        browser.arrives_at(&format!("/sessions/{first}")).await;
        let earlier = "document.querySelector('section.seen')";
        assert_eq!(
            browser.eval(earlier).await,
            json!(null),
            "the first one has none before it"
        );

        let answer = browser
            .eval("document.querySelector('.answer').textContent")
            .await;
        let answer = answer.as_str().unwrap();
        for part in [
            "Weakened: a second look",
            "Second look",
            "Why: <img src=x",
            "one fact",
        ] {
            assert!(answer.contains(part), "no {part:?} in {answer}");
        }
        let quoted = "[...document.querySelectorAll('.answer blockquote')].some((quote) => quote.textContent.includes('one fact'))";
        assert_eq!(
            browser.eval(quoted).await,
            true,
            "its words are a quotation"
        );
        assert_ne!(browser.eval("document.title").await, "taken");
    }
    browser.open(&base).await;
    let list = browser.eval("document.body.textContent").await;
    let list = list.as_str().unwrap().to_lowercase();
    assert_eq!(list.matches("weakened: ").count(), 2, "{list}");
    assert_eq!(browser.problems(), Vec::<String>::new());
}
