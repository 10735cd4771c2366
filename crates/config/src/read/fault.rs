//! The faults of a configuration: each has its key, its line and what is accepted instead.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the key: `agent_chains.k8s.stages[0].name`; empty for the whole file.
    pub key: String,
    /// Counted from 1; 0 if the fault has no line.
    pub line: usize,
    /// The value that was found, and the values that are accepted.
    pub problem: String,
}

/// All faults of a file, sorted by line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    /// The path that the user gave.
    pub file: String,
    /// Never empty.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render_faults(&self.file, &self.faults))
    }
}

/// The output of `config check`: a headline, then one line for each fault in columns, without a line break at the end.
pub fn render_faults(file: &str, faults: &[Fault]) -> String {
    let count = faults.len();
    let mut out = format!("{file}: {count} fault{}", if count == 1 { "" } else { "s" });
    let lines: Vec<String> = faults.iter().map(|fault| line_label(fault.line)).collect();
    let key_width = faults
        .iter()
        .map(|fault| fault.key.chars().count())
        .max()
        .unwrap_or_default();
    let line_width = lines.iter().map(String::len).max().unwrap_or_default();
    for (fault, line) in faults.iter().zip(&lines) {
        out.push_str("\n ");
        for (text, width) in [(&fault.key, key_width), (line, line_width)] {
            if width > 0 {
                out.push_str(&format!(" {text:<width$}  "));
            }
        }
        out.push(' ');
        // A value may contain line breaks, but each fault is one line.
        out.extend(
            fault
                .problem
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c }),
        );
    }
    out
}

fn line_label(line: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!("line {line}")
    }
}

/// The known word closest to `word`, if about two thirds of it match.
pub fn did_you_mean<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .iter()
        .filter(|candidate| !candidate.is_empty())
        .map(|candidate| {
            (
                strsim::osa_distance(&word, &candidate.to_lowercase()),
                *candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_is_recognised() {
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
    fn faults_are_rendered_in_columns() {
        let fault = |key: &str, line, problem: &str| Fault {
            key: key.to_owned(),
            line,
            problem: problem.to_owned(),
        };
        let faults = [
            fault("worker.slots", 3, "\"x\"\u{1b}[2J"),
            fault("agents.sre.mcp_servers[0]", 14, "no"),
        ];
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
