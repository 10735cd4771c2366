//! The status of a word of a state or of an event: `RECOVERY`, `ResolvedCritical`, `OK -> CRITICAL`, `Fehler (Down)`.
//!
//! An end needs its word, and nothing beside it that denies it. A word that only says that all is well (`ok`, `up`,
//! `normal`) is an end if nothing else is said. In doubt a word is no end.

use super::pieces::pieces;
use super::{WordList, severity, tongues};
use crate::alert::AlertStatus;

/// Words that mean an end, whatever else is named.
const OVER: WordList = WordList::new("resolved recovered solved recovers unalerted postmortem");
/// The same beside words of alerts only: `port closed` and `recovery mode` are states.
const ENDING: WordList = WordList::new(
    "resolve recover recovery resolution clear close clears cleared closed restored fixed",
);
/// Words before the end of a sentence: `API check #1 has recovered`.
const AUXILIARY: [&str; 6] = ["has", "have", "is", "was", "been", "now"];
/// Words that mean an end only as the whole text.
const WHOLE: [&str; 12] = [
    "canceled",
    "cancelled",
    "ended",
    "end",
    "finished",
    "done",
    "dismissed",
    "stopped alerting",
    "all clear",
    "no alert",
    "no problem",
    "no longer alerting",
];
/// All is well: an end if nothing else is said.
const WELL: WordList = WordList::new(
    "ok okay up normal healthy good green passing passed pass success successful successfully succeeded operational \
     available online inactive deactivated nominal reachable responding alive completed complete running working",
);
/// Words of these that count only together with another word of well.
const ONLY_BESIDE: [&str; 2] = ["running", "working"];
/// Words beside a word of well or an end that say nothing.
const FILLING: WordList = WordList::new(
    "is are was has have been be back to now the a it its in and by alert alerts alarm alarms notification incident \
     incidents problem event message trigger type issue policy group service services host hosts state status check \
     checks monitor all systems system level server site endpoint manually automatically item ticket case auto user \
     http webhook metric rule",
);
/// Words that negate an end.
const NOTS: WordList = WordList::new(
    "not no non never still cannot can couldn unable un unresolved pending partial partially fail failed fails \
     failing waiting awaiting until before without nearly almost reopened reopen again needs required requires \
     attempt attempting trying stuck but removed expected",
);
const PROBLEMS: WordList = WordList::new(
    "firing alerting alarm alert alerted triggered trigger retriggered open opened opens reopened active activated \
     problem down failed fail fails failing failure error critical crit warning warn new created create started \
     raised unhealthy degraded outage unavailable unreachable offline broken missing unknown breached violated \
     violating escalated timeout lost red yellow fired investigating",
);
const PLANNED: WordList =
    WordList::new("downtime maintenance downtimestart downtimestarted downtimescheduled");
const BY_A_PERSON: WordList = WordList::new(
    "acknowledged acknowledge acknowledgement acknowledgment ack acked muted silenced suppressed snoozed quittiert \
     bestätigt reconocido acquitté",
);
/// Words of an event about flapping or a planned time after which another field has to say how it is.
const ELSEWHERE: WordList = WordList::new(
    "flappingstop flappingend flappingdisabled downtimeend downtimeremoved downtimecancelled downtimecanceled custom \
     unmuted",
);

/// The status of a word that monitoring systems use; `None` for an unknown word.
pub fn status_of(word: &str) -> Option<AlertStatus> {
    let changed = after_change(word);
    let word = changed.unwrap_or(word);
    let pieces = pieces(word);
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    if matches!(
        pieces.as_slice(),
        ["test" | "testing"] | ["test", "notification" | "alert" | "message"]
    ) {
        return Some(AlertStatus::Test);
    }
    judge(&pieces).or_else(|| written(word))
}

/// The status of a word in a field that may say something else, as `type`: only an end, or what a person has done, in
/// words that have no other meaning. `normal`, `up` or `closed circuit` are none of them.
pub fn ended_of(word: &str) -> Option<AlertStatus> {
    if after_change(word).is_some() {
        return status_of(word);
    }
    let pieces = pieces(word);
    let is_known = |piece: &str| {
        OVER.contains(piece)
            || ENDING.contains(piece)
            || BY_A_PERSON.contains(piece)
            || PLANNED.contains(piece)
    };
    let is_alone = pieces
        .iter()
        .all(|piece| is_known(piece) || is_beside(piece));
    let is_sentence = match pieces.as_slice() {
        [.., before, last] => AUXILIARY.contains(&before.as_str()) && OVER.contains(last),
        _ => false,
    };
    let has_own = pieces.iter().any(|piece| is_known(piece));
    if !has_own || !is_alone && !is_sentence {
        return None;
    }
    status_of(word)
        .filter(|status| matches!(status, AlertStatus::Resolved | AlertStatus::Acknowledged))
}

/// Whether a piece says nothing beside an end: a word of alerts, a number or a severity.
fn is_beside(piece: &str) -> bool {
    let is_severity =
        severity::is_plain(piece) && !["error", "err", "fatal", "panic"].contains(&piece);
    FILLING.contains(piece) || WELL.contains(piece) || is_measure(piece) || is_severity
}

/// The part after the arrow of a change: `CRITICAL` of `OK -> CRITICAL`, and of `from OK to CRITICAL`.
fn after_change(word: &str) -> Option<&str> {
    let arrow = ["->", "=>", "→", "➜", "➔"]
        .iter()
        .find_map(|arrow| word.rsplit_once(arrow));
    let (_, after) = arrow.or_else(|| {
        word.to_lowercase()
            .contains("from ")
            .then(|| word.rsplit_once(" to "))
            .flatten()
    })?;
    Some(after).filter(|after| !after.trim().is_empty())
}

fn judge(pieces: &[&str]) -> Option<AlertStatus> {
    let any = |words: &WordList| pieces.iter().any(|piece| words.contains(piece));
    let has = |words: &'static str| any(&WordList::new(words));
    if any(&ELSEWHERE) {
        return None;
    }
    if has("flappingstart unacknowledged unacknowledge unsnoozed unsuppressed") {
        return Some(AlertStatus::Firing);
    }
    if any(&PLANNED) {
        let is_over = has("end ended stop stopped over removed cancelled canceled expired");
        return (!is_over && !any(&NOTS)).then_some(AlertStatus::Acknowledged);
    }
    let denied = any(&NOTS) || has("nicht не nie kein keine pas");
    if WHOLE.contains(&pieces.join(" ").as_str()) || !denied && is_over(pieces) {
        return Some(AlertStatus::Resolved);
    }
    if any(&BY_A_PERSON) {
        let is_over = has("timeout expired ended end removed cancelled canceled deleted");
        return (!denied && !is_over).then_some(AlertStatus::Acknowledged);
    }
    let has_problem = any(&PROBLEMS) || any(&tongues::PROBLEMS);
    let has_no_data = has("no missing") && has("data") || has("nodata");
    if has_problem || has_no_data || denied && any(&WELL) {
        return Some(AlertStatus::Firing);
    }
    None
}

/// Whether an end is said: over, or well and nothing else.
fn is_over(pieces: &[&str]) -> bool {
    let is_well = |piece: &&str| WELL.contains(piece) || tongues::GOOD.contains(piece);
    if pieces
        .iter()
        .any(|piece| OVER.contains(piece) || tongues::ENDS.contains(piece))
    {
        return true;
    }
    // `POLICY_CLOSE_CRITICAL` names what is over, and `recovery mode` is a state.
    if pieces.iter().any(|piece| ENDING.contains(piece)) {
        return pieces
            .iter()
            .all(|piece| ENDING.contains(piece) || is_beside(piece));
    }
    pieces
        .iter()
        .any(|piece: &&str| is_well(piece) && !ONLY_BESIDE.contains(piece))
        && pieces
            .iter()
            .all(|piece| is_filling(piece) || is_well(piece))
}

fn is_filling(piece: &str) -> bool {
    FILLING.contains(piece) || is_measure(piece)
}

/// `200`, `12ms`.
fn is_measure(piece: &str) -> bool {
    let unit = piece.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < piece.len() && unit.chars().count() <= 3
}

/// The status of a text in a language without spaces.
fn written(text: &str) -> Option<AlertStatus> {
    let has = |words: &'static str| WordList::new(words).is_in(text);
    if tongues::WRITTEN_ENDS.is_in(text) && !tongues::WRITTEN_NOTS.is_in(text) {
        return Some(AlertStatus::Resolved);
    }
    if has("確認済 已确认 已確認 확인됨") {
        return Some(AlertStatus::Acknowledged);
    }
    if tongues::WRITTEN_PROBLEMS.is_in(text) || has("🔴 🔥 ❌ 🚨") {
        return Some(AlertStatus::Firing);
    }
    has("🟢 ✅").then_some(AlertStatus::Resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_are(expected: Option<AlertStatus>, words: &[&str]) {
        for word in words {
            assert_eq!(status_of(word), expected, "{word}");
        }
    }

    #[test]
    fn an_end_is_understood_in_pieces_and_languages() {
        all_are(
            Some(AlertStatus::Resolved),
            &[
                "OK",
                "incident.resolved",
                "RECOVERY",
                "ALERT_RECOVERY",
                "ALERT_NOTIFICATION_CLEAR",
                "ResolvedCritical",
                "POLICY_CLOSE_CRITICAL",
                "OK (Up)",
                "CRITICAL -> OK",
                "changed from CRITICAL to OK",
                "back to normal",
                "All systems operational",
                "has recovered",
                "manually resolved",
                "alert group resolve",
                "CANCELED",
                "passing",
                "postmortem",
                "Störung behoben",
                "Résolu",
                "resuelto",
                "решено",
                "正常",
                "已恢复",
                "恢复正常",
                "復旧",
                "해결",
                "✅ Up",
                "HTTP 200 OK",
                "problem closed",
                "resolved_item",
                "Recovered: critical",
            ],
        );
    }

    #[test]
    fn a_word_that_denies_an_end_is_none() {
        let ended = [
            "not resolved",
            "unresolved",
            "Fehler (Down)",
            "failed to resolve",
            "OK -> CRITICAL",
            "recovery failed",
            "in recovery mode",
            "scaling up",
            "up but degraded",
            "not ok",
            "partially recovered",
            "未恢复",
            "未解决",
            "不正常",
            "nicht behoben",
            "очень",
            "close to the limit",
            "reopened",
            "resolve error",
            "running",
            "clearing",
            "ok?! disk lost",
            "DEGRADED",
            "Non-recoverable",
            "expired",
            "no recovery",
            "port closed",
            "connection closed",
            "cache cleared: disk full",
            "waiting for recovery",
            "异常",
            "恢复失败",
            "resolved again failed",
            "unclear",
            "",
        ];
        for word in ended {
            assert_ne!(status_of(word), Some(AlertStatus::Resolved), "{word}");
            assert_ne!(ended_of(word), Some(AlertStatus::Resolved), "{word}");
        }
    }

    #[test]
    fn other_states_are_understood() {
        all_are(
            Some(AlertStatus::Firing),
            &[
                "ALARM",
                "Fehler (Down)",
                "🔴 Down",
                "OK -> CRITICAL",
                "ALERT_FAILURE",
                "alert group created",
                "FLAPPINGSTART",
                "no data",
                "UNKNOWN",
                "not ok",
                "Störung",
                "告警",
                "unacknowledged",
                "incident.opened",
                "re-triggered",
                "partial_outage",
            ],
        );
        all_are(
            Some(AlertStatus::Acknowledged),
            &[
                "Acknowledged",
                "ACKNOWLEDGEMENT",
                "DOWNTIMESTART",
                "in maintenance",
                "silenced",
                "已确认",
            ],
        );
        all_are(
            Some(AlertStatus::Test),
            &["test", "Testing", "TEST_NOTIFICATION"],
        );
        all_are(
            None,
            &[
                "purple",
                "",
                "ping",
                "updated",
                "FLAPPINGSTOP",
                "DOWNTIMEEND",
                "acknowledgement expired",
            ],
        );
    }

    #[test]
    fn a_field_with_another_meaning_needs_a_word_that_has_no_other() {
        for (word, expected) in [
            ("Normal", None),
            ("up", None),
            ("ok", None),
            ("test", None),
            ("ping", None),
            ("problem", None),
            ("recovery", Some(AlertStatus::Resolved)),
            ("incident.resolved", Some(AlertStatus::Resolved)),
            ("OK -> CRITICAL", Some(AlertStatus::Firing)),
            ("CRITICAL -> OK", Some(AlertStatus::Resolved)),
            ("acknowledge", Some(AlertStatus::Acknowledged)),
        ] {
            assert_eq!(ended_of(word), expected, "{word}");
        }
    }
}
