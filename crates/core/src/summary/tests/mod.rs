//! Tests of the form: each field in the styles of models.

mod styles;

use super::*;

/// An analysis in its form, and its fields.
const KEPT: &str = "Cause: heap too large [5]\nSure: likely, the exit code fits\nNow: restarts every 4 min\nEvidence:\n\
                    - exit 137 [5]\n- limit 512Mi [7]\nDo next: `kubectl set resources deploy/x`\nNot seen: the heap dump";

fn expected(form: Form) -> Fields {
    Fields {
        cause: Some("heap too large [5]".to_owned()),
        sure: Some(Sure::Likely),
        sure_why: "the exit code fits".to_owned(),
        now: Some("restarts every 4 min".to_owned()),
        evidence: vec!["exit 137 [5]".to_owned(), "limit 512Mi [7]".to_owned()],
        next: Some("`kubectl set resources deploy/x`".to_owned()),
        not_seen: Some("the heap dump".to_owned()),
        form,
    }
}

#[test]
fn the_form_is_read_as_it_is_asked_for() {
    assert_eq!(fields(KEPT), expected(Form::Kept));
    assert_eq!(
        fields(&format!(
            "{KEPT}\n\nAt 12:00 it began.\n\nCause: another one\n"
        )),
        expected(Form::Kept)
    );
}

#[test]
fn the_lines_of_the_fields_are_read_again_as_the_same_fields() {
    let summary = executive_summary(KEPT).unwrap();
    assert_eq!(fields(&summary), expected(Form::Kept));
    assert_eq!(
        summary,
        "Cause: heap too large [5]\nSure: likely, the exit code fits\nNow: restarts every 4 min\nEvidence: exit 137 \
         [5]\nEvidence: limit 512Mi [7]\nDo next: `kubectl set resources deploy/x`\nNot seen: the heap dump"
    );
}

#[test]
fn the_loose_forms_of_models_have_the_same_fields() {
    for analysis in [
        "Here is my report.\n\n## Root cause\n\nheap too large [5]\n\n## Confidence\n\nlikely, the exit code fits\n\n## \
         Current status\n\nrestarts every 4 min\n\n## Evidence\n\n- exit 137 [5]\n- limit 512Mi [7]\n\n## Next steps\n\n\
         `kubectl set resources deploy/x`\n\n## Limitations\n\nthe heap dump\n\n## Timeline\n\n- 12:00 it began",
        "**Root Cause:** heap too large [5]\n**Confidence:** probable, the exit code fits\n**Now:** restarts every 4 \
         min\n**Evidence:**\n* exit 137 [5]\n* limit 512Mi [7]\n**Recommended action:**\n```bash\nkubectl set resources \
         deploy/x\n```\n**Not seen:** the heap dump",
        "| Verdict | heap too large [5] |\n|---|---|\n| Confidence | medium, the exit code fits |\n| Now | restarts \
         every 4 min |\n\nKey findings:\n1. exit 137 [5]\n2. limit 512Mi [7]\n\nFix - `kubectl set resources \
         deploy/x`\nUnknowns - the heap dump",
        "```json\n{\"root_cause\": \"heap too large [5]\", \"confidence\": \"probable, the exit code fits\", \"now\": \
         \"restarts every 4 min\", \"evidence\": [\"exit 137 [5]\", \"limit 512Mi [7]\"], \"next_steps\": \"`kubectl \
         set resources deploy/x`\", \"not_seen\": \"the heap dump\"}\n```",
        "Do next: `kubectl set resources deploy/x`\nNot seen: the heap dump\nEvidence: exit 137 [5]\nEvidence: limit \
         512Mi [7]\nNow: restarts every 4 min\nSure: likely, the exit code fits\nThe root cause is heap too large [5]",
    ] {
        assert_eq!(fields(analysis), expected(Form::Loose), "{analysis}");
    }
}

#[test]
fn a_text_without_a_cause_has_no_form_and_code_is_no_field() {
    for analysis in [
        "",
        "I will look at the pods.",
        "Because: x",
        "```\nCause: quoted\n```\nIt is over.",
    ] {
        assert_eq!(fields(analysis), Fields::default(), "{analysis}");
        assert_eq!(executive_summary(analysis), None, "{analysis}");
    }
    let only_next = fields("Do next: wait");
    assert_eq!(
        (only_next.form, only_next.next.as_deref()),
        (Form::Missing, Some("wait"))
    );
    let late = format!("{}\nCause: x", "text\n".repeat(MAX_LINES));
    assert_eq!(fields(&late), Fields::default());
}

#[test]
fn what_stands_below_the_fields_is_the_rest_of_the_analysis() {
    let rest = "At 12:00 it began.\n\n- Cause: another one";
    assert_eq!(below(&format!("{KEPT}\n\n{rest}\n")), rest);
    assert_eq!((below(KEPT), below(rest)), ("", rest));
    assert_eq!(
        below("# Report\n\n**Cause:** x\n\n**Do next:** y\n\n# More\n\nz"),
        "# More\n\nz"
    );
}

#[test]
fn claims_are_cause_and_evidence_or_everything_that_may_be_evidence() {
    let claims = |analysis: &str| fields(analysis).claims(analysis);
    assert_eq!(
        claims(KEPT),
        "heap too large [5]\nexit 137 [5]\nlimit 512Mi [7]"
    );
    assert_eq!(
        claims("Cause: x\n\nThe log says so [5]."),
        "Cause: x\n\nThe log says so [5]."
    );
}

#[test]
fn a_hostile_analysis_is_read_in_bounded_time() {
    for part in [
        "Cause:",
        "- ",
        "Evidence:\n- a\n",
        "```\n",
        "{\"a\":",
        "| a ",
        "**",
        "1. ",
    ] {
        let text = part.repeat(400_000 / part.len());
        let begun = std::time::Instant::now();
        fields(&text);
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(2),
            "{part}"
        );
    }
}

#[test]
fn the_cause_is_one_line_of_the_summary() {
    assert_eq!(cause("Cause: the limit\nEvidence: [4]"), Some("the limit"));
    assert_eq!((cause("Evidence: [4]"), cause("Cause: ")), (None, None));
}

#[test]
fn a_cause_is_found_in_every_form_and_a_promise_has_none() {
    for analysis in [
        "Cause: the disk",
        "## Root cause\n\nThe disk is full.",
        "Here is what I found.\n\n**Root Cause:** the disk",
        "| Verdict | the disk |",
        "{\n  \"root_cause\": 1,\n  \"cause\": \"the disk\"\n}",
        "1. Cause - the disk",
        "The root cause is a full disk.",
        "Ursache: die Platte ist voll",
        "根本原因：ディスク",
        "**Final Answer:** Cause: the disk",
    ] {
        assert!(names_cause(analysis), "{analysis}");
        assert!(fields(analysis).cause.is_some(), "{analysis}");
    }
    for promise in [
        "I will now look at the pods.",
        "",
        "Because of that I look further.",
        "I could not find anything useful, sorry.",
        "Causes are hard to find here.",
    ] {
        assert!(!names_cause(promise), "{promise}");
        assert_eq!(fields(promise).cause, None, "{promise}");
    }
}

#[test]
fn the_lines_of_earlier_versions_are_read_in_any_markup() {
    let expected = "Cause: heap too large [5]\nEvidence: exit 137 [5], limit 512Mi [7]\nDo next: raise the limit";
    let dressed = [
        expected.to_owned(),
        format!("{expected}\n\nCause: something else\nmore"),
        format!("\n## Root cause analysis\n\n{}\n", expected.replace('\n', "\n\n")),
        "**Cause:** heap too large [5]\n**EVIDENCE**: exit 137 [5], limit 512Mi [7]\n- *do next*: raise the limit\nx"
            .to_owned(),
        "1. Root cause: heap too large [5]\n2) evidence: exit 137 [5], limit 512Mi [7]\n> Next steps: raise the limit"
            .to_owned(),
        "**Cause: heap too large [5]**\n### Evidence:\nexit 137 [5], limit 512Mi [7]\n### Do next:\n- raise the limit"
            .to_owned(),
    ];
    for analysis in dressed {
        assert_eq!(
            executive_summary(&analysis).as_deref(),
            Some(expected),
            "{analysis}"
        );
    }
}

#[test]
fn a_summary_may_lack_lines() {
    assert_eq!(
        executive_summary("Cause: a **b**\nIt was so.\nDo next: c").as_deref(),
        Some("Cause: a **b**\nDo next: c")
    );
    assert_eq!(
        executive_summary("Cause:\nEvidence: e").as_deref(),
        Some("Evidence: e")
    );
    assert_eq!(executive_summary("Cause:"), None);
}
