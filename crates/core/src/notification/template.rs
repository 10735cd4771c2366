//! The words of a notification: a text of the operator with names in braces, which values replace.
//!
//! The text belongs to the operator and keeps the meaning that it has for the provider, such as a mention. A value
//! comes from outside and is escaped by the provider's rules.

use super::readable::with_citations_in_words;
use super::summary::{Outcome, Seen, Summary, spelled};
use super::{Moment, Notification};
use crate::alert::Severity;
use crate::execution::entry::Mark;
use crate::readable::bounded::line;
use crate::sources::WordList;

/// The longest title, in characters.
const MAX_TITLE: usize = 200;
/// The longest next step, in characters. A command is never cut: a longer one is left to the page.
const MAX_NEXT: usize = 600;
/// The longest cause, in characters. With every character escaped, a message stays within the limits of each provider.
const MAX_CAUSE: usize = 600;
/// The longest of the other fields of an analysis, and of one fact, in characters.
const MAX_FIELD: usize = 300;
/// Facts in a message.
const MAX_FACTS: usize = 4;
/// The longest name of a chain or a route, in characters.
const MAX_NAME: usize = 100;

/// The names that a template may have.
pub const NAMES: WordList = WordList::new(
    "title cause mark sure now evidence next not_seen severity chain outcome cited_events duration link session \
     moment route review seen",
);

/// A text with names in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    written: String,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    /// A name of [`NAMES`].
    Name(&'static str),
}

/// A template that names an unknown value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{0}}} is no value; accepted: {names}", names = NAMES.iter().collect::<Vec<_>>().join(", "))]
pub struct UnknownName(pub String);

impl Template {
    /// Parses a text. `{{` and `}}` are braces; a single brace that begins no name is one, too.
    ///
    /// # Errors
    /// When a name in braces is not one of [`NAMES`].
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;

        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(&before.replace("}}", "}"));
            if let Some(escaped) = after.strip_prefix('{') {
                plain.push('{');
                rest = escaped;
                continue;
            }
            let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name))
            else {
                plain.push('{');
                rest = after;
                continue;
            };
            let known = NAMES.iter().find(|known| *known == name.trim());
            parts.extend([
                TemplatePart::Text(std::mem::take(&mut plain)),
                TemplatePart::Name(known.ok_or_else(|| UnknownName(name.into()))?),
            ]);
            rest = behind;
        }
        plain.push_str(&rest.replace("}}", "}"));
        parts.push(TemplatePart::Text(plain));
        parts.retain(|part| *part != TemplatePart::Text(String::new()));
        Ok(Self {
            written: text.to_owned(),
            parts,
        })
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// The text with the values, each changed by `escape`.
    pub(super) fn filled(&self, values: &Values, escape: impl Fn(&str) -> String) -> String {
        self.parts
            .iter()
            .map(|part: &TemplatePart| match part {
                TemplatePart::Text(text) => text.clone(),
                TemplatePart::Name(name) => escape(&values.text(name)),
            })
            .collect()
    }
}

/// Whether a text in braces is meant as a name.
fn is_name(text: &str) -> bool {
    text.trim()
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '_')
}

/// The values of one notification, bounded and visible, not escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub(super) title: String,
    /// The sentence of the mark; empty without one.
    pub(super) mark: &'static str,
    /// The sentence of the review, where the mark does not say it; empty without one.
    pub(super) review: String,
    pub(super) cause: String,
    pub(super) sure: String,
    pub(super) now: String,
    pub(super) evidence: Vec<String>,
    /// The next step; a command at its beginning stands in back quotes.
    pub(super) next: String,
    pub(super) not_seen: String,
    pub(super) severity: &'static str,
    pub(super) chain: String,
    /// The outcome in words: `timed out`.
    pub(super) outcome: String,
    pub(super) cited_events: usize,
    /// The duration in words; empty while the investigation runs.
    pub(super) duration: String,
    pub(super) link: String,
    /// The number of this time, `4th time in 30 days`; empty for the first one.
    pub(super) seen: String,
    sign_of: Option<Outcome>,
    session: String,
    moment: Moment,
    route: String,
}

fn review(summary: &Summary) -> String {
    let review = summary.review.as_ref();
    let text = review.and_then(|review| review.beside(summary.mark));
    line(&text.unwrap_or_default(), MAX_FIELD)
}

impl Values {
    pub fn of_notification(notification: &Notification) -> Self {
        let Notification {
            key,
            about,
            summary,
            url,
            ..
        } = notification;
        let title = line(&summary.title, MAX_TITLE);
        let fields = summary.fields();
        let field = |text: Option<String>| {
            with_citations_in_words(&line(&text.unwrap_or_default(), MAX_FIELD))
        };
        let evidence = fields.evidence.iter().take(MAX_FACTS);
        let evidence = evidence
            .map(|fact| with_citations_in_words(&line(fact, MAX_FIELD)))
            .collect();
        Self {
            title: if title.is_empty() {
                "(no title)".to_owned()
            } else {
                title
            },
            mark: summary.mark.map_or("", Mark::sentence),
            review: review(summary),
            cause: match &summary.request {
                Some(request) => line(&request.in_words(), MAX_CAUSE),
                None => {
                    with_citations_in_words(&line(&summary.cause().unwrap_or_default(), MAX_CAUSE))
                }
            },
            sure: field(fields.sureness()),
            now: field(fields.now),
            evidence,
            next: line(&fields.next.unwrap_or_default(), MAX_NEXT),
            not_seen: field(fields.not_seen),
            severity: summary.severity.map_or("unknown", Severity::as_str),
            chain: line(summary.chain.as_deref().unwrap_or_default(), MAX_NAME),
            outcome: outcome(summary).replace('_', " "),
            cited_events: summary.cited_events(),
            duration: summary.took().map(spelled).unwrap_or_default(),
            link: url.clone().unwrap_or_default(),
            seen: summary.seen_before.map(Seen::in_words).unwrap_or_default(),
            sign_of: summary.outcome,
            session: about.to_string(),
            moment: key.moment,
            route: line(&key.route, MAX_NAME),
        }
    }

    /// The value of one of [`NAMES`]; empty for an unknown name and an absent value.
    pub fn text(&self, name: &str) -> String {
        match name {
            "title" => self.title.clone(),
            "cause" => self.cause.clone(),
            "mark" => self.mark.to_owned(),
            "review" => self.review.clone(),
            "sure" => self.sure.clone(),
            "now" => self.now.clone(),
            "evidence" => self.facts_in_lines(),
            "next" => self.next.clone(),
            "not_seen" => self.not_seen.clone(),
            "severity" => self.severity.to_owned(),
            "chain" => self.chain.clone(),
            "outcome" => self.outcome.clone(),
            "cited_events" => self.cited_events.to_string(),
            "duration" => self.duration.clone(),
            "link" => self.link.clone(),
            "session" => self.session.clone(),
            "moment" => self.moment.as_str().to_owned(),
            "route" => self.route.clone(),
            "seen" => self.seen.clone(),
            _ => String::new(),
        }
    }

    /// The evidence, one fact in a line.
    pub(super) fn facts_in_lines(&self) -> String {
        self.evidence
            .iter()
            .map(|fact| format!("• {fact}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The fields of the analysis with their labels, but for cause, evidence and the next step.
    pub(super) fn labelled(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("Sure", &self.sure),
            ("Now", &self.now),
            ("Not seen", &self.not_seen),
        ];
        fields
            .into_iter()
            .map(|(label, text)| (label, text.as_str()))
            .filter(|(_, text)| !text.is_empty())
    }

    /// The sign of the outcome before a title: an analysis that is marked is no success.
    pub(super) fn sign(&self) -> &'static str {
        match self.sign_of {
            _ if self.moment == Moment::Started => "🔎",
            _ if self.moment == Moment::Approval => "✋",
            Some(Outcome::Completed) if self.mark.is_empty() => "✅",
            Some(Outcome::Completed) => "⚠️",
            Some(Outcome::TimedOut) => "⏱️",
            Some(Outcome::Cancelled | Outcome::Limited) => "🚫",
            Some(Outcome::Failed | Outcome::DeadLetter) | None => "❌",
        }
    }

    /// The facts in a line: `critical, completed after 6.1 s, 2 cited events`.
    pub fn facts(&self) -> String {
        let ended = match self.moment {
            Moment::Started => "investigation started".to_owned(),
            Moment::Approval => "a call waits for a person".to_owned(),
            Moment::Decided => "a call waited for a person".to_owned(),
            Moment::Covered => format!("covered by an investigation that was {}", self.outcome),
            Moment::Ended if self.duration.is_empty() => self.outcome.clone(),
            Moment::Ended => format!("{} after {}", self.outcome, self.duration),
        };
        let cited = match self.cited_events {
            0 => String::new(),
            1 => ", 1 cited event".to_owned(),
            several => format!(", {several} cited events"),
        };
        let seen = match self.seen.as_str() {
            "" => String::new(),
            seen => format!(", {seen}"),
        };
        format!("{}, {ended}{cited}{seen}", self.severity)
    }
}

fn outcome(summary: &Summary) -> &'static str {
    summary.outcome.map_or("running", Outcome::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::tests::{ANALYSIS, notification};
    use crate::review::{Review, Verdict};

    #[test]
    fn names_are_replaced_and_escaped_and_the_text_is_not() {
        let template =
            Template::parse("<!here> {title} {{x}} { {outcome}: {cited_events}").unwrap();
        let values = Values {
            title: "a<b".to_owned(),
            ..Values::of_notification(&notification())
        };
        let filled = template.filled(&values, |value| value.replace('<', "&lt;"));
        assert_eq!(filled, "<!here> a&lt;b {x} { completed: 2");
        assert_eq!(
            template.as_str(),
            "<!here> {title} {{x}} { {outcome}: {cited_events}"
        );
    }

    #[test]
    fn an_unknown_name_is_a_fault_that_lists_the_known_ones() {
        let fault = Template::parse("{titel}").unwrap_err().to_string();
        assert!(
            fault.starts_with("{titel} is no value; accepted: title, cause, mark, sure"),
            "{fault}"
        );
    }

    #[test]
    fn every_name_has_a_value() {
        let analysis = format!("{ANALYSIS}\nNow: still there");
        let summary = Summary {
            mark: Some(Mark::NoSource),
            analysis: Some(analysis),
            seen_before: Some(Seen { times: 1, days: 30 }),
            review: Some(Review {
                verdict: Verdict::Stands,
                model: "m".to_owned(),
            }),
            ..notification().summary
        };
        let values = Values::of_notification(&Notification {
            summary,
            ..notification()
        });
        for name in NAMES.iter() {
            assert!(!values.text(name).is_empty(), "{name}");
        }
    }
}
