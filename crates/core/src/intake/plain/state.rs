//! The status of a body of no known form. Each field that says how an alert is gives evidence; a field with another
//! meaning (`type`, `event`, `action`) only if its word has no other. Numbers and bools count where the field says what
//! they mean. What the alert itself says goes before what is further in; where two fields differ, it fires.

use chrono::{DateTime, Utc};

use super::Verdict;
use super::facts::{Fact, Rank};
use super::times::ended_at;
use super::title_mark::{mark, without_signs};
use crate::alert::{AlertStatus, Severity};
use crate::sources::{
    Note, Traced, WordList, ended_of, is_severity_word, pieces, severity_of, status_of,
};

/// Ends of the keys of states.
const STATES: WordList = WordList::new(
    "status state health phase milestone stage outcome conclusion verdict result zustand stand estado état etat stato \
     stan статус состояние 状态 狀態 状態 ステータス 상태",
);
/// Keys of the word in an object of a state: `new_status: {category: closed}`.
const IN_STATE: [&str; 7] = [
    "name", "value", "category", "label", "slug", "current", "new",
];
/// Pieces of keys of another state than the one of the alert now.
const NOT_NOW: WordList = WordList::new(
    "previous prev old last prior former before from initial expected desired http response code url link text reason \
     user page",
);
/// Beginnings of the keys of what a message is: `notification_type`.
const MESSAGES: WordList = WordList::new(
    "notification message alert alarm event action trigger change webhook incident update ticket transition",
);
const MESSAGE_ENDS: [&str; 5] = ["type", "event", "action", "transition", "kind"];
/// Words that are an end in such a field, too.
const WELL: [&str; 6] = ["ok", "okay", "up", "success", "passing", "healthy"];
/// Keys that may say something else than a state.
const AMBIGUOUS: WordList =
    WordList::new("type event action kind what transition alert alarm update");
/// True at the end.
const END_FLAGS: WordList = WordList::new(
    "resolved isresolved recovered isrecovered cleared iscleared closed isclosed clear backtonormal allclear isok \
     ishealthy healthy isup",
);
/// True while there is a problem.
const PROBLEM_FLAGS: WordList = WordList::new(
    "firing isfiring alerting isalerting isdown inalarm istriggered isproblem inproblem",
);
/// Fields beside a number that is the result of a check: 0 is good, 1 to 3 are not.
const OF_CHECK: WordList = WordList::new(
    "exitstatus statetype perfdata performancedata lastok occurrences checkresult pluginoutput checkcommand \
     lasthardstate",
);
/// Pieces of the keys of things that may have a problem.
const THINGS: WordList = WordList::new(
    "host hosts hostname node nodename server servername device devicename machine vm instance service app application \
     component resource target entity object container pod namespace deployment workload queue topic database db disk \
     volume interface port endpoint domain address ip url site check monitor probe sensor job rule policy alarm \
     alertname cluster region labels tags build rechner",
);
const SEVERITIES: [&str; 4] = ["severity", "criticality", "priority", "level"];

/// The evidence of one field about the status.
#[derive(Clone, Debug)]
struct Evidence {
    status: AlertStatus,
    pointer: String,
    word: String,
    rank: Rank,
    /// A word such as `CRITICAL`, which may be the severity of the alert that ends.
    is_severity: bool,
    /// The field names an event, not a state.
    is_event: bool,
}

/// Judges the fields of a body. `now` is the time at which the message arrived; without it no time is an end.
pub(super) fn judge(
    facts: &[Fact<'_>],
    title: Option<&str>,
    now: Option<DateTime<Utc>>,
) -> Verdict<AlertStatus> {
    let facts: Vec<&Fact<'_>> = facts
        .iter()
        .filter(|fact| fact.rank < Rank::Beside)
        .collect();
    let all: Vec<Evidence> = facts
        .iter()
        .filter_map(|fact| evidence(fact, &facts))
        .collect();
    for rank in [Rank::Own, Rank::Inner, Rank::Original] {
        let said: Vec<&Evidence> = all
            .iter()
            .filter(|evidence| evidence.rank == rank)
            .collect();
        if let Some(judged) = decide(&said) {
            return judged;
        }
        if let Some(judged) = by_time(&facts, rank, now) {
            return judged;
        }
    }
    let by_severity = facts.iter().find_map(|fact| of_severity(fact));
    let other = by_severity
        .or_else(|| of_reason(&facts))
        .or_else(|| of_title(title?));
    if let Some(evidence) = other.or_else(|| of_test(&facts, title)) {
        return judged(&evidence, Vec::new());
    }
    let unknown = facts
        .iter()
        .find(|fact| is_state(fact) && fact.text().is_some());
    let unknown = unknown
        .and_then(|fact| fact.text())
        .map(|word| Note::UnknownStatus(word.to_owned()));
    Verdict {
        notes: unknown.into_iter().collect(),
        ..Verdict::default()
    }
}

fn judged(evidence: &Evidence, notes: Vec<Note>) -> Verdict<AlertStatus> {
    let Evidence {
        status,
        pointer,
        word,
        ..
    } = evidence;
    Verdict {
        value: *status,
        why: Some(Traced::word("status", pointer, word, status.as_str())),
        notes,
    }
}

/// The status that follows from all fields. A person who has taken the alert does not change its state. If there is an
/// end, a severity is that of the alert that ended; otherwise the alert fires when a field says so.
fn decide(said: &[&Evidence]) -> Option<Verdict<AlertStatus>> {
    let first = |status: AlertStatus| said.iter().find(|evidence| evidence.status == status);
    let resolved = first(AlertStatus::Resolved);
    let acknowledged = first(AlertStatus::Acknowledged);

    let ends = said
        .iter()
        .any(|evidence| evidence.status == AlertStatus::Resolved && evidence.is_event);
    let fires = said.iter().find(|evidence: &&&Evidence| {
        evidence.status == AlertStatus::Firing && !(evidence.is_severity && ends)
    });
    match (resolved, acknowledged, fires) {
        (Some(resolved), _, Some(fires)) => Some(judged(fires, differ(fires, resolved))),
        (Some(resolved), _, None) => Some(judged(resolved, Vec::new())),
        (None, Some(acknowledged), _) => Some(judged(acknowledged, Vec::new())),
        (None, None, _) => {
            let other = fires.or_else(|| first(AlertStatus::Test))?;
            Some(judged(other, Vec::new()))
        }
    }
}

fn differ(one: &Evidence, other: &Evidence) -> Vec<Note> {
    let says = |each: &Evidence| format!("{} is {:?}", each.pointer, each.word);
    vec![Note::Differ(format!("{}, and {}", says(one), says(other)))]
}

fn evidence(fact: &Fact<'_>, all: &[&Fact<'_>]) -> Option<Evidence> {
    let is_other = is_of_another(fact) && !is_exit(&fact.word());
    if is_other || names_other_state(fact, all) {
        return None;
    }
    let status = of_word(fact)
        .or_else(|| of_flag(fact))
        .or_else(|| of_number(fact))?;
    let word = fact.written();
    let is_severity = is_severity_word(&word);
    let is_event = !is_state(fact);

    Some(Evidence {
        status,
        pointer: fact.pointer.clone(),
        word,
        rank: fact.rank,
        is_severity,
        is_event,
    })
}

/// Whether a field is about another state than the one of the alert now.
fn is_of_another(fact: &Fact<'_>) -> bool {
    let in_another = matches!(fact.owner.as_slice(), [only] if NOT_NOW.contains(only));
    in_another || fact.key.iter().any(|piece| NOT_NOW.contains(piece))
}

/// The state of the host of a service is not that of the alert.
fn names_other_state(fact: &Fact<'_>, all: &[&Fact<'_>]) -> bool {
    let has =
        |fact: &Fact<'_>, piece: &str| fact.key.iter().chain(&fact.owner).any(|each| each == piece);
    is_state(fact)
        && has(fact, "host")
        && all
            .iter()
            .any(|other| is_state(other) && has(other, "service") && other.text().is_some())
}

fn of_word(fact: &Fact<'_>) -> Option<AlertStatus> {
    let word = fact.text()?;
    if is_state(fact) {
        return status_of(word);
    }
    if is_ambiguous(fact) && !is_message(fact) {
        return ended_of(word);
    }
    if !is_message(fact) {
        return None;
    }
    let is_well = matches!(pieces(word).as_slice(), [only] if WELL.contains(&only.as_str()));
    // `alert_type: alert` is a kind of message.
    let is_kind =
        ["alert", "alarm", "error", "warning", "event"].contains(&word.to_lowercase().as_str());
    match status_of(word)? {
        AlertStatus::Firing if is_kind => None,
        // A check may be one of tests.
        AlertStatus::Test
            if !matches!(
                fact.key.first().map(String::as_str),
                Some("notification" | "message" | "webhook")
            ) =>
        {
            None
        }
        AlertStatus::Resolved if is_well => Some(AlertStatus::Resolved),
        AlertStatus::Resolved | AlertStatus::Acknowledged => ended_of(word),
        other @ (AlertStatus::Firing | AlertStatus::Test | AlertStatus::Ignored) => Some(other),
    }
}

/// Whether a field has the word of a state.
fn is_state(fact: &Fact<'_>) -> bool {
    let of = |pieces: &[String]| pieces.last().is_some_and(|last| is_state_word(last));
    let is_named = matches!(fact.key.as_slice(), [.., before, last] if is_state_word(before) && last == "name");
    let is_friendly = fact.word() == "alerttypefriendlyname" || fact.word() == "clear";
    of(&fact.key)
        || is_named
        || is_friendly
        || of(&fact.owner) && IN_STATE.contains(&fact.word().as_str())
}

fn is_state_word(piece: &str) -> bool {
    STATES.contains(piece)
}

/// Whether a field says what a message is: `notification_type`, and `type` in `notification`.
fn is_message(fact: &Fact<'_>) -> bool {
    let is_end = MESSAGE_ENDS.contains(&fact.last());
    let in_one = matches!(
        fact.owner.last().map(String::as_str),
        Some("notification" | "message")
    );
    is_end
        && (fact.key.len() > 1 && is_message_key(fact.key.first())
            || fact.word() == "type" && in_one)
}

fn is_message_key(piece: Option<&String>) -> bool {
    piece.is_some_and(|piece| MESSAGES.contains(piece.as_str()))
}

/// Whether a field may say something else, as `type`. In an object `event` that is its type, name or action.
fn is_ambiguous(fact: &Fact<'_>) -> bool {
    let word = fact.word();
    let in_event = fact
        .owner
        .last()
        .is_some_and(|owner| owner == "event" || owner == "action");
    AMBIGUOUS.contains(&word) || in_event && word == "name" || word == "eventname"
}

fn of_flag(fact: &Fact<'_>) -> Option<AlertStatus> {
    let flag = fact.flag()?;
    let word = fact.word();
    if ["acknowledged", "isacknowledged", "acked", "isacked"].contains(&word.as_str()) {
        return flag.then_some(AlertStatus::Acknowledged);
    }
    // `resolved: false` says that it fires, and so does `firing: true`.
    let over = if END_FLAGS.contains(&word) {
        flag
    } else {
        PROBLEM_FLAGS.contains(&word).then_some(!flag)?
    };
    Some(if over {
        AlertStatus::Resolved
    } else {
        AlertStatus::Firing
    })
}

/// Results of checks as Nagios has them, of processes, and of Zabbix.
fn of_number(fact: &Fact<'_>) -> Option<AlertStatus> {
    let number = fact.number()?;
    let word = fact.word();
    let mut siblings = fact
        .object
        .keys()
        .map(|key| key.to_lowercase().replace(['_', '-'], ""));
    let is_result = is_exit(&word)
        || matches!(
            word.as_str(),
            "status" | "state" | "checkstate" | "currentstate"
        ) && siblings.any(|key| OF_CHECK.contains(key.as_str()));
    let is_value = matches!(word.as_str(), "eventvalue" | "triggervalue");
    if !(is_result || is_value) || !(0.0..256.0).contains(&number) {
        return None;
    }
    Some(if number == 0.0 {
        AlertStatus::Resolved
    } else {
        AlertStatus::Firing
    })
}

/// Whether a word names the result of a process.
fn is_exit(word: &str) -> bool {
    matches!(word, "exitstatus" | "exitcode" | "returncode")
}

fn by_time(
    facts: &[&Fact<'_>],
    rank: Rank,
    now: Option<DateTime<Utc>>,
) -> Option<Verdict<AlertStatus>> {
    let fact = facts
        .iter()
        .find(|fact| fact.rank == rank && ended_at(fact).is_some_and(|end| Some(end) <= now))?;
    let word = fact.written();
    let because = format!("{} is {word:?}, which is over", fact.pointer);
    let why = Traced::rule("status", AlertStatus::Resolved.as_str(), because);
    let notes = vec![Note::Ended(format!("{} is {word}", fact.pointer))];
    Some(Verdict {
        value: AlertStatus::Resolved,
        why: Some(why),
        notes,
    })
}

/// A severity that is none: `clear`.
fn of_severity(fact: &Fact<'_>) -> Option<Evidence> {
    if !SEVERITIES.contains(&fact.last()) || is_of_another(fact) {
        return None;
    }
    let word = fact.text()?;
    let is_end = severity_of(word).is_none() && status_of(word) == Some(AlertStatus::Resolved);
    is_end.then(|| said(AlertStatus::Resolved, fact.pointer.clone(), word))
}

/// An event of Kubernetes or Flux: `UpgradeSucceeded` without any severity.
fn of_reason(facts: &[&Fact<'_>]) -> Option<Evidence> {
    facts
        .iter()
        .find(|fact: &&&Fact<'_>| match fact.word().as_str() {
            "severity" => fact.text().and_then(severity_of) == Some(Severity::Low),
            "type" => fact.text() == Some("Normal"),
            _ => false,
        })?;
    let reason = facts.iter().find(|fact| {
        fact.word() == "reason" && fact.text().is_some_and(|text| !text.contains(' '))
    })?;
    let word = reason.text()?;
    let pieces = pieces(word);
    let is_good = pieces.last().is_some_and(|last| {
        ["succeeded", "ready", "resolved", "recovered", "healthy"].contains(&last.as_str())
    });
    let is_denied = pieces
        .iter()
        .any(|piece| ["not", "un", "never", "no"].contains(&piece.as_str()));
    (is_good && !is_denied).then(|| said(AlertStatus::Resolved, reason.pointer.clone(), word))
}

/// The state before a title: `[RESOLVED] disk full`, `RECOVERY: disk full`.
fn of_title(title: &str) -> Option<Evidence> {
    let mark = mark(title)?;
    let status = status_of(mark.word).filter(|status| *status != AlertStatus::Test)?;
    Some(said(
        status,
        "the beginning of the title".to_owned(),
        mark.word,
    ))
}

/// A message that a person has sent to try the way: its kind is `test` or `ping`, or its title is only that of a test.
/// Beside a state, a severity or the name of a thing it is an alert: of a check by `ping`, or about a test.
fn of_test(facts: &[&Fact<'_>], title: Option<&str>) -> Option<Evidence> {
    if facts
        .iter()
        .any(|fact| is_state(fact) || SEVERITIES.contains(&fact.last()) || names_thing(fact))
    {
        return None;
    }
    let kind = facts
        .iter()
        .filter(|fact: &&&Fact<'_>| is_message(fact) || is_ambiguous(fact) || fact.word() == "eventname")
        .find(|fact| fact.text().is_some_and(|word: &str| matches!(pieces(word).as_slice(), [only] if only == "test" || only == "ping")));
    let of_kind = kind.map(|fact| {
        said(
            AlertStatus::Test,
            fact.pointer.clone(),
            fact.text().unwrap_or_default(),
        )
    });
    of_kind.or_else(|| {
        title
            .filter(|title| is_test_title(title))
            .map(|title| said(AlertStatus::Test, "title".to_owned(), title))
    })
}

fn names_thing(fact: &Fact<'_>) -> bool {
    fact.key
        .iter()
        .chain(&fact.owner)
        .any(|piece| THINGS.contains(piece))
}

/// `Test notification`, `Test message from Grafana`; not `Test message queue is full`.
fn is_test_title(title: &str) -> bool {
    let lower = without_signs(title).to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_test = words
        .next()
        .is_some_and(|word| word == "test" || word == "testing");
    let what = WordList::new("notification message alert event webhook alarm payload");
    let is_message = words.next().is_some_and(|word| what.contains(word));
    is_test
        && is_message
        && words
            .next()
            .is_none_or(|word| ["from", "by", "sent", "please"].contains(&word))
}

fn said(status: AlertStatus, pointer: String, word: &str) -> Evidence {
    Evidence {
        status,
        pointer,
        word: word.to_owned(),
        rank: Rank::Own,
        is_severity: false,
        is_event: false,
    }
}
