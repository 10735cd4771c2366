//! The recordings whose calls wait for people, and their part of the configuration.

use std::path::Path;

use super::{DRAIN, ONE, REBOOT, SHORT, TWO, WIPE};
use crate::proofs::chaos::script::{END, answer, call_of, text, wait};

/// The words by which an alert selects its recording.
pub(in crate::proofs::chaos) mod mark {
    pub(in crate::proofs::chaos) const GUARDED: &str = "ChaosGuarded";
    pub(in crate::proofs::chaos) const QUORUM: &str = "ChaosQuorum";
    pub(in crate::proofs::chaos) const SQUAD: &str = "ChaosSquad";
    pub(in crate::proofs::chaos) const WRITTEN: &str = "ChaosWritten";
    pub(in crate::proofs::chaos) const SILENCE: &str = "ChaosSilence";
}

/// The channels that have a key.
const CHANNELS: [&str; 3] = ["web", "slack", "cli"];

fn ask(tool: &str, step: u32) -> String {
    call_of("guarded", tool, &step.to_string())
}

fn written(step: u32) -> String {
    let input = format!("{{\"by\": \"{{execution}}\", \"step\": {step}}}");
    text(&format!(
        "Thought: step {step}\nAction: guarded.{DRAIN}\nAction Input: {input}"
    ))
}

/// The recordings, each with the word that selects it.
pub(in crate::proofs::chaos) fn recordings() -> Vec<(&'static str, String)> {
    let end = text(END);
    let ends = |input: u32| answer(&[&wait(200), &end], input);
    let guarded = [
        answer(&[&wait(200), &ask("look", 1), &ask(DRAIN, 2)], 100),
        answer(&[&wait(200), &ask(DRAIN, 3), &ask(DRAIN, 4)], 200),
        ends(300),
    ];
    let quorum = [answer(&[&wait(200), &ask(REBOOT, 1)], 100), ends(200)];
    let waits = [answer(&[&wait(200), &ask(DRAIN, 1)], 100), ends(200)];
    let works = [
        answer(&[&wait(600), &call_of("reader", "search", "1")], 100),
        answer(&[&wait(900), &call_of("reader", "search", "2")], 150),
        ends(200),
    ];
    let react = [
        answer(&[&wait(200), &written(1)], 100),
        answer(&[&wait(200), &written(2)], 150),
        answer(
            &[&text(&format!("Thought: enough\nFinal Answer: {END}"))],
            200,
        ),
    ];
    let silence = [answer(&[&wait(200), &ask(WIPE, 1)], 100), ends(200)];
    let alone = |answers: String| format!("answers:\n{answers}");
    vec![
        (mark::GUARDED, alone(guarded.concat())),
        (mark::QUORUM, alone(quorum.concat())),
        (
            mark::SQUAD,
            format!("agent: waits\nanswers:\n{}", waits.concat()),
        ),
        (
            mark::SQUAD,
            format!("agent: works\nanswers:\n{}", works.concat()),
        ),
        (
            mark::SQUAD,
            format!("agent: synthesis\nanswers:\n{}", ends(400)),
        ),
        (mark::WRITTEN, alone(react.concat())),
        (mark::SILENCE, alone(silence.concat())),
    ]
}

/// The tools of the recordings, for the server of evidence.
pub(in crate::proofs::chaos) fn evidence() -> String {
    let tool = |name: &str| {
        format!(
            "  {name}:\n    description: Changes something.\n    read_only: false\n    schema: {{type: object}}\n    \
             answers: [{{file: result.txt, delay: 150ms}}]\n"
        )
    };
    [DRAIN, REBOOT, WIPE].map(tool).concat()
}

/// The keys of a server whose tools wait for people.
pub(in crate::proofs::chaos) fn server() -> String {
    format!("approve: {{{ONE}: [{DRAIN}], {TWO}: [{REBOOT}], {SHORT}: [{WIPE}]}}")
}

/// Writes a key for each channel, and one that no channel has.
pub(in crate::proofs::chaos) fn write_keys(directory: &Path) {
    for name in CHANNELS.into_iter().chain(["forged"]) {
        let key = format!("the key of {name} in a run of chaos");
        std::fs::write(directory.join(format!("{name}.key")), key).unwrap();
    }
}

/// The section about approvals.
pub(in crate::proofs::chaos) fn configuration(directory: &Path) -> String {
    let key = |channel: &str| {
        let file = directory.join(format!("{channel}.key"));
        format!("{channel}: {{secret_file: {}}}", file.display())
    };
    let person = |name: &str, slack: &str| {
        format!(
            "    {name}: {{web: {name}@example.com, slack: {slack}, cli: {name}, groups: [sre]}}\n"
        )
    };
    format!(
        "approvals:
  policies:
    {ONE}: {{approvers: [sre], timeout: 3m}}
    {TWO}: {{approvers: [sre], quorum: 2, timeout: 3m}}
    {SHORT}: {{approvers: [sre], timeout: 1m, valid_for: 1m}}
  people:
{}{}    eve: {{web: eve@example.com, slack: U0EVE, cli: eve, groups: [guests]}}
  keys: {{{}}}
",
        person("ana", "U0ANA"),
        person("ben", "U0BEN"),
        CHANNELS.map(key).join(", "),
    )
}
