//! Any bytes are decoded: nothing panics, JSON that is valid is unchanged, and what was decoded once needs no repair again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tarsy_core::intake::decode::{ContentHeaders, MAX_INFLATED_BYTES, decode};

fuzz_target!(|bytes: &[u8]| {
    for (content_type, encoding) in
        [(None, None), (Some("text/plain; charset=iso-8859-1"), None), (Some("x; charset=gbk"), Some("deflate"))]
    {
        let Ok(decoded) = decode(bytes, ContentHeaders { content_type, encoding }) else { continue };
        // A byte becomes one character of at most three bytes.
        assert!(decoded.text.len() <= 3 * MAX_INFLATED_BYTES.max(bytes.len()));
        if let (None, Ok(strict)) = (encoding, serde_json::from_slice::<Value>(bytes))
            && !strict.is_string()
        {
            assert_eq!(decoded.value.as_ref(), Some(&strict), "valid JSON is unchanged");
        }
        if let Some(value @ (Value::Object(_) | Value::Array(_))) = decoded.value {
            let written = value.to_string();
            let again = decode(written.as_bytes(), ContentHeaders::default()).expect("JSON is text");
            assert_eq!((again.value, again.repairs), (Some(value), Vec::new()));
        }
    }
});
