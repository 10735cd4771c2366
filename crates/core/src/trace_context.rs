//! The context of a trace, as W3C Trace Context writes it (<https://www.w3.org/TR/trace-context/>, version 00).

use std::fmt;

use super::ids::SessionId;

/// `version-trace_id-parent_id-flags` of version 00.
const LENGTH: usize = 55;
/// A version that no sender may use.
const INVALID_VERSION: u8 = 0xff;
const SAMPLED: u8 = 1;

/// The id of a trace: sixteen bytes, never all zero. It is shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

/// The id of a span: eight bytes, never all zero. It is shown as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

/// A span as other spans refer to it. Its text is the header `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// The sender may have recorded the span.
    pub sampled: bool,
}

impl TraceId {
    /// `None` if all bytes are zero.
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl SpanId {
    /// `None` if all bytes are zero.
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    pub fn bytes(self) -> [u8; 8] {
        self.0
    }
}

/// The trace of a session that no producer has traced: its id is that of the session, so each attempt has the same one.
impl From<SessionId> for TraceId {
    fn from(session: SessionId) -> Self {
        Self(session.0.into_bytes())
    }
}

impl TraceContext {
    /// Reads a `traceparent`; `None` if it is invalid. A later version may have more fields after the known ones.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.trim().as_bytes();
        let known = bytes.get(..LENGTH)?;
        let [version] = hex(known.get(..2)?)?;
        let has_more = bytes.len() > LENGTH;
        let may_have_more = version > 0 && bytes.get(LENGTH) == Some(&b'-');
        let is_divided = [2, 35, 52].iter().all(|at| known.get(*at) == Some(&b'-'));
        if version == INVALID_VERSION || (has_more && !may_have_more) || !is_divided {
            return None;
        }
        let trace_id = TraceId::new(hex(known.get(3..35)?)?)?;
        let span_id = SpanId::new(hex(known.get(36..52)?)?)?;
        let [flags] = hex(known.get(53..)?)?;
        Some(Self {
            trace_id,
            span_id,
            sampled: flags & SAMPLED != 0,
        })
    }
}

/// Lower-case hexadecimal digits as bytes.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            sampled,
        } = self;
        write!(f, "00-{trace_id}-{span_id}-{:02x}", u8::from(*sampled))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_valid_traceparent_is_read_and_written_again() {
        for (flags, sampled, written) in
            [("01", true, "01"), ("00", false, "00"), ("03", true, "01")]
        {
            let context = TraceContext::parse(&format!("00-{TRACE}-{SPAN}-{flags}")).unwrap();
            assert_eq!(
                (
                    context.trace_id.to_string().as_str(),
                    context.span_id.to_string().as_str()
                ),
                (TRACE, SPAN)
            );
            assert_eq!(context.sampled, sampled);
            assert_eq!(context.to_string(), format!("00-{TRACE}-{SPAN}-{written}"));
        }
        let later = TraceContext::parse(&format!("cc-{TRACE}-{SPAN}-01-what-comes-later"));
        assert_eq!(later, TraceContext::parse(&format!("00-{TRACE}-{SPAN}-01")));
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let zeros = "0".repeat(32);
        for invalid in [
            String::new(),
            "00-1-2-01".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("cc-{TRACE}-{SPAN}-01more"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00_{TRACE}_{SPAN}_01"),
            format!("00-{TRACE}-{SPAN}-0g"),
            "é".repeat(40),
            "0".repeat(1_000_000),
            "\u{0}".repeat(55),
        ] {
            assert_eq!(TraceContext::parse(&invalid), None, "{invalid:.60}");
        }
    }

    #[test]
    fn a_session_without_a_trace_gives_its_id_to_one() {
        let id = Uuid::parse_str("0193f1de-4c6a-7b21-8f00-1234567890ab").unwrap();
        assert_eq!(
            TraceId::from(SessionId(id)).to_string(),
            "0193f1de4c6a7b218f001234567890ab"
        );
    }
}
