//! The status line of the answer that a model is writing now.

use crate::cli::render::style::Charset;
use crate::cli::render::{format, text};
use tarsy_core::ids::ExecutionId;
use tarsy_core::timeline::DeltaKind;
use tarsy_core::timeline::live::Live;

/// The estimated size of a token, until the provider reports its count.
const BYTES_PER_TOKEN: u64 = 4;

/// The execution that received the last delta, and its status in at most `columns`.
pub(super) fn status(
    live: &Live,
    columns: usize,
    charset: Charset,
) -> Option<(ExecutionId, String)> {
    let answer = live.answers().last()?;
    let dots = charset.ellipsis();
    let status = match answer.kind {
        DeltaKind::Thinking => {
            let tokens = (answer.bytes() / BYTES_PER_TOKEN).max(1);
            format!("thinking{dots} {}", format::count(tokens, "token"))
        }
        DeltaKind::Text => {
            let head = format!("writing{dots} ");
            let room = columns.saturating_sub(text::width(&head));
            let tail = text::cut_front(&text::one_line(answer.text(), charset), room, charset);
            format!("{head}{tail}")
        }
        DeltaKind::Raw => format!("writing{dots}"),
    };
    let status = text::cut(status.trim_end(), columns, charset);
    Some((answer.execution, status))
}
