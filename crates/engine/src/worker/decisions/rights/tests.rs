use std::collections::BTreeMap;

use super::*;

fn person(web: &str, slack: &str, cli: &str, groups: &[&str]) -> Person {
    Person {
        web: Some(web.to_owned()),
        slack: Some(slack.to_owned()),
        cli: Some(cli.to_owned()),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
    }
}

fn policy(approvers: &[&str]) -> ApprovalPolicy {
    ApprovalPolicy {
        approvers: approvers.iter().map(|group| (*group).to_owned()).collect(),
        channels: vec![Channel::Web, Channel::Slack, Channel::Cli, Channel::Link],
        ..ApprovalPolicy::default()
    }
}

/// Ana is of `sre`, bob of no group, and `eve` is no person of the configuration.
fn approvals() -> Approvals {
    let two = ApprovalPolicy {
        quorum: 2,
        ..policy(&["sre"])
    };
    let only_web = ApprovalPolicy {
        channels: vec![Channel::Web],
        ..policy(&["sre"])
    };
    Approvals {
        policies: BTreeMap::from([
            ("one".to_owned(), policy(&["sre"])),
            ("two".to_owned(), two),
            ("all".to_owned(), policy(&["*"])),
            ("web".to_owned(), only_web),
            ("slack".to_owned(), policy(&["on-call"])),
        ]),
        people: BTreeMap::from([
            (
                "ana".to_owned(),
                person("ana@example.com", "U1", "ana", &["sre"]),
            ),
            (
                "bob".to_owned(),
                person("bob@example.com", "U2", "bob", &[]),
            ),
        ]),
        slack_groups: BTreeMap::from([("on-call".to_owned(), "S1".to_owned())]),
        ..Approvals::default()
    }
}

fn facts(policy: &str) -> RequestFacts {
    RequestFacts {
        policy: policy.to_owned(),
        quorum: 1,
        channels: ["web", "slack", "cli", "link"].map(str::to_owned).to_vec(),
        other_person: false,
        asked_by: None,
    }
}

fn claimant(channel: Channel, account: &str) -> Claimant {
    Claimant {
        channel,
        account: account.to_owned(),
        groups: Vec::new(),
        proof: Proof::NotNeeded,
    }
}

fn in_groups(claimant: Claimant, groups: &[&str]) -> Claimant {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Claimant { groups, ..claimant }
}

fn judge(facts: &RequestFacts, claimant: &Claimant, choice: Choice) -> String {
    word(judge_with(facts, claimant, choice, None))
}

fn judge_with(
    facts: &RequestFacts,
    claimant: &Claimant,
    choice: Choice,
    asked: Option<&Groups>,
) -> Judged {
    let approvals = approvals();
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Refuse,
    };
    rights.judge(facts, claimant, choice, asked)
}

fn word(judged: Judged) -> String {
    match judged {
        Judged::Permitted => "yes".to_owned(),
        Judged::Refused(refusal) => refusal.as_str().to_owned(),
        Judged::Undecided(refusal) => format!("later {}", refusal.as_str()),
    }
}

#[test]
fn each_channel_group_and_policy_gives_the_right_that_the_table_says() {
    use Channel::{Cli, Drill, Link, Slack, Web};
    let people = [
        claimant(Web, "ana@example.com"),
        claimant(Slack, "U1"),
        claimant(Cli, "ana"),
        claimant(Link, "ana"),
        claimant(Web, "bob@example.com"),
        in_groups(claimant(Web, "bob@example.com"), &["sre"]),
        claimant(Cli, "bob"),
        claimant(Web, "eve"),
        in_groups(claimant(Web, "eve"), &["sre"]),
        claimant(Cli, "eve"),
        claimant(Slack, "U9"),
        claimant(Link, "eve"),
        claimant(Drill, "ana"),
        // The name of a person is no account of theirs, and an account of one channel none of another.
        claimant(Web, "ana"),
        claimant(Cli, "U1"),
    ];
    let policies = ["one", "two", "all", "web", "gone"];
    let table = [
        ["yes", "yes", "yes", "yes", "no_right"],
        ["yes", "yes", "yes", "wrong_channel", "no_right"],
        ["yes", "yes", "yes", "wrong_channel", "no_right"],
        ["yes", "wrong_channel", "yes", "wrong_channel", "no_right"],
        ["no_right", "no_right", "yes", "no_right", "no_right"],
        ["yes", "yes", "yes", "yes", "no_right"],
        ["no_right", "no_right", "yes", "wrong_channel", "no_right"],
        [
            "no_right",
            "unknown_person",
            "no_right",
            "no_right",
            "no_right",
        ],
        ["yes", "unknown_person", "no_right", "yes", "no_right"],
        [
            "no_right",
            "unknown_person",
            "no_right",
            "wrong_channel",
            "no_right",
        ],
        [
            "no_right",
            "unknown_person",
            "no_right",
            "wrong_channel",
            "no_right",
        ],
        [
            "unknown_person",
            "wrong_channel",
            "unknown_person",
            "wrong_channel",
            "unknown_person",
        ],
        ["wrong_channel"; 5],
        [
            "no_right",
            "unknown_person",
            "no_right",
            "no_right",
            "no_right",
        ],
        [
            "no_right",
            "unknown_person",
            "no_right",
            "wrong_channel",
            "no_right",
        ],
    ];
    for choice in [Choice::Approve, Choice::Deny, Choice::DenySession] {
        let judged = people
            .each_ref()
            .map(|person| policies.map(|policy| judge(&facts(policy), person, choice)));
        for (place, (person, row)) in people.iter().zip(&judged).enumerate() {
            assert_eq!(row, &table[place], "{person:?} {choice:?}");
        }
    }
}

#[test]
fn the_first_fault_gives_the_word() {
    let forged = Claimant {
        proof: Proof::Invalid,
        ..claimant(Channel::Cli, "eve")
    };
    let two = facts("two");
    assert_eq!(
        judge(&facts("web"), &forged, Choice::Approve),
        "wrong_channel"
    );
    assert_eq!(judge(&two, &forged, Choice::Approve), "bad_signature");
    let unreadable = Claimant {
        proof: Proof::Unreadable("no file".to_owned()),
        ..forged
    };
    assert_eq!(
        judge(&two, &unreadable, Choice::Approve),
        "later bad_signature"
    );
    let proven = Claimant {
        proof: Proof::Valid,
        ..unreadable
    };
    assert_eq!(judge(&two, &proven, Choice::Approve), "unknown_person");
    let asked = RequestFacts {
        other_person: true,
        asked_by: Some("bob".to_owned()),
        ..facts("one")
    };
    let bob = claimant(Channel::Web, "bob@example.com");
    assert_eq!(judge(&asked, &bob, Choice::Approve), "no_right");
    let bob = in_groups(bob, &["sre"]);
    assert_eq!(judge(&asked, &bob, Choice::Approve), "own_question");
}

#[test]
fn the_plan_and_the_present_policy_both_have_to_accept_a_channel() {
    let planned = RequestFacts {
        channels: vec!["cli".to_owned()],
        ..facts("one")
    };
    let web = claimant(Channel::Web, "ana@example.com");
    assert_eq!(judge(&planned, &web, Choice::Approve), "wrong_channel");
    assert_eq!(
        judge(&planned, &claimant(Channel::Cli, "ana"), Choice::Approve),
        "yes"
    );
    // A quorum of the plan holds, also when the present policy asks for one person only.
    let quorum = RequestFacts {
        quorum: 2,
        ..facts("one")
    };
    let eve = in_groups(claimant(Channel::Web, "eve"), &["sre"]);
    assert_eq!(judge(&quorum, &eve, Choice::Approve), "unknown_person");
    assert_eq!(
        judge(&quorum, &claimant(Channel::Link, "ana"), Choice::Approve),
        "wrong_channel"
    );
}

#[test]
fn who_asked_may_deny_and_not_approve_by_any_of_their_accounts() {
    for asked_by in [
        "ana",
        "ana@example.com",
        "ANA@example.com",
        "U1",
        "slack:U1",
    ] {
        let asked = RequestFacts {
            other_person: true,
            asked_by: Some(asked_by.to_owned()),
            ..facts("one")
        };
        for claimant in [
            claimant(Channel::Web, "ana@example.com"),
            claimant(Channel::Slack, "U1"),
            claimant(Channel::Cli, "ana"),
        ] {
            assert_eq!(
                judge(&asked, &claimant, Choice::Approve),
                "own_question",
                "{asked_by}"
            );
            assert_eq!(judge(&asked, &claimant, Choice::Deny), "yes", "{asked_by}");
        }
    }
    let asked = RequestFacts {
        other_person: true,
        asked_by: Some("bob".to_owned()),
        ..facts("one")
    };
    let ana = claimant(Channel::Cli, "ana");
    assert_eq!(judge(&asked, &ana, Choice::Approve), "yes");
}

#[test]
fn groups_that_only_the_channel_knows_are_asked_for_and_fail_closed() {
    let approvals = approvals();
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Refuse,
    };
    let member = claimant(Channel::Slack, "U2");
    assert!(rights.needs_groups(&facts("slack"), &member));
    assert!(!rights.needs_groups(&facts("one"), &member));
    assert!(!rights.needs_groups(&facts("slack"), &claimant(Channel::Cli, "bob")));
    assert!(!rights.needs_groups(&facts("gone"), &member));
    for (asked, expected) in [
        (Groups::Known(vec!["on-call".to_owned()]), "yes"),
        (Groups::Known(vec!["other".to_owned()]), "no_right"),
        (Groups::NotAsked, "no_groups"),
        (Groups::Unavailable, "later no_groups"),
    ] {
        let judged = judge_with(&facts("slack"), &member, Choice::Approve, Some(&asked));
        assert_eq!(word(judged), expected, "{asked:?}");
    }
}

#[test]
fn a_drill_is_accepted_by_the_worker_of_a_drill_only() {
    let approvals = approvals();
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Accept,
    };
    let drill = claimant(Channel::Drill, "first");
    let judged = rights.judge(&facts("two"), &drill, Choice::Approve, None);
    assert_eq!(judged, Judged::Permitted);
    assert_eq!(rights.identify(&drill).name, "drill:first");
}

#[test]
fn every_person_of_the_file_may_freeze_changes_on_a_channel_that_proves_them() {
    let approvals = approvals();
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Refuse,
    };
    let forged = Claimant {
        proof: Proof::Invalid,
        ..claimant(Channel::Cli, "bob")
    };
    for (claimant, expected) in [
        (claimant(Channel::Cli, "bob"), "yes"),
        (claimant(Channel::Web, "bob@example.com"), "yes"),
        (
            in_groups(claimant(Channel::Web, "eve"), &["sre"]),
            "unknown_person",
        ),
        (claimant(Channel::Cli, "eve"), "unknown_person"),
        (claimant(Channel::Slack, "U2"), "wrong_channel"),
        (claimant(Channel::Link, "bob"), "wrong_channel"),
        (claimant(Channel::Drill, "bob"), "wrong_channel"),
        (forged, "bad_signature"),
    ] {
        assert_eq!(
            word(rights.judge_freeze(&claimant)),
            expected,
            "{claimant:?}"
        );
    }
}

#[test]
fn one_person_at_several_channels_has_one_name_and_all_groups() {
    let approvals = approvals();
    let rights = Rights {
        approvals: &approvals,
        drills: Drills::Refuse,
    };
    let web = in_groups(claimant(Channel::Web, "ana@example.com"), &["dev", "sre"]);
    let names = [
        web,
        claimant(Channel::Slack, "U1"),
        claimant(Channel::Cli, "ana"),
        claimant(Channel::Link, "ana"),
    ]
    .map(|claimant| rights.identify(&claimant));
    assert!(
        names.iter().all(|identity| identity.name == "ana"),
        "{names:?}"
    );
    assert_eq!(names[0].groups, ["dev", "sre"]);
    assert_eq!(
        rights.identify(&claimant(Channel::Web, "eve")).name,
        "web:eve"
    );
}
