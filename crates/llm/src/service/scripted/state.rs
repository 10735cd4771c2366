//! The provider state of a recording. It replaces the thought signatures of real providers, and can be checked.
//!
//! The payload is derived from its position and is not valid UTF-8, so a single byte that changes on the way through
//! client and store is detected.

use sha2::{Digest, Sha256};

use crate::proto::{ASSISTANT, GenerateRequest, ProviderData};

const PROVIDER: &str = "scripted";
const FORMAT: &str = "scripted.v1";

/// The state of the answer at `index` of an execution.
pub(super) fn provider_data(execution_id: &str, index: usize) -> ProviderData {
    let mut hash = Sha256::new();
    hash.update(execution_id.as_bytes());
    hash.update(index.to_string().as_bytes());
    let mut payload = vec![0x00, 0xff, 0xfe];
    payload.extend(hash.finalize());
    ProviderData {
        provider: PROVIDER.to_owned(),
        model: String::new(),
        format: FORMAT.to_owned(),
        payload,
    }
}

/// Checks that every answer of this provider came back unchanged. Clients without support for provider data and answers
/// of other providers are not checked.
pub(super) fn check(request: &GenerateRequest) -> Result<(), String> {
    if !request
        .accept
        .iter()
        .any(|word| word == crate::proto::ACCEPT_PROVIDER_DATA)
    {
        return Ok(());
    }
    let answers = request
        .messages
        .iter()
        .filter(|message| message.role == ASSISTANT);
    for (index, message) in answers.enumerate() {
        match &message.provider_data {
            Some(data)
                if data.provider != PROVIDER
                    || *data == provider_data(&request.execution_id, index) => {}
            Some(_) => {
                return Err(format!(
                    "provider state of answer {index} came back changed"
                ));
            }
            None => {
                return Err(format!(
                    "provider state of answer {index} did not come back"
                ));
            }
        }
    }
    Ok(())
}
