//! The capabilities of each family of Gemini models: the only place that decides by the name of a model.
//!
//! Source: the pages on thinking and on combining tools of Google's documentation (2026-11).

use crate::service::provider::ProviderError;

/// A family of models.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    prefix: &'static str,
    /// Signatures are valid within one generation.
    generation: &'static str,
    pub(super) thinking: Thinking,
    /// Whether native tools and functions can be offered in one request.
    pub(super) combines_tools: bool,
    /// Whether a function call of the current turn without a signature is refused.
    pub(super) needs_signatures: bool,
}

/// The parameter with which a family is asked to think. A request must never have a budget and a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinking {
    /// The family does not think, or is not known.
    Unsupported,
    /// The family decides how long it thinks; only the summary of its thoughts is asked for.
    Unspecified,
    /// Tokens: the smallest and the greatest number, which is also the default.
    Budget { min: i32, max: i32 },
    /// The levels from the lowest; the last one is the default.
    Level(&'static [&'static str]),
}

const LEVELS: Thinking = Thinking::Level(&["LOW", "MEDIUM", "HIGH"]);
const LEVELS_WITH_MINIMAL: Thinking = Thinking::Level(&["MINIMAL", "LOW", "MEDIUM", "HIGH"]);

const fn generation_2(
    prefix: &'static str,
    generation: &'static str,
    thinking: Thinking,
) -> Family {
    Family {
        prefix,
        generation,
        thinking,
        combines_tools: false,
        needs_signatures: false,
    }
}

const fn generation_3(
    prefix: &'static str,
    generation: &'static str,
    thinking: Thinking,
) -> Family {
    Family {
        combines_tools: true,
        needs_signatures: true,
        ..generation_2(prefix, generation, thinking)
    }
}

/// The first family whose prefix fits.
const FAMILIES: [Family; 10] = [
    generation_2("gemini-1", "1", Thinking::Unsupported),
    generation_2("gemini-2.0", "2.0", Thinking::Unsupported),
    generation_2(
        "gemini-2.5-pro",
        "2.5",
        Thinking::Budget {
            min: 128,
            max: 32_768,
        },
    ),
    generation_2("gemini-2.5-flash-image", "2.5", Thinking::Unsupported),
    generation_2(
        "gemini-2.5-flash",
        "2.5",
        Thinking::Budget {
            min: 0,
            max: 24_576,
        },
    ),
    generation_3("gemini-3-flash", "3", LEVELS_WITH_MINIMAL),
    generation_3("gemini-3", "3", LEVELS),
    generation_3("gemini-4", "4", LEVELS),
    generation_3("gemini-flash", "latest", Thinking::Unspecified),
    generation_3("gemini-pro", "latest", Thinking::Unspecified),
];
const UNKNOWN: Family = generation_2("", "", Thinking::Unsupported);

/// A valid name of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model<'a> {
    /// The name in the address, for example `gemini-3-flash-preview`.
    pub(super) name: &'a str,
    pub(super) family: &'static Family,
}

impl<'a> Model<'a> {
    /// # Errors
    /// `invalid_request` when the name is empty or has characters that an address cannot have.
    pub(super) fn parse(name: &'a str) -> Result<Self, ProviderError> {
        let name = name.strip_prefix("models/").unwrap_or(name);
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        if name.is_empty() || name.starts_with('.') || !is_plain {
            return Err(ProviderError::invalid_request(format!(
                "'{name}' is no name of a model"
            )));
        }
        let family = FAMILIES
            .iter()
            .find(|family| name.starts_with(family.prefix))
            .unwrap_or(&UNKNOWN);
        Ok(Self { name, family })
    }

    /// Models that draw have no functions, and of the native tools only the search.
    pub(super) fn is_image_model(self) -> bool {
        self.name.contains("image")
    }

    /// Whether signatures that the model `other` wrote are valid for this one.
    pub(super) fn accepts_signatures_of(self, other: &str) -> bool {
        let generation = self.family.generation;
        Model::parse(other).is_ok_and(|other| {
            let is_same_generation = generation == other.family.generation;
            (is_same_generation && !generation.is_empty()) || self.name == other.name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_of_a_model_is_found_by_its_name() {
        let pro = Thinking::Budget {
            min: 128,
            max: 32_768,
        };
        let flash = Thinking::Budget {
            min: 0,
            max: 24_576,
        };
        for (name, thinking, combines) in [
            ("gemini-2.5-pro", pro, false),
            ("models/gemini-2.5-flash-lite", flash, false),
            ("gemini-2.5-flash-image", Thinking::Unsupported, false),
            ("gemini-3-flash-preview", LEVELS_WITH_MINIMAL, true),
            ("gemini-3.1-pro-preview", LEVELS, true),
            ("gemini-4-argon", LEVELS, true),
            ("gemini-pro-latest", Thinking::Unspecified, true),
            ("gemma-3-27b", Thinking::Unsupported, false),
        ] {
            let family = Model::parse(name).unwrap().family;
            assert_eq!(
                (family.thinking, family.combines_tools),
                (thinking, combines),
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_cannot_change_the_address() {
        for name in [
            "", "..", "../x", "a/b", "a?b", "a:b", "a%2fb", "models/", "a b",
        ] {
            assert!(Model::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn signatures_are_valid_within_a_generation() {
        let accepts = |name, other| Model::parse(name).unwrap().accepts_signatures_of(other);
        assert!(
            accepts("gemini-3-flash-preview", "gemini-3.1-pro-preview")
                && accepts("custom-1", "custom-1")
        );
        assert!(
            !accepts("gemini-3-flash-preview", "gemini-2.5-pro")
                && !accepts("custom-1", "custom-2")
        );
        assert!(
            !accepts("gemini-3-flash-preview", "")
                && !accepts("gemini-3-flash-preview", "claude-5")
        );
    }
}
