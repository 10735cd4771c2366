//! Messages with and without their parts, and a log.

use super::*;

const GOOD: &str = "dev: Do the thing\n\nProblem: it was not done.\n\nSolution: it is done,\nin two lines.\n\nChecked: the tests.\n";

#[test]
fn a_message_with_problem_solution_and_check_has_no_fault() {
    assert_eq!(faults_of(GOOD), Vec::<String>::new());
    let below = GOOD.replace("Problem: it", "Problem:\nit");
    assert_eq!(faults_of(&below), Vec::<String>::new());
}

#[test]
fn each_missing_part_is_named_with_the_subject() {
    let missing =
        PARTS.map(|part| format!("the body has no \"{part}\" with a text: dev: A subject"));
    assert_eq!(faults_of("dev: A subject\n"), missing);
    assert_eq!(faults_of("dev: A subject"), missing);
}

#[test]
fn a_part_without_a_text_or_out_of_order_is_missing() {
    let fault = "the body has no \"Checked:\" with a text: dev: Do the thing";
    for checked in ["Checked:", "Checked: ", "checked: the tests."] {
        let message = GOOD.replace("Checked: the tests.", checked);
        assert_eq!(faults_of(&message), [fault], "{checked:?}");
    }
    let first = "dev: Do the thing\n\nChecked: a.\n\nProblem: b.\n\nSolution: c.\n";
    assert_eq!(faults_of(first), [fault]);
}

#[test]
fn a_subject_has_at_most_seventy_two_characters() {
    // Characters, not bytes.
    let longest = "ü".repeat(MAX_SUBJECT);
    assert_eq!(
        faults_of(&GOOD.replace("dev: Do the thing", &longest)),
        Vec::<String>::new()
    );
    let longer = format!("{longest}x");
    let expected = format!("the subject has 73 characters, at most 72: {longer}");
    assert_eq!(
        faults_of(&GOOD.replace("dev: Do the thing", &longer)),
        [expected]
    );
}

#[test]
fn commits_before_the_start_are_not_checked() {
    let log = format!(
        "a1\u{1f}{}\u{1f}old\n\0b2\u{1f}{START}\u{1f}new\n\n",
        START - 1
    );
    let ids: Vec<String> = commits(&log).unwrap().into_iter().map(|c| c.id).collect();
    assert_eq!(ids, ["b2"]);
    assert!(commits("a1 without fields").is_err());
}

#[test]
fn contributing_names_the_date_of_the_start() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../CONTRIBUTING.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("2026-11-29 03:00 UTC"));
    for part in PARTS {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_folder_within_a_repository_is_no_clone_and_is_skipped_with_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let outcome = check(&folder).unwrap();
    assert!(matches!(outcome, Outcome::Skipped(_)), "{outcome:?}");
    let lines = outcome.lines();
    assert!(
        lines.iter().all(|line| line.starts_with("SKIPPED: ")),
        "{lines:?}"
    );
}

#[test]
fn the_first_commit_of_a_history_may_have_any_message() {
    let folder = tempfile::tempdir().unwrap();
    let commit = |message: &str| {
        let name = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let what = ["commit", "--quiet", "--allow-empty", "-m", message];
        let output = git(folder.path(), &[&name[..], &what[..]].concat()).unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(folder.path(), &["init", "--quiet"]).unwrap();
    commit("import");
    let outcome = check(folder.path()).unwrap();
    assert!(
        matches!(outcome, Outcome::Passed { checked: 0, .. }),
        "{outcome:?}"
    );
    commit("a second one");
    let outcome = check(folder.path()).unwrap();
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
}
