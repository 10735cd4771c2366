//! The token of the receiver, from the environment or a file, which is read again while the receiver runs.

use std::convert::Infallible;
use std::time::Duration;

use tarsy_config::{Secret, environment_fault, process_env};
use tarsy_http::listener::Token;

pub(super) const TOKEN_VARIABLE: &str = "TARSY_RECEIVE_TOKEN";
pub(super) const TOKEN_FILE_VARIABLE: &str = "TARSY_RECEIVE_TOKEN_FILE";
/// The time between two reads of files with secrets.
pub(super) const READ_INTERVAL: Duration = Duration::from_secs(2);

/// The token from the environment, if there is one.
///
/// # Errors
/// When the token cannot be read, or no client could send it. The error does not show its value.
pub fn token() -> anyhow::Result<Option<Token>> {
    let (name, text) = match (
        process_env(TOKEN_VARIABLE),
        process_env(TOKEN_FILE_VARIABLE),
    ) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let problem =
                format!("is set, and {TOKEN_FILE_VARIABLE} as well; accepted: one of them");
            return Err(invalid(TOKEN_VARIABLE, problem));
        }
        (Some(text), None) => (TOKEN_VARIABLE, text),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(&file);
            let text =
                text.map_err(|error| invalid(TOKEN_FILE_VARIABLE, format!("{file}: {error}")))?;
            (TOKEN_FILE_VARIABLE, text)
        }
    };
    let problem =
        "is empty or has spaces or letters beyond ASCII; accepted: visible ASCII characters";
    Token::new(text.trim_end())
        .map(Some)
        .ok_or_else(|| invalid(name, problem.to_owned()))
}

/// Reads the file of the token again and again, so that a renewed token is accepted without a restart.
pub(super) async fn keep_up(token: Option<Token>) -> Infallible {
    let (Some(token), Some(file)) = (token, Secret::file_of(TOKEN_FILE_VARIABLE, &process_env))
    else {
        return std::future::pending().await;
    };
    let mut last_fault = None;
    loop {
        tokio::time::sleep(READ_INTERVAL).await; // pacing of reads
        let fault = match file.read() {
            Ok(text) if token.renew(&text) => None,
            Ok(_) => Some("the file has no token".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = &fault
            && last_fault.as_ref() != Some(fault)
        {
            tracing::error!(fault, "token not reloaded: the previous one stays in use");
        }
        last_fault = fault;
    }
}

pub(super) fn invalid(variable: &str, problem: String) -> anyhow::Error {
    environment_fault(variable, problem).into()
}
