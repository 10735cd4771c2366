//! Names of tools: `server.tool` here, `server__tool` at the provider, because some providers accept no dots.

use super::error::{ErrorCode, ProviderError};

const SEPARATOR: &str = "__";

/// The name for the provider.
///
/// # Errors
/// `invalid_request` when the name cannot be converted back. The message is that of the existing service.
pub(crate) fn to_wire(name: &str) -> Result<String, ProviderError> {
    if let Some(segment) = name.split('.').find(|segment| segment.contains(SEPARATOR)) {
        let message = format!(
            "Tool name segment '{segment}' in '{name}' contains '__' which conflicts with the dot separator encoding. \
             Rename the tool to avoid double underscores."
        );
        return Err(ProviderError::new(ErrorCode::InvalidRequest, message));
    }
    Ok(name.replace('.', SEPARATOR))
}

/// The name for clients.
pub(crate) fn from_wire(name: &str) -> String {
    name.replace(SEPARATOR, ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_as_it_was() {
        for name in ["server.tool", "kubernetes-server.pods_get", "plain", "a.b.c"] {
            assert_eq!(from_wire(&to_wire(name).unwrap()), name);
        }
        let message = to_wire("srv.bad__name").unwrap_err().message;
        assert!(message.starts_with("Tool name segment 'bad__name' in 'srv.bad__name' contains '__'"), "{message}");
    }
}
