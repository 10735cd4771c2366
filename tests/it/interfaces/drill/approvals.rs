//! The drill `approve-restart`: a call waits for a person while its worker is killed, and is sent once or never.

use std::path::Path;

use super::*;

/// The person of the drill, as votes name them.
const PERSON: &str = "drill:ben";
const CALL: &str = "drill.rollout_restart";

/// A drill that has ended.
struct Ended {
    code: i32,
    shown: String,
    log: String,
    database: TestDatabase,
}

impl Ended {
    /// Runs a drill to its end.
    async fn run(drill: &str, arguments: &[&str]) -> Self {
        let (nats, database) = (NatsServer::start().await, TestDatabase::create().await);
        let nats_url = nats.url();
        let mut drill = Tarsy::spawn(
            "drill",
            &[&["drill", drill], arguments].concat(),
            &[("NATS_URL", &nats_url), ("DATABASE_URL", database.url())],
        );
        let (code, shown) = drill.finished().await;
        Self {
            code,
            shown,
            log: drill.log(),
            database,
        }
    }

    /// Asserts that the drill succeeds and that its log has these texts in this order.
    #[track_caller]
    fn succeeds(&self, texts: &[&str]) {
        let Self {
            code, shown, log, ..
        } = self;
        assert_eq!(*code, 0, "{shown}\n{log}");
        let mut rest = log.as_str();
        for text in texts {
            let found = rest.split_once(text);
            rest = found
                .unwrap_or_else(|| panic!("{text} in its place in\n{log}"))
                .1;
        }
    }

    /// Asserts that it fails with this code and this text.
    #[track_caller]
    fn fails(&self, expected: i32, text: &str) {
        let Self {
            code, shown, log, ..
        } = self;
        assert_eq!(*code, expected, "{shown}\n{log}");
        assert!(log.contains(text), "{text} in\n{log}");
    }

    /// The person, the verdict and the outcome of the only decision.
    fn decision(&self) -> String {
        self.database.text(
            "SELECT concat_ws(' ', v.person, v.channel, v.verdict, coalesce(v.refused, 'counts'), p.closed_as) \
             FROM approval_votes v JOIN approvals p USING (session_id, event_seq)",
        )
    }
}

/// A copy of the drill in which a file is changed.
fn copied(change: &dyn Fn(&Path)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/drills/approve-restart");
    std::fs::create_dir(folder.path().join("evidence")).unwrap();
    for part in ["", "evidence"] {
        for entry in std::fs::read_dir(source.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap();
                std::fs::copy(&path, folder.path().join(part).join(name)).unwrap();
            }
        }
    }
    change(folder.path());
    folder
}

/// Replaces a text in the decisions of a drill.
fn replace(folder: &Path, from: &str, to: &str) {
    let file = folder.join("decisions.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(file, text.replace(from, to)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_survives_its_worker_and_is_sent_once_after_the_approval() {
    let ended = Ended::run("approve-restart", &["--kill"]).await;
    ended.succeeds(&[
        "drill.rollout_restart waits for a person: no worker has the session, 0 slots are in use, 0 messages",
        "kill -9 worker w",
        "ben reads drill.rollout_restart {",
        "ben approves the call ",
        "\n  killed       worker w",
        "\n  approved     by drill:ben ",
        "\n  call         ",
        "\n  woken        at w",
        "\n  sent         0 times before the decision, 1 time after it, as the tool server counted",
        "\n  changes      1 call sent that may change something, 0 of them twice",
    ]);
    let Ended { shown, log, .. } = &ended;
    let killed = log.split_once("kill -9 worker ").unwrap().1;
    let woken = log.split_once("woken        at ").unwrap().1;
    assert_ne!(killed[..2], woken[..2], "{log}");
    assert_eq!(
        ended.decision(),
        format!("{PERSON} drill approve counts approved")
    );
    assert!(
        shown.contains("the pods of mailer were replaced"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_a_person_denies_is_never_sent_and_the_report_says_so() {
    let ended = Ended::run("approve-restart", &["--kill", "--no-approve"]).await;
    ended.succeeds(&[
        "kill -9 worker w",
        "ben denies the call ",
        "Not now, the release of 10:00",
        "\n  denied       by drill:ben ",
        "\n  sent         never: the tool server got no such call",
        "\n  changes      0 calls sent that may change something",
    ]);
    assert_eq!(
        ended.decision(),
        format!("{PERSON} drill deny counts denied")
    );
    let shown = &ended.shown;
    assert!(shown.contains("a person has denied the restart"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_decision_is_denied_and_fails_the_drill() {
    let folder = copied(&|folder| replace(folder, "namespace: shop", "namespace: shops"));
    let ended = Ended::run(folder.path().to_str().unwrap(), &[]).await;
    ended.fails(1, ": ben was not asked about drill.rollout_restart {");
    assert!(
        ended.log.contains("never: the tool server"),
        "{}",
        ended.log
    );
    assert_eq!(ended.decision(), "drill:drill drill deny counts denied");
}

#[tokio::test]
async fn decisions_with_a_fault_are_refused_before_anything_is_started() {
    let misspelt = copied(&|folder| replace(folder, "verdict: approve", "verdikt: approve"));
    let unknown = copied(&|folder| replace(folder, CALL, "drill.restart"));
    let missing = copied(&|folder| {
        std::fs::remove_file(folder.join("decisions.yaml")).unwrap();
    });
    let path = |folder: &tempfile::TempDir| folder.path().to_str().unwrap().to_owned();
    for (arguments, words) in [
        (
            vec![path(&misspelt)],
            "decisions.yaml: decisions[0]: unknown field `verdikt`",
        ),
        (
            vec![path(&unknown)],
            "decisions[0].tool: the evidence has no tool \"drill.restart\"; there are: drill.consumer_lag",
        ),
        (vec![path(&missing)], "has no decisions.yaml"),
        (
            vec!["oom-killed".to_owned(), "--no-approve".to_owned()],
            "no call of the drill oom-killed waits for a person: leave --no-approve out",
        ),
        (
            vec!["approve-restart".to_owned(), "--again".to_owned()],
            "leave --again out",
        ),
    ] {
        let mut all = vec!["drill"];
        all.extend(arguments.iter().map(String::as_str));
        let mut drill = Tarsy::spawn("drill", &all, &[]);
        let (code, _) = drill.finished().await;
        let log = drill.log();
        assert_eq!(code, 78, "{log}");
        assert!(
            log.contains(words) && !log.contains("  ok  "),
            "{words} in\n{log}"
        );
    }
}
