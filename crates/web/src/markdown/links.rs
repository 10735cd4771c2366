//! Checks the links in a model's text: the permitted targets, and the part of the address that is shown.

use url::Url;

/// A longer address is text.
const MAX_ADDRESS: usize = 2_000;

/// A link to another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The address in the form of the URL standard: the host in ASCII, other characters percent-encoded.
    pub address: String,
    pub host: String,
}

/// The target of an address of the web; `None` for any other one, which is shown as text.
pub(crate) fn target(address: &str) -> Option<Target> {
    if address.len() > MAX_ADDRESS || address.contains(char::is_whitespace) {
        return None;
    }
    let url = Url::parse(address)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // A name before the host reads like the host.
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let host = url.host_str()?.to_owned();
    Some(Target {
        host,
        address: url.to_string(),
    })
}
