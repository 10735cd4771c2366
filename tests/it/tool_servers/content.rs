//! Every kind of content, files, times and repositories, as the model gets them.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::investigation::{Shown, call, results};
use super::programs::{Node, Python, is_on_path, line};

/// The expected result.
enum Expected {
    Is(&'static str),
    /// Contains all of these texts.
    Has(&'static [&'static str]),
    /// Is an error that contains this text.
    Error(&'static str),
}

pub(super) struct Case {
    tool: &'static str,
    arguments: Value,
    expected: Expected,
}

fn case(tool: &'static str, arguments: Value, expected: Expected) -> Case {
    Case {
        tool,
        arguments,
        expected,
    }
}

/// Makes the call of every case in one investigation, and compares the results, which it returns.
pub(super) async fn check(servers: &str, cases: &[Case]) -> Vec<Shown> {
    let calls: Vec<Value> = cases
        .iter()
        .map(|case| call(case.tool, &case.arguments))
        .collect();
    let shown = results(servers, &calls).await;
    assert_eq!(shown.len(), cases.len(), "{shown:#?}");
    for (
        case,
        Shown {
            tool,
            content,
            is_error,
        },
    ) in cases.iter().zip(&shown)
    {
        assert_eq!(tool, case.tool, "the results are in the order of the calls");
        let as_expected = match &case.expected {
            Expected::Is(text) => !is_error && content == text,
            Expected::Has(texts) => !is_error && texts.iter().all(|text| content.contains(text)),
            Expected::Error(text) => *is_error && content.contains(text),
        };
        assert!(
            as_expected,
            "{tool} {}: {is_error} {content}",
            case.arguments
        );
    }
    shown
}

/// Calls of the server `all`, which is `server-everything`, with every kind of content.
pub(super) fn everything() -> Vec<Case> {
    use Expected::{Error, Has, Is};
    vec![
        case("all.echo", json!({"message": "hi"}), Is("Echo: hi")),
        case(
            "all.get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
            Is("Error: Operation failed\n[image image/png 4 KB]"),
        ),
        case(
            "all.get-tiny-image",
            json!({}),
            Has(&["Here's the image you requested:\n[image image/png 4 KB]\n"]),
        ),
        case(
            "all.get-resource-links",
            json!({"count": 2}),
            Has(&[
                "\nBlob Resource 1 <demo://resource/dynamic/blob/1>",
                "\nText Resource 2 <demo://resource/dynamic/text/2>",
            ]),
        ),
        case(
            "all.get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 1}),
            Has(&["\nResource 1: This is a plaintext resource created at"]),
        ),
        case(
            "all.get-resource-reference",
            json!({"resourceType": "Blob", "resourceId": 2}),
            Has(&["\ndemo://resource/dynamic/blob/2 [resource text/plain "]),
        ),
        case(
            "all.get-structured-content",
            json!({"location": "New York"}),
            Has(&[r#""temperature":33"#]),
        ),
        case(
            "all.get-sum",
            json!({"a": 1, "b": 2}),
            Is("The sum of 1 and 2 is 3."),
        ),
        case("all.get-sum", json!({"a": "one", "b": 2}), Error("number")),
        case(
            "all.nothing",
            json!({}),
            Error("unknown tool 'all__nothing'"),
        ),
        case(
            "all.trigger-long-running-operation",
            json!({"duration": 1, "steps": 4}),
            Has(&["Long running operation completed. Duration: 1 seconds, Steps: 4."]),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_content_of_a_foreign_server_reaches_the_model_as_text() {
    let Some(node) = Node::find("content") else {
        return;
    };
    let mut cases = everything();
    cases.push(case(
        "all.get-env",
        json!({}),
        Expected::Has(&["\"PATH\": "]),
    ));
    let shown = check(&line("all", &node.everything()), &cases).await;
    let environment = &shown.last().unwrap().content;
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "the test needs a variable that has to be hidden"
    );
    assert!(
        !environment.contains("CARGO_MANIFEST_DIR") && !environment.contains("DATABASE_URL"),
        "{environment}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_folder_are_read_and_never_written_or_left() {
    use Expected::{Error, Has, Is};
    let Some(node) = Node::find("content") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("app.log"), "begin\nout of memory\nend\n").unwrap();
    let cases = [
        case(
            "files.read_text_file",
            json!({"path": file("app.log")}),
            Is("begin\nout of memory\nend\n"),
        ),
        case(
            "files.read_text_file",
            json!({"path": file("app.log"), "tail": 2}),
            Has(&["end"]),
        ),
        case(
            "files.list_directory",
            json!({"path": folder.path()}),
            Has(&["[FILE] app.log"]),
        ),
        case(
            "files.read_text_file",
            json!({"path": "/etc/passwd"}),
            Error("Access denied"),
        ),
        case(
            "files.read_text_file",
            json!({"path": file("none")}),
            Error("ENOENT"),
        ),
        case(
            "files.write_file",
            json!({"path": file("new"), "content": "x"}),
            Error("unknown tool"),
        ),
    ];
    check(&line("files", &node.filesystem(folder.path())), &cases).await;
    assert!(!folder.path().join("new").exists());
}

fn git(repository: &Path, args: &[&str]) {
    let identity = [
        "-c",
        "user.name=tarsy",
        "-c",
        "user.email=tarsy@example.com",
        "-c",
        "commit.gpgsign=false",
    ];
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(repository)
        .args(identity)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_and_the_time_are_read_through_servers_in_python() {
    use Expected::{Error, Has};
    let Some(python) = Python::find("content").filter(|_| is_on_path("content", "git")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    git(
        folder.path(),
        &["init", "--quiet", "--initial-branch", "main"],
    );
    for (memory, message) in [("256Mi", "Add the limit"), ("512Mi", "Raise the limit")] {
        std::fs::write(
            folder.path().join("limits.yaml"),
            format!("memory: {memory}\n"),
        )
        .unwrap();
        git(folder.path(), &["add", "limits.yaml"]);
        git(folder.path(), &["commit", "--quiet", "-m", message]);
    }
    let repo = folder.path();
    let cases = [
        case(
            "git.git_log",
            json!({"repo_path": repo}),
            Has(&["Raise the limit", "Add the limit"]),
        ),
        case(
            "git.git_show",
            json!({"repo_path": repo, "revision": "HEAD"}),
            Has(&["-memory: 256Mi\n+memory: 512Mi"]),
        ),
        case(
            "git.git_show",
            json!({"repo_path": repo, "revision": "none"}),
            Error("none"),
        ),
        case(
            "git.git_commit",
            json!({"repo_path": repo, "message": "x"}),
            Error("unknown tool"),
        ),
        case(
            "time.convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            Has(&["T21:00:00+09:00"]),
        ),
        case(
            "time.get_current_time",
            json!({"timezone": "Europe/Nowhere"}),
            Error("timezone"),
        ),
    ];
    let servers = [line("git", &python.git(repo)), line("time", &python.time())].concat();
    check(&servers, &cases).await;
}
