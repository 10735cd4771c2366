//! Words about model calls that the commands and the pages share.

use super::{MessageReport, NumberedCall, OwnForm};
use tarsy_core::execution::decide::Purpose;

/// The purpose of a call: `turn 3`, `conclusion after turn 8`, `summary in turn 3`.
pub fn purpose(call: &NumberedCall) -> String {
    let turn = call.call.iteration;
    match Purpose::parse(&call.call.purpose) {
        Some(Purpose::Iteration) => format!("turn {turn}"),
        Some(Purpose::Conclusion) => format!("conclusion, turn {turn}"),
        Some(Purpose::Synthesis | Purpose::Summary) | None => {
            format!("{}, turn {turn}", call.call.purpose)
        }
    }
}

/// `call 7 of sre, turn 3`
pub fn call_title(call: &NumberedCall) -> String {
    let purpose = purpose(call);
    format!("call {} of {}, {purpose}", call.number, call.call.agent)
}

/// The title of a message: `tool k8s.get, event 7, blanked`.
pub fn message_title(message: &MessageReport) -> String {
    let mut parts = vec![match &message.tool {
        Some(tool) => format!("{} {tool}", message.role.as_str()),
        None => message.role.as_str().to_owned(),
    }];
    parts.extend(message.event.map(|event| format!("event {event}")));
    parts.extend(message.is_error.then(|| "failed".to_owned()));
    parts.extend(message.is_blanked.then(|| "blanked".to_owned()));
    parts.extend(message.is_summary.then(|| "summarised".to_owned()));
    parts.join(", ")
}

/// `[own form of google, 3,412 bytes]`
pub fn own_form(own: &OwnForm) -> String {
    let bytes = with_commas(own.bytes);
    format!("[own form of {}, {bytes} bytes]", own.provider)
}

fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
