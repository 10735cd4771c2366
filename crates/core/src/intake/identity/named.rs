//! The kind of object that a value names, by its key and the object around it.

use super::form;
use super::walk::{Class, ObjectScope};
use super::words::{
    AREAS, BESIDE, CONDITION_WORDS, CONDITIONS, ID_ENDS, INCIDENTS, KEYS, KINDS, MESSAGES,
    NAME_ENDS, RESOURCES, SOFT_KEYS, TEXTS, TITLES, VOLATILE, VOLATILE_ENDS,
};
use crate::sources::WordList;

/// The key of a value.
#[derive(Debug)]
pub(super) struct Named<'k> {
    pub(super) word: String,
    pub(super) key: &'k [&'k str],
    pub(super) place: &'k ObjectScope,
    pub(super) is_number: bool,
}

impl Named<'_> {
    pub(super) fn last(&self) -> &str {
        self.key.last().copied().unwrap_or_default()
    }

    fn has(&self, words: &WordList) -> bool {
        self.key.iter().any(|piece| words.contains(piece))
    }

    /// Whether the key says nothing without its object: `id`, `name`.
    fn is_generic(&self) -> bool {
        self.key.len() == 1
            && (is_name_or_id(&self.word)
                || ["kind", "key", "type", "url", "target"].contains(&self.word.as_str()))
            || NAME_ENDS.contains(&self.word)
    }

    /// The key with its object: `monitorid` for `monitor_id` and for `id` in `monitor`.
    pub(super) fn full_word(&self) -> String {
        if self.is_generic() {
            format!("{}{}", self.place.noun, self.word)
        } else {
            self.word.clone()
        }
    }

    /// The object that an id or a name belongs to: `monitor` of `monitor_id`.
    pub(super) fn stem(&self) -> Option<String> {
        if self.is_generic() {
            return Some(self.place.noun.clone()).filter(|noun| !noun.is_empty());
        }
        let rest = self
            .key
            .iter()
            .filter(|piece| !["id", "name", "display", "title", "uid", "friendly"].contains(piece));
        Some(rest.copied().collect::<String>())
            .filter(|stem| !stem.is_empty() && *stem != self.word)
    }

    /// Of a label only what says how bad it is does not count.
    pub(super) fn of_label(&self) -> Option<Class> {
        let how = WordList::new(
            "severity priority level urgency status state value version time timestamp",
        );
        if how.contains(self.last()) {
            return None;
        }
        let is_condition = CONDITION_WORDS.contains(self.word.as_str());
        Some(if is_condition {
            Class::Condition
        } else {
            Class::Label
        })
    }

    pub(super) fn class(&self, text: &str) -> Option<Class> {
        let word = self.word.as_str();
        if KEYS.contains(word) {
            return Some(Class::Key);
        }
        if SOFT_KEYS.contains(word) {
            return Some(Class::Soft);
        }
        if CONDITION_WORDS.contains(word) || self.is_watched_service() {
            return Some(Class::Condition);
        }
        if self.has(&BESIDE) || KINDS.contains(word) || self.is_time() {
            return None;
        }
        if let Some(class) = self.of_id() {
            return class;
        }
        if word == "url"
            && ["monitor", "check", "target", "site", "endpoint"]
                .contains(&self.place.noun.as_str())
        {
            return Some(Class::Resource);
        }
        if self.is_volatile() || self.is_number && !self.is_place_number() || form::is_url(text) {
            return None;
        }
        self.of_name(text).or_else(|| self.of_text(text))
    }

    /// `service` beside a host is the check of Nagios and its kind; the host is found with it.
    fn is_watched_service(&self) -> bool {
        matches!(self.word.as_str(), "service" | "servicename")
            && is_noun_of_alerts(&self.place.noun)
    }

    fn is_volatile(&self) -> bool {
        let names_thing = RESOURCES.contains(self.last()) || CONDITIONS.contains(self.last());
        VOLATILE_ENDS.contains(self.last()) || self.has(&VOLATILE) && !names_thing
    }

    fn is_time(&self) -> bool {
        self.last() == "at" || self.last() == "on" && self.key.len() > 1
    }

    /// `port: 8080` names something.
    fn is_place_number(&self) -> bool {
        const NUMBERED: WordList = WordList::new(
            "port shard partition index slot unit vlan lun instance node host rule check monitor sensor probe device \
             machine vm container policy detector",
        );
        NUMBERED.contains(self.last())
    }

    /// The class of an id; `Some(None)` for one that is new in each message.
    fn of_id(&self) -> Option<Option<Class>> {
        if !ID_ENDS.contains(self.last()) && self.word != "key" {
            return None;
        }
        let own = if self.key.len() > 1 {
            self.key.iter().rev().nth(1).copied()
        } else {
            None
        };
        let stem = own.unwrap_or(self.place.noun.as_str());
        let is_group =
            self.key.len() > 2 && self.key.starts_with(&["alert", "group"]) || stem == "alertgroup";
        Some(match stem {
            _ if is_group => Some(Class::Incident),
            "" => None,
            "alert" | "alarm" => Some(Class::Alert),
            stem if INCIDENTS.contains(stem) => Some(Class::Incident),
            stem if CONDITIONS.contains(stem) => Some(Class::ConditionId),
            stem if MESSAGES.contains(stem) || BESIDE.contains(stem) => None,
            stem if AREAS.contains(stem) => Some(Class::Area),
            stem if RESOURCES.contains(stem) => Some(Class::Resource),
            _ => Some(Class::Other),
        })
    }

    fn of_name(&self, text: &str) -> Option<Class> {
        let is_name = NAME_ENDS.contains(self.last()) || self.word == "kind";
        let noun = if is_name && self.is_generic() {
            self.place.noun.as_str()
        } else {
            ""
        };
        let before = if is_name && self.key.len() > 1 {
            self.key.iter().rev().nth(1).copied()
        } else {
            None
        };
        let owned = Some(noun).filter(|noun| !noun.is_empty());
        let noun = before.or(owned).unwrap_or_else(|| self.last());
        if form::is_sentence(text) {
            return None;
        }
        if noun == "display"
            && self
                .key
                .first()
                .is_some_and(|first| RESOURCES.contains(first))
        {
            return Some(Class::Resource);
        }
        match noun {
            "event" => Some(if text.contains(' ') && self.word != "event" {
                Class::Title
            } else {
                Class::Event
            }),
            "reason" => (!text.contains(' ')).then_some(Class::Reason),
            "incident" | "issue" | "alertgroup" | "problem" => Some(Class::Title),
            noun if CONDITIONS.contains(noun) => Some(Class::Condition),
            noun if RESOURCES.contains(noun) => Some(Class::Resource),
            noun if AREAS.contains(noun) => Some(Class::Area),
            "name" => Some(Class::Name),
            _ => None,
        }
    }

    fn of_text(&self, text: &str) -> Option<Class> {
        if TITLES.contains(self.last()) {
            return Some(Class::Title);
        }
        if TEXTS.contains(self.last()) || self.word == "reason" || form::is_random(text) {
            return (!form::is_random(text)).then_some(Class::Text);
        }
        Some(Class::Other)
    }
}

fn is_name_or_id(word: &str) -> bool {
    NAME_ENDS.contains(word) || ID_ENDS.contains(word) || TITLES.contains(word)
}

fn is_noun_of_alerts(noun: &str) -> bool {
    noun.is_empty() || CONDITIONS.contains(noun) || INCIDENTS.contains(noun)
}
