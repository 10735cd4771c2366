//! The shapes of answers: which of them a conversation gets, and when.

use fastrand::Rng;

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Whole calls, in one of the ways in which servers stream them.
    Calls,
    /// A whole text that ends the investigation.
    Final,
    /// The same as one JSON body.
    PlainBody,
    /// The same without a reason at its end.
    DoneOnly,
    /// The output limit cuts a call off.
    CutCall,
    /// The output limit, after a whole call.
    CutBehindCall,
    /// The output limit cuts a text off.
    CutText,
    /// A filter cuts a text off.
    Filtered,
    /// The stream ends without a word.
    BareEnd,
    /// Reasoning in the text, with a call in it, before a whole text.
    ThinksAloud,
    /// Reasoning that never ends.
    ThinksOn,
    /// A call in the markup of a model.
    CallInText,
    /// A text that only promises.
    Promise,
    /// Nothing that can be seen.
    Invisible,
    /// A piece of a call that no call has begun.
    Stray,
    /// A text, then an error of the stream.
    ErrorInStream,
    /// A text, then nothing more.
    Stall,
    /// A status of the server or of a proxy.
    Refusal,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Final => "final answer",
            Self::PlainBody => "no stream",
            Self::DoneOnly => "no reason",
            Self::CutCall => "cut call",
            Self::CutBehindCall => "cut behind a call",
            Self::CutText => "cut text",
            Self::Filtered => "filtered",
            Self::BareEnd => "bare end",
            Self::ThinksAloud => "thinks aloud",
            Self::ThinksOn => "thinks without end",
            Self::CallInText => "call in the text",
            Self::Promise => "promise",
            Self::Invisible => "invisible",
            Self::Stray => "stray piece",
            Self::ErrorInStream => "error in the stream",
            Self::Stall => "stall",
            Self::Refusal => "refusal",
        }
    }

    /// Whether the same request gets a good answer next time.
    pub(super) fn is_over_soon(self) -> bool {
        match self {
            Self::ErrorInStream | Self::Stall | Self::Refusal | Self::BareEnd => true,
            Self::Calls
            | Self::Final
            | Self::PlainBody
            | Self::DoneOnly
            | Self::CutCall
            | Self::CutBehindCall
            | Self::CutText
            | Self::Filtered
            | Self::ThinksAloud
            | Self::ThinksOn
            | Self::CallInText
            | Self::Promise
            | Self::Invisible
            | Self::Stray => false,
        }
    }
}

/// Shapes that are no progress.
const OFF: [Shape; 13] = [
    Shape::CutCall,
    Shape::CutBehindCall,
    Shape::CutText,
    Shape::Filtered,
    Shape::BareEnd,
    Shape::ThinksOn,
    Shape::CallInText,
    Shape::Promise,
    Shape::Invisible,
    Shape::Stray,
    Shape::ErrorInStream,
    Shape::Stall,
    Shape::Refusal,
];

/// Whole answers.
const WHOLE: [Shape; 4] = [
    Shape::Final,
    Shape::PlainBody,
    Shape::DoneOnly,
    Shape::ThinksAloud,
];

/// The shape of the answer to a request. The same place of a conversation has the same shape, so that a request that is
/// repeated after a crash gets the same answer; but no model stays off in one place for ever.
pub(super) fn shape(rng: &mut Rng, turn: usize, tries: u32, offers_tools: bool) -> Shape {
    let (off, whole) = (
        OFF[rng.usize(0..OFF.len())],
        WHOLE[rng.usize(0..WHOLE.len())],
    );
    let most = if off.is_over_soon() { 1 } else { 3 };
    let is_off = rng.u8(0..100) < 40 && tries < most;
    match (is_off, offers_tools && turn < 3) {
        (true, _) => off,
        (false, true) => Shape::Calls,
        (false, false) => whole,
    }
}
