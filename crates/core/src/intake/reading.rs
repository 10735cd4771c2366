//! A parsed body, and the alert that it becomes with the hints of its message and the bounds of every text.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::fingerprint::Scope;
use super::{GENERIC, Hints, IntakeError, LeftOut, Part, clean, fingerprint, why};
use crate::alert::aggregate::{Aggregate, AggregateKind};
use crate::alert::refs::{self, Refs};
use crate::alert::{Alert, AlertStatus, MemberReport, Severity};
use crate::sources::{NamedSource, Note, Origin, Sources, Tag, Traced};

const MAX_NAME_CHARS: usize = 200;
pub(super) const MAX_TITLE_CHARS: usize = 160;
/// The limit of the line about one alert of a group, in characters.
pub(super) const MAX_REPORT_CHARS: usize = 400;
const MAX_URL_CHARS: usize = 2_048;

/// A parsed body, before hints and bounds are applied.
#[derive(Debug, Default)]
pub(super) struct ParsedBody {
    /// Its place in the message.
    pub(super) index: u32,
    pub(super) source: String,
    pub(super) name: Option<String>,
    pub(super) title: String,
    pub(super) severity: Option<Severity>,
    pub(super) status: AlertStatus,
    pub(super) ignored_because: Option<String>,
    pub(super) at: Option<DateTime<Utc>>,
    /// The tenant that the body names, if its sender serves several.
    pub(super) tenant: Option<String>,
    /// `None`: the hash of the body.
    pub(super) fingerprint: Option<String>,
    /// The members of a group; if there are none, the text is the only member.
    pub(super) members: Vec<Uuid>,
    /// The reports about the alerts of a group; empty for a single alert.
    pub(super) reports: Vec<MemberReport>,
    pub(super) runbook_url: Option<String>,
    /// The sender's own ids, before they are bounded.
    pub(super) refs: BTreeMap<String, String>,
    pub(super) text: String,
    pub(super) labels: BTreeMap<String, String>,
    /// The annotations of the alert, or of the first alert of several.
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) links: BTreeMap<String, String>,
    pub(super) trace: Vec<Traced>,
    pub(super) notes: Vec<Note>,
}

/// The context that the alerts of one message share.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageContext<'m> {
    pub(super) body: &'m [u8],
    pub(super) hints: &'m Hints,
    pub(super) sources: &'m Sources,
    /// Headers about one alert do not count for several.
    pub(super) has_several: bool,
}

impl ParsedBody {
    /// A group of which so many firing alerts are not in the body: they are one member, with those that the sender has
    /// left out itself.
    pub(super) fn with_left_out(mut self, firing: u64) -> Self {
        if firing == 0 || self.status != AlertStatus::Firing {
            return self;
        }
        let is_aggregate = |member: &Uuid| Aggregate::containing(member).is_some();
        let before =
            Aggregate::find(&self.members, AggregateKind::LeftOut).map_or(0, |before| before.count);
        let member = Aggregate::left_out(firing.saturating_add(u64::from(before)));
        self.members.retain(|member| !is_aggregate(member));
        self.reports.retain(|report| !is_aggregate(&report.member));
        self.members.push(member);
        let text = format!(
            "{} alerts that are not shown one by one",
            firing.saturating_add(u64::from(before))
        );
        self.reports.push(MemberReport {
            member,
            status: AlertStatus::Firing,
            text,
        });
        self
    }

    /// The alert.
    ///
    /// # Errors
    /// When it has no content.
    pub(super) fn finish(self, message: MessageContext<'_>) -> Result<Part, IntakeError> {
        let MessageContext { hints, .. } = message;
        let content = clean::text(&self.text);
        if content.trim().is_empty() {
            return Err(IntakeError::Empty);
        }
        let name = clean_line(hints.alert_type.as_deref(), MAX_NAME_CHARS)
            .or_else(|| clean_line(self.name.as_deref(), MAX_NAME_CHARS))
            .unwrap_or_else(|| GENERIC.to_owned());
        let fingerprint = self.fingerprint(message);
        let refs = self.refs(message.sources);
        let members = match self.status {
            AlertStatus::Resolved | AlertStatus::Test | AlertStatus::Ignored => Vec::new(),
            AlertStatus::Firing | AlertStatus::Acknowledged if self.members.is_empty() => {
                vec![fingerprint::member_of_text(&content)]
            }
            AlertStatus::Firing | AlertStatus::Acknowledged => fingerprint::group(self.members),
        };
        let reports = reports(self.reports, &members, &content);
        // The header of a message with several alerts names none of them.
        let title = if message.has_several {
            None
        } else {
            hints.title.as_deref()
        };
        let alert = Alert {
            source: self.source,
            title: clean_line(title, MAX_TITLE_CHARS)
                .or_else(|| clean_line(Some(&self.title), MAX_TITLE_CHARS))
                .unwrap_or_else(|| name.clone()),
            alert_type: name,
            severity: self.severity.or(hints.priority).unwrap_or_default(),
            severity_word: severity_word(self.severity, &self.trace),
            status: self.status,
            ignored_because: clean_line(self.ignored_because.as_deref(), MAX_TITLE_CHARS),
            at: self.at,
            fingerprint,
            members,
            reports,
            runbook_url: url(hints.runbook_url.as_deref())
                .or_else(|| url(self.runbook_url.as_deref())),
            refs,
            text: with_left_out(with_notes(content, &self.notes), hints.left_out.as_ref()),
        };
        let own_key = self
            .fingerprint
            .as_deref()
            .is_some_and(|key| !key.trim().is_empty());
        let absent = [
            ("severity", self.severity.is_none()),
            ("key", !own_key),
            (
                "type",
                clean_line(self.name.as_deref(), MAX_NAME_CHARS).is_none(),
            ),
            ("title", self.title.trim().is_empty()),
        ];
        let absent: Vec<&str> = absent
            .iter()
            .filter(|(_, is_absent)| *is_absent)
            .map(|(field, _)| *field)
            .collect();
        let given = why::Given {
            hints,
            alert: &alert,
            has_several: message.has_several,
            absent: &absent,
        };
        let trace = why::complete(self.trace, given);
        let links = self
            .links
            .into_iter()
            .filter_map(|(name, link)| Some((name, url(Some(&link))?)))
            .collect();
        Ok(Part {
            index: self.index,
            alert,
            labels: self.labels,
            links,
            trace,
            notes: self.notes,
        })
    }

    /// The references that its source declares: by pointers, labels and annotations, and by the thread of a chat.
    fn refs(&self, sources: &Sources) -> Refs {
        let tag = |tag: &Tag| match tag {
            Tag::Label(name) => self.labels.get(name),
            Tag::Annotation(name) => self.annotations.get(name),
        };
        let named = sources
            .get(&self.source)
            .map(NamedSource::tag_refs)
            .unwrap_or_default();
        let named = named
            .iter()
            .filter_map(|each| Some((each.name.clone(), tag(&each.tag)?.clone())));
        let slack = refs::slack_thread(|name| {
            let text = self.annotations.get(name);
            text.or_else(|| self.labels.get(name)).map(String::as_str)
        });
        let slack = slack.map(|thread| (refs::SLACK.to_owned(), thread));
        Refs::new(slack.into_iter().chain(self.refs.clone()).chain(named))
    }

    fn fingerprint(&self, message: MessageContext<'_>) -> String {
        let MessageContext {
            body,
            hints,
            sources,
            has_several,
        } = message;
        let tenant = hints
            .tenant
            .as_deref()
            .map(str::trim)
            .filter(|tenant| !tenant.is_empty());
        let scope = Scope {
            suffix: &hints.suffix,
            tenant: tenant.or(self.tenant.as_deref()),
        };
        let header = clean_line(hints.fingerprint.as_deref(), usize::MAX);
        if let Some(header) = header
            && !has_several
        {
            return fingerprint::of_header(scope, header, &|form| sources.contains(form));
        }
        let of_whole = hints
            .left_out
            .as_ref()
            .and_then(|left_out| left_out.key.as_deref());
        let of_whole = if has_several { None } else { of_whole };
        let written = of_whole
            .or(self.fingerprint.as_deref())
            .filter(|key| !key.trim().is_empty());
        // A key of control characters alone is hashed as it is written: the body has its fields in any order.
        let key = clean_line(written, usize::MAX)
            .unwrap_or_else(|| fingerprint::of_body(written.map_or(body, str::as_bytes)));
        fingerprint::scoped(&self.source, scope, key)
    }
}

/// The text with what the body lacks.
fn with_left_out(mut text: String, left_out: Option<&LeftOut>) -> String {
    for note in left_out.iter().flat_map(|left_out| &left_out.notes) {
        text.push_str(&format!("\n[tarsy: {note}]"));
    }
    text
}

/// The text with the notes that its reader has to know.
pub(super) fn with_notes(mut text: String, notes: &[Note]) -> String {
    for note in notes.iter().filter(|note| note.is_for_the_reader()) {
        text.push_str(&format!(
            "\n[tarsy: {}]",
            clean::line(&note.to_string(), MAX_REPORT_CHARS)
        ));
    }
    text
}

/// The word of the body for its severity, if a message may have it.
fn severity_word(severity: Option<Severity>, trace: &[Traced]) -> Option<String> {
    let severity = severity?;
    let origin = trace
        .iter()
        .find(|traced: &&Traced| traced.field == "severity" && traced.value == severity.as_str());
    match &origin?.origin {
        Origin::At { text, .. } => severity.plain_word(text),
        Origin::Nothing(_) | Origin::Rule(_) => None,
    }
}

/// A line for each alert. A group that is one hash has one line, and so has an alert that is no group.
fn reports(read: Vec<MemberReport>, members: &[Uuid], content: &str) -> Vec<MemberReport> {
    let group = Aggregate::find(members, AggregateKind::Group);
    let line = |text: &str| clean::line(text, MAX_REPORT_CHARS);
    match (members, group) {
        ([only], None) if read.is_empty() => {
            vec![MemberReport {
                member: *only,
                status: AlertStatus::Firing,
                text: line(content),
            }]
        }
        ([only], Some(Aggregate { count, .. })) => {
            let text = format!("a group of {count} alerts, too many to compare one by one");
            vec![MemberReport {
                member: *only,
                status: AlertStatus::Firing,
                text,
            }]
        }
        _ => read
            .into_iter()
            .map(|report| MemberReport {
                text: line(&report.text),
                ..report
            })
            .collect(),
    }
}

/// The text as a clean line; `None` if nothing is left.
fn clean_line(text: Option<&str>, max_chars: usize) -> Option<String> {
    text.map(|text| clean::line(text, max_chars))
        .filter(|text| !text.is_empty())
}

fn url(text: Option<&str>) -> Option<String> {
    let url = clean_line(text, MAX_URL_CHARS)?;
    let web = url.starts_with("https://") || url.starts_with("http://");
    (web && !url.contains(char::is_whitespace) && url.chars().count() < MAX_URL_CHARS)
        .then_some(url)
}
