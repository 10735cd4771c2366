//! Sixty reports: six of them, each in ten styles in which models write.

use serde_json::json;

use crate::summary::{Fields, Form, Sure, fields};

/// A report by its fields.
struct Report {
    cause: &'static str,
    sure: &'static str,
    now: &'static str,
    evidence: &'static [&'static str],
    next: &'static str,
    not_seen: &'static str,
    /// The word of `sure` as it is read.
    word: Sure,
}

const REPORTS: [Report; 6] = [
    Report {
        cause: "the container needs more than its limit of 512 MiB [5]",
        sure: "certain, exit code and limit fit",
        now: "restarts every 4 min, last at 03:28:59 UTC",
        evidence: &[
            "exit code 137 [5]",
            "limit 512Mi [7]",
            "heap of 800 MB: see [9]",
        ],
        next: "`kubectl set resources deploy/checkout --limits=memory=1Gi`",
        not_seen: "the heap dump",
        word: Sure::Certain,
    },
    Report {
        cause: "a query of fraud-service locks the table orders [12, 14]",
        sure: "likely, two waits fit",
        now: "still there",
        evidence: &[
            "wait event Lock:transactionid [12]",
            "94 % of the load is one query [14]",
            "p99: 7184.7 ms [20]",
        ],
        next: "end the query with pid 4711; do not restart the database",
        not_seen: "nothing",
        word: Sure::Likely,
    },
    Report {
        cause: "the fault ended at 03:10 UTC; the alert waits for its rule [3]",
        sure: "unsure, no metrics before 02:00",
        now: "over since 03:10:00 UTC",
        evidence: &["free storage 211 GB [3]"],
        next: "nothing urgent",
        not_seen: "metrics of the hour before, which would show the begin",
        word: Sure::Unsure,
    },
    Report {
        cause: "Argo CD pruned the Service of payments, because of a typo in its namespace [8]",
        sure: "97 %",
        now: "500 for each request to /v1/pay",
        evidence: &[
            "prune of Service/payments at 02:14 [8]",
            "namespace: paymnets in commit 5f3a [11]",
        ],
        next: "sync the commit before: `argocd app rollback payments 41`",
        not_seen: "who has merged the commit",
        word: Sure::Certain,
    },
    Report {
        cause: "mails are sent one by one, so the lag grows by 120 a minute [21]",
        sure: "75 %",
        now: "lag 48,211 and growing",
        evidence: &[
            "one SMTP connection for each message [21]",
            "consumer group mailer: 1 of 12 partitions moves [27]",
        ],
        next: "raise the batch size to 50",
        not_seen: "the SMTP server",
        word: Sure::Likely,
    },
    Report {
        cause: "une règle de pare-feu périmée isole le pod rabbit-2 [6]",
        sure: "probable, la règle date du 3 mars",
        now: "le nœud est absent",
        evidence: &["connexion refusée sur 25672 [6]", "règle sg-0ab1 [9]"],
        next: "supprimer la règle sg-0ab1",
        not_seen: "le plan réseau",
        word: Sure::Likely,
    },
];

impl Report {
    fn list(&self, sign: &str) -> String {
        self.evidence
            .iter()
            .map(|fact| format!("{sign}{fact}\n"))
            .collect()
    }

    /// The report with labels that `label` writes, and its facts as a list.
    fn labelled(&self, label: impl Fn(&str) -> String, sign: &str) -> String {
        format!(
            "{} {}\n{} {}\n{} {}\n{}\n{}{} {}\n{} {}\n",
            label("Cause"),
            self.cause,
            label("Sure"),
            self.sure,
            label("Now"),
            self.now,
            label("Evidence"),
            self.list(sign),
            label("Do next"),
            self.next,
            label("Not seen"),
            self.not_seen,
        )
    }

    /// The report in ten styles.
    fn styles(&self) -> [String; 10] {
        let plain = |word: &str| format!("{word}:");
        let json = json!({
            "root_cause": self.cause, "confidence": self.sure, "current_status": self.now, "evidence": self.evidence,
            "next_steps": self.next, "limitations": self.not_seen,
        });
        let row = |word: &str, text: &str| format!("| **{word}** | {text} |\n");
        let heading = |word: &str, text: &str| format!("## {word}\n\n{text}\n\n");
        [
            self.labelled(plain, "- "),
            self.labelled(|word| format!("**{word}:**"), "* "),
            self.labelled(|word| format!("- **{word}**:"), "  - "),
            self.labelled(|word| format!("### {word}:"), "1. "),
            format!(
                "Final Answer: {}\n\n## Timeline\n\n- 02:10 it began\n",
                self.labelled(plain, "- ")
            ),
            format!(
                "I have found it.\n\n{}",
                self.labelled(|word| format!("> {word}:"), "> - ")
            ),
            [
                heading("Root cause", self.cause),
                heading("Confidence", self.sure),
                heading("Current status", self.now),
                heading("Key findings", &self.list("- ")),
                heading("Next steps", self.next),
                heading("Limitations", self.not_seen),
            ]
            .concat(),
            format!("```json\n{json:#}\n```"),
            format!(
                "| Field | Finding |\n|---|---|\n{}{}{}{}{}\nKey evidence:\n{}",
                row("Verdict", self.cause),
                row("Confidence", self.sure),
                row("Now", self.now),
                row("Recommended action", self.next),
                row("Unknowns", self.not_seen),
                self.list("2) "),
            ),
            format!(
                "Do next: {}\nNot seen: {}\n{}Now: {}\nSure: {}\nRoot cause: {}\n",
                self.next,
                self.not_seen,
                self.list("Evidence: "),
                self.now,
                self.sure,
                self.cause,
            ),
        ]
    }

    fn expected(&self) -> Fields {
        let why = match self.sure.split_once(", ") {
            Some((_, why)) => why,
            None => self.sure,
        };
        Fields {
            cause: Some(self.cause.to_owned()),
            sure: Some(self.word),
            sure_why: why.to_owned(),
            now: Some(self.now.to_owned()),
            evidence: self
                .evidence
                .iter()
                .map(|fact| (*fact).to_owned())
                .collect(),
            next: Some(self.next.to_owned()),
            not_seen: Some(self.not_seen.to_owned()),
            form: Form::Loose,
        }
    }
}

#[test]
fn sixty_reports_in_ten_styles_have_their_fields() {
    for report in REPORTS {
        for text in report.styles() {
            let form = fields(&text).form;
            assert!(form != Form::Missing, "{text}");
            let found = Fields {
                form: Form::Loose,
                ..fields(&text)
            };
            assert_eq!(found, report.expected(), "{text}");
        }
    }
}
