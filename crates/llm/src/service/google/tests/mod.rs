//! Tests of the backend against a local endpoint over real sockets.

mod conversation;
mod streams;
mod failures;
mod signatures;
mod secrets;

use url::Url;

use super::{VERSIONS, stream_url};
use crate::service::provider::known::with_version;

#[test]
fn the_address_of_a_model_is_below_the_base_url() {
    let tail = "models/gemini-3-flash:streamGenerateContent?alt=sse";
    for (base, start) in [
        ("https://host", "https://host/v1beta"),
        ("http://host:81/proxy/", "http://host:81/proxy/v1beta"),
        ("https://host/v1alpha/", "https://host/v1alpha"),
    ] {
        let base = with_version(Url::parse(base).unwrap(), &VERSIONS);
        let address = stream_url(base, "gemini-3-flash").to_string();
        assert_eq!(address, format!("{start}/{tail}"));
    }
}
