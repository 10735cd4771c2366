//! Decides which traces are recorded.

use tarsy_core::trace_context::{TraceContext, TraceId};

/// The values of `OTEL_TRACES_SAMPLER`, in the order of its documentation.
pub(super) const WORDS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// The settings by which a process decides whether a new trace is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampler {
    /// The part of the traces that are recorded: 0 to 1.
    ratio: f64,
    /// The decision of the parent counts, if there is one.
    is_parent_based: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            ratio: 1.0,
            is_parent_based: true,
        }
    }
}

impl Sampler {
    /// The sampler with this word; `None` if the word is not one of [`WORDS`]. Only two of them use `ratio`.
    pub(super) fn new(word: &str, ratio: f64) -> Option<Self> {
        let (is_parent_based, own) = word
            .strip_prefix("parentbased_")
            .map_or((false, word), |own| (true, own));
        let ratio = match own {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio,
            _ => return None,
        };
        Some(Self {
            ratio,
            is_parent_based,
        })
    }

    /// Whether a span is recorded whose parent is in another process, or that begins a trace.
    pub(super) fn samples(self, trace_id: TraceId, parent: Option<TraceContext>) -> bool {
        match parent {
            Some(parent) if self.is_parent_based => parent.sampled,
            Some(_) | None => fraction(trace_id) < self.ratio,
        }
    }
}

/// The last four bytes of a trace id as a number from 0 to 1. They are random in each id (W3C Trace Context, section
/// 3.2.2.3). In the id of a session, a UUID of version 7, the bytes before them may count.
fn fraction(trace_id: TraceId) -> f64 {
    let number = trace_id
        .bytes()
        .iter()
        .skip(12)
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use tarsy_core::ids::SessionId;
    use tarsy_core::trace_context::SpanId;

    fn parent(trace_id: TraceId) -> TraceContext {
        TraceContext {
            trace_id,
            span_id: SpanId::new([1; 8]).unwrap(),
            sampled: true,
        }
    }

    #[test]
    fn the_parent_decides_only_for_samplers_that_are_based_on_it() {
        let id = TraceId::new([7; 16]).unwrap();
        for word in WORDS {
            let sampler = Sampler::new(word, 0.0).unwrap();
            let unsampled = TraceContext {
                sampled: false,
                ..parent(id)
            };
            let asked =
                [None, Some(parent(id)), Some(unsampled)].map(|parent| sampler.samples(id, parent));
            let expected = match word {
                "always_on" => [true; 3],
                "always_off" | "traceidratio" => [false; 3],
                "parentbased_always_on" => [true, true, false],
                _ => [false, true, false],
            };
            assert_eq!(asked, expected, "{word}");
        }
        assert_eq!(Sampler::new("jaeger_remote", 1.0), None);
        assert!(Sampler::default().samples(id, None));
    }

    #[test]
    fn a_ratio_holds_for_traces_with_the_ids_of_sessions() {
        let sampler = Sampler::new("traceidratio", 0.25).unwrap();
        let sessions = (0..4000).map(|_| TraceId::from(SessionId(Uuid::now_v7())));
        let sampled = sessions.filter(|id| sampler.samples(*id, None)).count();
        assert!((800..1200).contains(&sampled), "{sampled} of 4000");
    }
}
