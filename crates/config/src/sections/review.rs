//! `review`: whether another agent looks at the analysis of a chain before the session ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Words, words};
use crate::declared::texts::ProviderName;
use crate::write::is_default;

/// Conditions for a review of the analyses of a chain, and its provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Written", into = "Written")]
pub struct Review {
    /// The conditions, of which one is enough; empty for no review.
    pub when: Vec<ReviewCondition>,
    /// The name of a provider; by default that of the reviewed agent.
    pub llm_provider: Option<String>,
}

/// A condition for a review.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Deserialize,
    Serialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewCondition {
    /// The analysis is not proven, or does not call itself certain.
    Weak,
    /// The alert is critical.
    Critical,
    Always,
}

tarsy_core::words!(pub ReviewCondition, pub ALL);

impl Words for ReviewCondition {
    fn words() -> Vec<&'static str> {
        Self::ALL.into_iter().map(Self::as_str).collect()
    }
}

/// The conditions without any in the file.
const USUAL: [ReviewCondition; 2] = [ReviewCondition::Weak, ReviewCondition::Critical];

/// Whether there is a review, or its keys.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    Flag(bool),
    Keys(Keys),
}

/// The keys of a review.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct Keys {
    /// The conditions, of which one is enough; weak and critical by default.
    #[schemars(
        schema_with = "conditions",
        length(min = 1),
        extend("x-required" = "a list of weak, critical and always")
    )]
    when: Vec<ReviewCondition>,
    /// The name of a provider, best one of another family of models; by default that of the reviewed agent.
    #[serde(with = "As::<ProviderName>", skip_serializing_if = "is_default")]
    llm_provider: Option<String>,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            when: USUAL.to_vec(),
            llm_provider: None,
        }
    }
}

impl From<Written> for Review {
    fn from(written: Written) -> Self {
        let keys = match written {
            Written::Flag(false) => return Self::default(),
            Written::Flag(true) => Keys::default(),
            Written::Keys(keys) => keys,
        };
        Self {
            when: keys.when,
            llm_provider: keys.llm_provider,
        }
    }
}

impl From<Review> for Written {
    fn from(review: Review) -> Self {
        if review == Review::default() {
            return Self::Flag(false);
        }
        Self::Keys(Keys {
            when: review.when,
            llm_provider: review.llm_provider,
        })
    }
}

impl JsonSchema for Review {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Review".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Written::json_schema(generator)
    }
}

fn conditions(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let word = words::<ReviewCondition>(generator);
    schemars::json_schema!({"type": "array", "items": word})
}
