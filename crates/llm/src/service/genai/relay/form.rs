//! The form in which a provider wants the request of an interface.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::service::provider::ProviderError;

/// The version of the Messages API at Vertex AI, which is a field of the body there and no header.
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// The form of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::service::genai) enum RequestForm {
    /// The body of the interface, byte for byte.
    OfInterface,
    /// The body of the Messages API without the model, which is a part of the address.
    VertexAi,
}

impl RequestForm {
    /// The body for the provider.
    ///
    /// # Errors
    /// `internal` when the body is no JSON object.
    pub(super) fn written(self, body: Bytes) -> Result<Bytes, ProviderError> {
        match self {
            Self::OfInterface => Ok(body),
            Self::VertexAi => vertex_ai(&body)
                .ok_or_else(|| ProviderError::internal("the request has no form for Vertex AI")),
        }
    }
}

/// The other fields keep their order, so that requests with the same beginning keep it, too.
fn vertex_ai(body: &Bytes) -> Option<Bytes> {
    let fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let version = ("anthropic_version".to_owned(), VERTEX_VERSION.into());
    let others = fields.into_iter().filter(|(name, _)| name != "model");
    let fields: Map<String, Value> = std::iter::once(version).chain(others).collect();
    serde_json::to_vec(&fields).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertex_ai_gets_a_version_and_no_model_and_every_other_field_in_its_order() {
        let body = Bytes::from(
            r#"{"stream":true,"model":"claude-sonnet-4-5","z":[1.0,"\u00e9"],"a":{"model":"x"},"max_tokens":8}"#,
        );
        let expected = r#"{"anthropic_version":"vertex-2023-10-16","stream":true,"z":[1.0,"é"],"a":{"model":"x"},"max_tokens":8}"#;
        assert_eq!(
            RequestForm::VertexAi.written(body.clone()),
            Ok(Bytes::from(expected))
        );
        assert_eq!(RequestForm::OfInterface.written(body.clone()), Ok(body));
        let error = RequestForm::VertexAi
            .written(Bytes::from("[]"))
            .unwrap_err();
        assert_eq!(error.message, "the request has no form for Vertex AI");
    }
}
