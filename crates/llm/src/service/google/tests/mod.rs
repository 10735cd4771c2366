//! Tests of the backend against a local endpoint over real sockets.

mod conversation;
mod streams;
mod failures;
mod signatures;
mod secrets;

use url::Url;

use super::{stream_url, versioned};

#[test]
fn the_address_of_a_model_is_below_the_base_url() {
    let of =
        |base: &str| stream_url(versioned(Url::parse(base).unwrap()), "gemini-3-flash").to_string();
    let tail = "models/gemini-3-flash:streamGenerateContent?alt=sse";
    for (base, start) in [
        ("https://host", "https://host/v1beta"),
        ("http://host:81/proxy/", "http://host:81/proxy/v1beta"),
        ("https://host/v1alpha/", "https://host/v1alpha"),
    ] {
        assert_eq!(of(base), format!("{start}/{tail}"));
    }
}
