//! The executive summary: the first lines of an analysis.

/// The shown labels, each with the spellings of models.
const LABELS: [(&str, &[&str]); 3] = [
    ("Cause", &["cause", "root cause", "likely cause"]),
    ("Evidence", &["evidence"]),
    ("Do next", &["do next", "next step", "next steps", "next"]),
];

/// Marks of lists, headings, quotes and emphasis around a label.
const MARKS: [char; 8] = ['*', '_', '#', '>', '-', '•', '`', ' '];

/// The lines `Cause`, `Evidence` and `Do next` of an analysis, in its own order; `None` when it does not begin with one
/// of them. Empty lines and headings before and between them are ignored.
pub fn executive_summary(analysis: &str) -> Option<String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut open = None;
    for line in analysis.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (labelled(line), open.take()) {
            (Some((label, _)), _) if found.iter().any(|(known, _)| *known == label) => break,
            (Some((label, "")), _) => open = Some(label),
            (Some((label, text)), _) => found.push((label, text.to_owned())),
            // The text of a label that is alone on its line is on the next line.
            (None, Some(label)) => found.push((label, line.trim_start_matches(['-', '*', ' ']).to_owned())),
            (None, None) if line.starts_with('#') => {}
            (None, None) => break,
        }
    }
    let lines: Vec<String> = found.iter().map(|(label, text)| format!("{label}: {text}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Lines of an analysis that are searched for its cause.
const MAX_LINES: usize = 60;
/// The words for the cause, in small letters, as models write them.
const CAUSES: [&str; 22] = [
    "cause",
    "causes",
    "root cause",
    "root causes",
    "root-cause",
    "likely cause",
    "likely root cause",
    "probable cause",
    "most likely cause",
    "verdict",
    "diagnosis",
    "root cause analysis",
    "conclusion",
    "ursache",
    "grundursache",
    "cause racine",
    "causa",
    "causa raíz",
    "causa raiz",
    "причина",
    "原因",
    "根本原因",
];

/// Whether an analysis names its cause, in any form: as a line, a heading, a row of a table, a key of JSON or a
/// sentence that begins with it.
pub fn names_cause(analysis: &str) -> bool {
    analysis.lines().take(MAX_LINES).any(is_cause_line)
}

fn is_cause_line(line: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric();
    let text = line.trim_start_matches(|c: char| is_mark(c) || c.is_ascii_digit()).to_lowercase();
    let text = text.strip_prefix("final answer").map_or(text.as_str(), |behind| behind.trim_start_matches(is_mark));
    let text = text.strip_prefix("the ").unwrap_or(text);
    CAUSES.iter().any(|word| {
        let Some(behind) = text.strip_prefix(word) else { return false };
        let behind = behind.trim_start_matches(['*', '_', '`', '"', '\'', ' ', ')']);
        let is_label = behind.is_empty() || behind.starts_with([':', '：', '|', '=', '-', '–', '—', '(']);
        is_label || behind.starts_with("is ") || behind.starts_with("was ") || behind.starts_with("of ")
    })
}

/// The cause in a summary of [`executive_summary`], in one line.
pub fn cause(summary: &str) -> Option<&str> {
    summary.lines().find_map(|line| line.strip_prefix("Cause: ")).map(str::trim).filter(|cause| !cause.is_empty())
}

/// The label of a line and the text after it.
fn labelled(line: &str) -> Option<(&'static str, &str)> {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let bare = if bare.len() < line.len() { bare.strip_prefix(['.', ')'])? } else { bare };
    let (word, text) = bare.split_once([':', '：'])?;
    let word = word.trim_matches(MARKS).to_lowercase();
    let (label, _) = LABELS.iter().find(|(_, spellings)| spellings.contains(&word.as_str()))?;
    let text = text.trim_start_matches(['*', '_', ' ']).trim_end();
    // Emphasis that began before the label.
    let unpaired = text.matches("**").count() % 2 == 1;
    Some((label, text.strip_suffix("**").filter(|_| unpaired).unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
        for promise in [
            "I will now look at the pods.",
            "",
            "Because of that I look further.",
            "I could not find anything useful, sorry.",
            "Causes are hard to find here.",
        ] {
            assert!(!names_cause(promise), "{promise}");
        }
    }

    #[test]
    fn the_leading_lines_are_the_summary_in_any_markup() {
        let expected = "Cause: heap too large [5]\nEvidence: exit 137 [5], limit 512Mi [7]\nDo next: raise the limit";
        let dressed = [
            expected.to_owned(),
            format!("{expected}\n\nCause: something else\nmore"),
            format!("\n## Root cause analysis\n\n{}\n", expected.replace('\n', "\n\n")),
            "**Cause:** heap too large [5]\n**EVIDENCE**: exit 137 [5], limit 512Mi [7]\n- *do next*: raise the limit\nx".to_owned(),
            "1. Root cause: heap too large [5]\n2) evidence: exit 137 [5], limit 512Mi [7]\n> Next steps: raise the limit".to_owned(),
            "**Cause: heap too large [5]**\n### Evidence:\nexit 137 [5], limit 512Mi [7]\n### Do next:\n- raise the limit".to_owned(),
        ];
        for analysis in dressed {
            assert_eq!(executive_summary(&analysis).as_deref(), Some(expected), "{analysis}");
        }
    }

    #[test]
    fn a_text_that_does_not_begin_with_a_label_has_no_summary() {
        for analysis in ["", "The disk is full.\nCause: logs", "Because: x", "Cause without colon", "Cause:"] {
            assert_eq!(executive_summary(analysis), None, "{analysis}");
        }
    }

    #[test]
    fn a_summary_may_lack_lines() {
        assert_eq!(executive_summary("Cause: a **b**\nIt was so.\nDo next: c").as_deref(), Some("Cause: a **b**"));
        assert_eq!(executive_summary("Cause:\nEvidence: e").as_deref(), Some("Evidence: e"));
    }
}
