//! The rules find what is planted.

use super::*;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn an_adapter_that_names_another_is_found() {
    let text = "//! crate::bus in a comment is fine\nuse crate::engine::ports::Lease;\nuse crate::bus::Error;\n";
    assert_eq!(forbidden_imports(&source("src/store/mod.rs", text)), ["line 3: store names bus"]);
}

#[test]
fn a_grouped_import_and_a_path_in_the_code_are_found() {
    let text = "use crate::{\n    engine::ports::{A, B},\n    store::C,\n};\nfn f() { crate::cli::run(); }\n";
    assert_eq!(
        forbidden_imports(&source("src/engine/run.rs", text)),
        ["line 1: engine names store", "line 5: engine names cli"]
    );
}

#[test]
fn a_way_around_the_rule_is_found() {
    let found = forbidden_imports(&source("src/store/a.rs", "use super::super::bus::Error;\n"));
    assert_eq!(found, ["line 1: super::super:: hides what is named; write crate::"]);
}

#[test]
fn the_core_may_name_itself_only() {
    let text = "use crate::investigation::ids::SessionId;\nuse crate::config::yaml::Value;\n";
    assert_eq!(forbidden_imports(&source("src/investigation/a.rs", text)), ["line 2: investigation names config"]);
}

#[test]
fn the_composition_roots_may_name_everything() {
    let text = "use crate::{bus, store, llm, mcp, telemetry};\n";
    assert_eq!(forbidden_imports(&source("src/roles/worker/mod.rs", text)), Vec::<String>::new());
}

#[test]
fn waiting_and_clocks_in_the_core_are_found() {
    let text = "pub async fn f() {\n    g().await; // .await\n    let now = Utc::now();\n}\n";
    assert_eq!(
        impurities(&source("src/investigation/a.rs", text)),
        ["line 1: async fn", "line 2: .await", "line 3: Utc::now"]
    );
}

#[test]
fn a_long_file_is_found_unless_it_is_generated() {
    let text = "\n".repeat(LONGEST + 1);
    assert_eq!(too_long(&source("src/store/a.rs", &text)), ["401 lines, at most 400"]);
    assert_eq!(too_long(&source("src/store/schema.rs", &text)), Vec::<String>::new());
}

#[test]
fn a_sleep_is_found_unless_a_comment_or_a_name_explains_it() {
    // Put together so that the rule does not find this file.
    let call = ["tokio::time::", "sleep(PAUSE).await;"].concat();
    let text = format!("{call}\n// the broker has no signal for this\n{call}\n{call} // as above\n");
    assert_eq!(unexplained_sleeps(&source("tests/it/a.rs", &text)), ["line 1: a sleep without a reason"]);
    assert_eq!(unexplained_sleeps(&source("src/bus/a.rs", &text)), Vec::<String>::new());
    let unnamed = call.replace("PAUSE", "Duration::from_secs(1)");
    assert_eq!(unexplained_sleeps(&source("src/bus/a.rs", &unnamed)), ["line 1: a sleep without a reason"]);
}

#[test]
fn a_metric_or_a_label_outside_of_the_table_is_found() {
    let text = "counter!(\"tarsy_sessions_opened_total\").increment(1);\n\
                metrics::counter!(\"tarsy_sessions_finished_total\", \"outcome\" => word).increment(1);\n\
                gauge!(\"tarsy_surprises\").set(1.0);\n";
    assert_eq!(
        unknown_metrics(&source("src/engine/a.rs", text)),
        [
            "line 2: tarsy_sessions_finished_total has the labels [\"status\"]",
            "line 3: tarsy_surprises is not in names.rs"
        ]
    );
}

#[test]
fn a_path_of_a_machine_is_found() {
    let text = ["let socket = \"/home", "/me/socket\";\n"].concat();
    assert_eq!(machine_paths(&source("tests/it/a.rs", &text)).len(), 1);
}
