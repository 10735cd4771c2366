//! The branches of sub-agents on a page without scripts.

use serde_json::json;

use crate::support::system::{Setup, TestSystem};
use crate::web::browser::driver::Browser;
use crate::web::browser::web_of;

const AGENTS: &str = "
agents:
  lead: {agents: [logs, pods], mcp_servers: []}
  logs: {description: Finds what a log shows}
  pods: {description: Looks at pods}
agent_chains:
  lead: {default: true, stages: [{name: look, agents: [{name: lead}]}]}
";

fn dispatches() -> String {
    let call = |agent: &str| {
        format!(
            "      - call: {{tool: tarsy.dispatch_agent, arguments: {{agent: {agent}, task: 'What does {agent} see?'}}}}\n"
        )
    };
    format!(
        "name: branches\nmatch: KubePodOOMKilled\nagent: lead\nanswers:\n  - chunks:\n{}{}  - chunks: [text: 'Cause: a drill [[logs:1]].']\n",
        call("logs"),
        call("pods")
    )
}

fn looks(agent: &str) -> String {
    format!(
        "name: branches\nmatch: KubePodOOMKilled\nagent: {agent}\nanswers:\n  - chunks:\n      - call: {{tool: drill.describe_pod, \
         arguments: {{namespace: checkout, pod: checkout-7d9f8b6c5-x2x9p}}}}\n  - chunks: [text: 'Found: {agent} [[*]]']\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_of_sub_agents_opens_without_scripts() {
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let transcripts = [dispatches(), looks("logs"), looks("pods")];
    let transcripts: Vec<&str> = transcripts.iter().map(String::as_str).collect();
    let setup = Setup {
        sections: AGENTS,
        transcripts: &transcripts,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (_worker, _) = system.worker("w1").await;
    let (_web, base) = web_of(&system).await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    browser.without_scripts().await;
    browser.open(&format!("{base}/sessions/{session}")).await;
    let branches = "[...document.querySelectorAll('details ul.branch')]";
    let lengths = format!("{branches}.map((list) => list.children.length > 1)");
    assert_eq!(browser.eval(&lengths).await, json!([true, true]));
    let is_shown = format!("{branches}.map((list) => list.checkVisibility())");
    assert_eq!(browser.eval(&is_shown).await, json!([false, false]));
    browser
        .click_element("document.querySelector('details:has(ul.branch) > summary')")
        .await;
    browser
        .until(&format!("{branches}[0].checkVisibility()"))
        .await;
    // Each entry leads to a row of the sub-agent.
    let leads = format!(
        "{branches}.flatMap((list) => [...list.querySelectorAll('a')]).every((link) => \
         !!document.getElementById(link.hash.slice(1))?.closest('.r.sub'))"
    );
    assert_eq!(browser.eval(&leads).await, true);
    assert_eq!(browser.problems(), Vec::<String>::new());
}
