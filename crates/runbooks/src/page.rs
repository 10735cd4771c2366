//! The text of a page: read up to a limit, decoded, without markup and invisible characters.

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use super::client::described;
use super::html;
use tarsy_core::visible::visible;

/// The bytes of a page that are read. The markup of a page may be much longer than its text.
const MAX_PAGE_BYTES: usize = 512 * 1024;
/// The bytes of a text that are shown.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The text of an answer.
///
/// # Errors
/// When it is no text, or the connection breaks.
pub(super) async fn read(mut answer: Response) -> Result<String, String> {
    let kind = answer
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    if !is_text(&kind) {
        return Err(format!("it is no text, but {kind:?}"));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(described)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_PAGE_BYTES {
            break;
        }
    }
    text(&bytes, &kind)
}

fn is_text(kind: &str) -> bool {
    let kinds = [
        "",
        "application/json",
        "application/yaml",
        "application/x-yaml",
        "application/xhtml+xml",
    ];
    kind.starts_with("text/") || kinds.contains(&kind) || kind == "application/octet-stream"
}

fn text(bytes: &[u8], kind: &str) -> Result<String, String> {
    let is_cut = bytes.len() > MAX_PAGE_BYTES;
    let bytes = bytes.get(..MAX_PAGE_BYTES).unwrap_or(bytes);
    if bytes.contains(&0) {
        return Err("it is no text".to_owned());
    }
    let decoded = String::from_utf8_lossy(bytes);
    let is_html = kind.ends_with("html") || kind == "application/xhtml+xml";
    let text = if is_html {
        html::text(&decoded)
    } else {
        decoded.into_owned()
    };
    let text = visible(&text);
    let text = text.trim();
    if text.is_empty() {
        return Err("it has no text".to_owned());
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let shown = text.get(..end).unwrap_or_default();
    if shown.len() < text.len() || is_cut {
        return Ok(format!(
            "{shown}\n[cut here: only the first {} bytes of the runbook are shown]",
            shown.len()
        ));
    }
    Ok(shown.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_text_of_a_bounded_size() {
        assert_eq!(
            text(b" # OOM\r\n1. \x1b[31mlook\xe2\x80\x8b \n", "text/markdown"),
            Ok("# OOM\n1. look".to_owned())
        );
        assert_eq!(text(b"<p>a</p>", "text/html"), Ok("a".to_owned()));
        assert_eq!(text(b"<p>a</p>", "text/plain"), Ok("<p>a</p>".to_owned()));
        let long = text("é".repeat(40_000).as_bytes(), "").unwrap();
        assert_eq!(
            long.len(),
            65_536 + "\n[cut here: only the first 65536 bytes of the runbook are shown]".len()
        );
        let longer = text(&b"<i>".repeat(200_000), "text/html");
        assert_eq!(longer, Err("it has no text".to_owned()));
        for empty in [&b""[..], b" \n", b"PK\x03\x00"] {
            assert!(text(empty, "").is_err());
        }
        assert!(
            is_text("text/plain")
                && is_text("")
                && !is_text("image/png")
                && !is_text("application/pdf")
        );
    }
}
