//! What is wrong with a configuration: all of it at once, each fault with its place and its cure.

use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path of the key: `agent_chains.k8s.stages[0].name`; empty for the whole file.
    pub key: String,
    /// From 1; 0 when there is none.
    pub line: usize,
    /// What was seen and what is accepted.
    pub problem: String,
}

/// Every fault of a file, in order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    /// The file, as the user named it.
    pub file: String,
    /// Never empty.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render_faults(&self.file, &self.faults))
    }
}

/// The faults as `config check` prints them: a headline and one line each, in columns. No line break at the end.
pub fn render_faults(file: &str, faults: &[Fault]) -> String {
    let count = faults.len();
    let mut out = format!("{file}: {count} fault{}", if count == 1 { "" } else { "s" });
    let lines: Vec<String> = faults.iter().map(|fault| place(fault.line)).collect();
    let key_width = faults.iter().map(|fault| fault.key.chars().count()).max().unwrap_or_default();
    let line_width = lines.iter().map(String::len).max().unwrap_or_default();
    for (fault, line) in faults.iter().zip(&lines) {
        out.push_str("\n ");
        for (text, width) in [(&fault.key, key_width), (line, line_width)] {
            if width > 0 {
                out.push_str(&format!(" {text:<width$}  "));
            }
        }
        out.push(' ');
        // A value that was seen may hold anything; one fault is one line.
        out.extend(fault.problem.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }
    out
}

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}") }
}

/// The known word that `word` was probably meant to be.
pub(super) fn did_you_mean<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .iter()
        .filter(|candidate| !candidate.is_empty())
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous_a = None;
    for (row, from) in a.chars().enumerate() {
        let mut current = vec![row + 1];
        let mut previous_b = None;
        for (column, to) in b.iter().copied().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut cost = at(&last, column) + usize::from(from != to);
            cost = cost.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if previous_a == Some(to) && previous_b == Some(from) {
                cost = cost.min(at(&before_last, column.saturating_sub(1)) + 1);
            }
            current.push(cost);
            previous_b = Some(to);
        }
        before_last = std::mem::replace(&mut last, current);
        previous_a = Some(from);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["native-thinking", "react", "slots", ""];
        for (seen, meant) in [
            ("native-thinkin", Some("native-thinking")),
            ("NATIVE-THINKING", Some("native-thinking")),
            ("raect", Some("react")),
            ("slot", Some("slots")),
            ("kubernetes", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(seen, &known), meant, "{seen}");
        }
    }

    #[test]
    fn distances_count_single_slips() {
        for (a, b, slips) in
            [("", "abc", 3), ("abc", "", 3), ("gemnii", "gemini", 1), ("ab", "ba", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), slips, "{a} {b}");
        }
    }

    #[test]
    fn faults_are_rendered_in_columns() {
        let fault = |key: &str, line, problem: &str| Fault { key: key.to_owned(), line, problem: problem.to_owned() };
        let faults = [fault("worker.slots", 3, "\"x\"\u{1b}[2J"), fault("agents.sre.mcp_servers[0]", 14, "no")];
        insta::assert_snapshot!(render_faults("tarsy.yaml", &faults), @r#"
        tarsy.yaml: 2 faults
          worker.slots                line 3    "x" [2J
          agents.sre.mcp_servers[0]   line 14   no
        "#);
        insta::assert_snapshot!(render_faults("f", &[fault("", 0, "cannot be read")]), @r"
        f: 1 fault
          cannot be read
        ");
    }
}
