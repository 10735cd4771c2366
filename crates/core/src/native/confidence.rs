//! A provider's confidence that a source supports words.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A confidence from 0 to 1, as the provider has it. Two of the same bits are equal.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confidence(f64);

impl Confidence {
    /// The score with the digits that the provider wrote, at most nine after the point. What is no number becomes 0,
    /// because JSON has no form of it.
    pub fn from_score(score: f32) -> Self {
        let score = score.clamp(0.0, 1.0);
        let shortest = if score < 0.001 {
            format!("{score:.9}")
        } else {
            score.to_string()
        };
        let read = shortest.parse::<f64>().ok();
        Self(read.filter(|score| score.is_finite()).unwrap_or_default())
    }
}

impl PartialEq for Confidence {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Confidence {}

impl Hash for Confidence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_score_keeps_the_digits_of_the_provider() {
        assert_eq!(
            serde_json::json!(Confidence::from_score(0.97)).to_string(),
            "0.97"
        );
        assert_eq!(Confidence::from_score(f32::NAN), Confidence::default());
    }

    proptest! {
        #[test]
        fn every_score_comes_back_from_the_journal(score in prop_oneof![any::<f32>(), 0.0_f32..1.0, 0.0_f32..0.001]) {
            let score = Confidence::from_score(score);
            let stored = serde_json::to_string(&score).unwrap();
            prop_assert_eq!(serde_json::from_str::<Confidence>(&stored).unwrap(), score);
        }
    }
}
