//! `tarsy completions` in a real shell, and `tarsy man`.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::{run, run_with};
use crate::support::process::TARSY;
use crate::support::system::TestSystem;

/// The completions that bash proposes at Tab after `line`, whose last word may be incomplete.
async fn proposed(line: &str, database_url: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let quoted = words
        .iter()
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(" ");
    let (at, last) = (words.len() - 1, words.last().unwrap());
    let script = format!(
        "eval \"$(tarsy completions bash)\"\n\
         COMP_WORDS=({quoted}) COMP_CWORD={at} COMP_TYPE=9\n\
         _clap_complete_tarsy tarsy '{last}' ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let path = format!(
        "{}:{}",
        Path::new(TARSY).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script])
        .env("PATH", path)
        .env("DATABASE_URL", database_url)
        .stdin(Stdio::null());
    let output = bash.output().await.unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_is_offered_the_sessions_that_there_are() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let (short, url) = (session.short(), system.database.url());
    for line in [
        "tarsy sessions show ",
        "tarsy watch ",
        "tarsy ask ",
        "tarsy sessions rerun ",
        "tarsy sessions cancel ",
    ] {
        let found = proposed(line, url).await;
        assert!(found.contains(&short), "{line}: {found:?}");
    }
    assert_eq!(
        proposed(&format!("tarsy sessions show {}", &short[..3]), url).await,
        [short.as_str()]
    );
    let whole = session.to_string();
    assert_eq!(
        proposed(&format!("tarsy sessions show {}", &whole[..13]), url).await,
        [whole.as_str()]
    );
    assert!(
        proposed("tarsy sess", url)
            .await
            .contains(&"sessions".to_owned())
    );
    // A database that does not answer is no reason for a message in the middle of a command line.
    let without = proposed("tarsy sessions show ", "postgres://127.0.0.1:1/none").await;
    assert!(!without.contains(&short), "{without:?}");
    let listed = run(&system, &["man", "sessions", "list"]).await.exits(0);
    assert!(
        listed.out.contains(".TH") && listed.out.contains("\\-\\-since"),
        "{}",
        listed.out
    );
}

#[tokio::test]
async fn a_page_is_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("man1");
    run_with(
        &[],
        &["man", "--directory", directory.to_str().unwrap()],
        b"",
    )
    .await
    .exits(0);
    for page in [
        "tarsy.1",
        "tarsy-worker.1",
        "tarsy-sessions-list.1",
        "tarsy-config-example.1",
    ] {
        let text = std::fs::read_to_string(directory.join(page)).unwrap();
        assert!(
            text.contains(".SH SYNOPSIS") && text.contains("Example"),
            "{page}: {text}"
        );
    }
    let hidden = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name() == "tarsy-evidence-server.1"
    };
    assert!(!std::fs::read_dir(&directory).unwrap().any(hidden));
    let unknown = run_with(&[], &["man", "sesions"], b"").await.exits(1);
    assert_eq!(unknown.err, "tarsy: no command \"tarsy sesions\"\n");
}
