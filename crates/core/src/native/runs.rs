//! Runs of code: joins programs with their results, which arrive in separate parts.

use std::collections::{HashMap, VecDeque};

use super::CodePart;
use crate::code::fence_around;

/// The language of a program without one.
const DEFAULT_LANGUAGE: &str = "python";
/// The end of a provider's word for an unknown outcome or language.
const UNSPECIFIED: &str = "UNSPECIFIED";
const FAILED: [&str; 2] = ["FAILED", "DEADLINE_EXCEEDED"];

/// A program that the provider ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run<'a> {
    /// The program; empty when only its result arrived.
    pub code: &'a str,
    /// The output of the program, which may be empty.
    pub result: &'a str,
    /// The provider's word; may be empty.
    pub outcome: &'a str,
    language: &'a str,
    id: &'a str,
    open: bool,
}

/// Joins programs with their results, in the order of the programs, also over parts between them.
///
/// A result belongs to the program with its id when both have one, in either order, otherwise to the program before it
/// if that has no result. A program without a result and a result without a program are runs, too.
pub fn runs(parts: &[CodePart]) -> Vec<Run<'_>> {
    let mut pairing = Pairing::default();
    for part in parts {
        pairing.take(part);
    }
    let mut runs = pairing.runs;
    runs.retain(|run| !run.code.is_empty() || !run.result.is_empty() || run.has_failed());
    runs
}

#[derive(Default)]
struct Pairing<'a> {
    runs: Vec<Run<'a>>,
    /// Programs by their id.
    by_id: HashMap<&'a str, Vec<usize>>,
    /// Results that came before a program with their id.
    early: HashMap<&'a str, VecDeque<usize>>,
    /// The program that the next result without an id belongs to.
    last: Option<usize>,
}

impl<'a> Pairing<'a> {
    fn take(&mut self, part: &'a CodePart) {
        let outcome = if part.outcome.ends_with(UNSPECIFIED) {
            ""
        } else {
            part.outcome.as_str()
        };
        let has_result = !part.result.is_empty() || !outcome.is_empty();
        let mut run = Run {
            code: &part.code,
            result: &part.result,
            outcome,
            language: &part.language,
            id: &part.id,
            open: !part.code.is_empty() && !has_result,
        };
        if run.open
            && let Some(result) = self.take_early_result(run.id)
        {
            run.finish(result);
            self.runs.push(run);
            self.last = None;
        } else if !part.code.is_empty() {
            self.last = run.open.then_some(self.runs.len());
            if run.open && !run.id.is_empty() {
                self.by_id.entry(run.id).or_default().push(self.runs.len());
            }
            self.runs.push(run);
        } else if has_result {
            let program = self.program_of(run.id);
            match program.and_then(|at| self.runs.get_mut(at)) {
                Some(program) => program.finish(run),
                None => {
                    if !run.id.is_empty() {
                        self.early
                            .entry(run.id)
                            .or_default()
                            .push_back(self.runs.len());
                    }
                    self.runs.push(run);
                }
            }
        }
    }

    /// The result that came before the program with this id. Its own run becomes empty, because the place in the order
    /// is that of the program.
    fn take_early_result(&mut self, id: &str) -> Option<Run<'a>> {
        let at = self.early.get_mut(id)?.pop_front()?;
        self.runs.get_mut(at).map(std::mem::take)
    }

    /// The program that a result with this id belongs to; it gets no other result.
    fn program_of(&mut self, id: &str) -> Option<usize> {
        while let Some(at) = self.by_id.get_mut(id).and_then(Vec::pop) {
            if self.runs.get(at).is_some_and(|run| run.open) {
                self.last = self.last.filter(|last| *last != at);
                return Some(at);
            }
        }
        let last = self.last.and_then(|at| Some((at, self.runs.get(at)?)));
        let (at, _) = last.filter(|(_, run)| id.is_empty() || run.id.is_empty())?;
        self.last = None;
        Some(at)
    }
}

impl<'a> Run<'a> {
    fn finish(&mut self, result: Run<'a>) {
        (self.result, self.outcome, self.open) = (result.result, result.outcome, false);
        if self.language.is_empty() {
            self.language = result.language;
        }
    }

    /// Whether the provider reports a failure.
    pub fn has_failed(&self) -> bool {
        FAILED.contains(
            &self
                .outcome
                .strip_prefix("OUTCOME_")
                .unwrap_or(self.outcome),
        )
    }

    /// The text for people: program and output in fences that neither can close.
    pub fn content(&self) -> String {
        let mut content = String::new();
        if !self.code.is_empty() {
            let fence = fence_around(&[self.code]);
            content = format!("{fence}{}\n{}\n{fence}\n", self.language(), self.code);
        }
        if !self.result.is_empty() {
            let fence = fence_around(&[self.result]);
            content.push_str(&format!("\nOutput:\n{fence}\n{}\n{fence}", self.result));
        }
        if content.is_empty() {
            self.outcome.to_owned()
        } else {
            content
        }
    }

    fn language(&self) -> String {
        let is_word = self
            .language
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '_'));
        if self.language.is_empty() || !is_word || self.language.ends_with(UNSPECIFIED) {
            return DEFAULT_LANGUAGE.to_owned();
        }
        self.language.to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(code: &str, result: &str) -> CodePart {
        CodePart {
            code: code.to_owned(),
            result: result.to_owned(),
            ..CodePart::default()
        }
    }

    fn with_id(id: &str, part: CodePart) -> CodePart {
        CodePart {
            id: id.to_owned(),
            ..part
        }
    }

    fn paired(parts: &[CodePart]) -> Vec<(&str, &str)> {
        runs(parts)
            .iter()
            .map(|run| (run.code, run.result))
            .collect()
    }

    #[test]
    fn a_result_belongs_to_the_program_before_it_unless_that_has_one() {
        let a = part("a", "");
        let b = part("b", "");
        let r = part("", "r");
        let s = part("", "s");

        let both = part("c", "t");
        for (parts, expected) in [
            (vec![], vec![]),
            (vec![a.clone(), r.clone()], vec![("a", "r")]),
            (
                vec![a.clone(), b.clone(), r.clone()],
                vec![("a", ""), ("b", "r")],
            ),
            (vec![r.clone()], vec![("", "r")]),
            (
                vec![r.clone(), a.clone(), s.clone()],
                vec![("", "r"), ("a", "s")],
            ),
            (
                vec![a.clone(), r.clone(), s.clone()],
                vec![("a", "r"), ("", "s")],
            ),
            (vec![both.clone()], vec![("c", "t")]),
            (
                vec![a.clone(), both, r.clone()],
                vec![("a", ""), ("c", "t"), ("", "r")],
            ),
            (
                vec![a.clone(), r.clone(), b.clone(), s],
                vec![("a", "r"), ("b", "s")],
            ),
            (
                vec![a, CodePart::default(), r, b],
                vec![("a", "r"), ("b", "")],
            ),
        ] {
            assert_eq!(paired(&parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn ids_take_precedence_over_the_order() {
        let a = with_id("1", part("a", ""));
        let b = with_id("2", part("b", ""));

        let r = with_id("1", part("", "r"));
        let s = with_id("2", part("", "s"));

        let anonymous = part("", "t");
        for (parts, expected) in [
            (
                vec![a.clone(), b.clone(), r.clone(), s.clone()],
                vec![("a", "r"), ("b", "s")],
            ),
            (
                vec![a.clone(), b.clone(), s.clone(), r.clone()],
                vec![("a", "r"), ("b", "s")],
            ),
            (
                vec![a.clone(), b, anonymous.clone(), r.clone()],
                vec![("a", "r"), ("b", "t")],
            ),
            (vec![a.clone(), s, r.clone()], vec![("a", "r"), ("", "s")]),
            (vec![r.clone(), a.clone()], vec![("a", "r")]),
            (
                vec![r.clone(), with_id("2", part("b", "")), a.clone()],
                vec![("b", ""), ("a", "r")],
            ),
            (vec![r.clone(), part("x", "")], vec![("", "r"), ("x", "")]),
            (
                vec![r.clone(), a.clone(), r.clone()],
                vec![("a", "r"), ("", "r")],
            ),
            (vec![part("x", ""), r.clone()], vec![("x", "r")]),
            (
                vec![a.clone(), anonymous, r.clone()],
                vec![("a", "t"), ("", "r")],
            ),
            (
                vec![a.clone(), a, r.clone(), r],
                vec![("a", "r"), ("a", "r")],
            ),
        ] {
            assert_eq!(paired(&parts), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_program_and_its_output_read_like_a_document() {
        let run = |code, result| {
            Run {
                code,
                result,
                ..Run::default()
            }
            .content()
        };
        assert_eq!(
            run("print(6 * 7)", "42"),
            "```python\nprint(6 * 7)\n```\n\nOutput:\n```\n42\n```"
        );
        assert_eq!(run("x = 6", ""), "```python\nx = 6\n```\n");
        assert_eq!(run("", "42"), "\nOutput:\n```\n42\n```");
        let fences = "`````python\nprint('````')\n`````\n\nOutput:\n````\n```\n````";
        assert_eq!(run("print('````')", "```"), fences);
    }

    #[test]
    fn the_language_is_that_of_the_part_if_it_is_a_word() {
        for (said, shown) in [
            ("PYTHON", "python"),
            ("C++", "c++"),
            ("", "python"),
            ("LANGUAGE_UNSPECIFIED", "python"),
            ("a`\nb", "python"),
        ] {
            let run = Run {
                code: "x",
                language: said,
                ..Run::default()
            };
            let content = run.content();
            assert_eq!(
                content.lines().next(),
                Some(&*format!("```{shown}")),
                "{said}"
            );
        }
    }

    #[test]
    fn an_outcome_belongs_to_the_run_also_without_an_output() {
        let ended = |outcome: &str| CodePart {
            outcome: outcome.to_owned(),
            ..CodePart::default()
        };
        let performed = |parts: &[CodePart]| {
            let runs = runs(parts);
            runs.iter()
                .map(|run| (run.content(), run.outcome.to_owned(), run.has_failed()))
                .collect::<Vec<_>>()
        };
        let program = "```python\nx\n```\n".to_owned();
        for (outcome, failed) in [
            ("OUTCOME_OK", false),
            ("OUTCOME_FAILED", true),
            ("OUTCOME_DEADLINE_EXCEEDED", true),
            ("DEADLINE_EXCEEDED", true),
            ("OUTCOME_OF_TOMORROW", false),
        ] {
            let expected = [(program.clone(), outcome.to_owned(), failed)];
            assert_eq!(performed(&[part("x", ""), ended(outcome)]), expected);
        }
        assert_eq!(
            performed(&[part("x", ""), ended("OUTCOME_UNSPECIFIED")]),
            [(program, String::new(), false)]
        );
        assert_eq!(performed(&[ended("OUTCOME_OK")]), []);
        let failed = "OUTCOME_FAILED".to_owned();
        assert_eq!(
            performed(&[ended("OUTCOME_FAILED")]),
            [(failed.clone(), failed, true)]
        );
    }

    proptest! {
        #[test]
        fn no_part_is_left_out_or_doubled(
            parts in prop::collection::vec(("[a-c]?", "[x-z]?", "[12]?"), 0..12),
        ) {
            let parts: Vec<_> = parts.iter().map(|(code, result, id)| with_id(id, part(code, result))).collect();
            let sorted = |mut texts: Vec<&str>| { texts.retain(|text| !text.is_empty()); texts.sort_unstable(); texts.concat() };
            let runs = runs(&parts);
            let codes = |of: Vec<&str>| of.concat();
            prop_assert_eq!(
                codes(runs.iter().map(|run| run.code).collect()),
                codes(parts.iter().map(|part| part.code.as_str()).collect())
            );
            prop_assert_eq!(
                sorted(runs.iter().map(|run| run.result).collect()),
                sorted(parts.iter().map(|part| part.result.as_str()).collect())
            );
        }

        #[test]
        fn neither_program_nor_output_leaves_its_fence(code in "[`a\n]{1,12}", result in "[`a\n]{1,12}") {
            let content = Run { code: &code, result: &result, ..Run::default() }.content();
            let mut rest = content.as_str();
            for text in [&code, &result] {
                let begin = rest.find("```").unwrap_or_default();
                let fence: String = rest.get(begin..).unwrap_or_default().chars().take_while(|c| *c == '`').collect();
                prop_assert!(!text.contains(&fence));
                let end = rest.get(begin + fence.len()..).and_then(|inner| inner.find(&format!("\n{fence}")));
                rest = rest.get(begin + fence.len() + end.unwrap_or_default() + 1 + fence.len()..).unwrap_or_default();
            }
            prop_assert_eq!(rest, "");
        }
    }
}
