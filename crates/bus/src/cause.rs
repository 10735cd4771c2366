//! The cause of a failed request to `JetStream`, by the codes of the server and of the client library.

use std::error::Error as StdError;

use async_nats::jetstream::context::{
    ConsumerInfoError, ConsumerInfoErrorKind, CreateStreamError, CreateStreamErrorKind,
    GetStreamError, GetStreamErrorKind, RequestError, RequestErrorKind,
};
use async_nats::jetstream::stream::{ConsumerError, ConsumerErrorKind};
use async_nats::jetstream::{self, ErrorCode};

/// The reason why a request to `JetStream` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server has refused it with this code.
    Refused(ErrorCode),
    /// No server has answered in time.
    TimedOut,
    Other,
}

impl Cause {
    /// The first cause in the chain of an error of the client library.
    pub(crate) fn from_error(error: &(dyn StdError + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(cause) = known(error) {
                return cause;
            }
            next = error.source();
        }
        Self::Other
    }
}

/// The cause that one error of the chain has. Each request has other kinds of errors, which hold the server's answer.
fn known(error: &(dyn StdError + 'static)) -> Option<Cause> {
    let request = error.downcast_ref().map(RequestError::kind);
    let create = error.downcast_ref().map(CreateStreamError::kind);
    let get = error.downcast_ref().map(GetStreamError::kind);
    let info = error.downcast_ref().map(ConsumerInfoError::kind);
    let consumer = error.downcast_ref().map(ConsumerError::kind);
    if request == Some(RequestErrorKind::TimedOut)
        || create == Some(CreateStreamErrorKind::TimedOut)
        || info == Some(ConsumerInfoErrorKind::TimedOut)
        || consumer == Some(ConsumerErrorKind::TimedOut)
    {
        return Some(Cause::TimedOut);
    }
    let answer = if let Some(CreateStreamErrorKind::JetStream(answer)) = create {
        answer
    } else if let Some(GetStreamErrorKind::JetStream(answer)) = get {
        answer
    } else if let Some(ConsumerInfoErrorKind::JetStream(answer)) = info {
        answer
    } else if let Some(ConsumerErrorKind::JetStream(answer)) = consumer {
        answer
    } else {
        error.downcast_ref::<jetstream::Error>()?.clone()
    };
    Some(Cause::Refused(answer.error_code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u64) -> jetstream::Error {
        let text = format!(r#"{{"code": 500, "err_code": {code}, "description": "geht nicht"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_refusal_is_known_by_its_code_whichever_request_it_answers() {
        let code = ErrorCode::STORAGE_RESOURCES_EXCEEDED;
        let refused = answer(code.0);
        let answers: [&(dyn StdError + 'static); 5] = [
            &refused,
            &CreateStreamError::from(refused.clone()),
            &GetStreamError::new(GetStreamErrorKind::JetStream(refused.clone())),
            &ConsumerInfoError::from(refused.clone()),
            &ConsumerError::from(refused.clone()),
        ];
        for answer in answers {
            assert_eq!(
                Cause::from_error(answer),
                Cause::Refused(code),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_request_without_an_answer_has_timed_out_at_any_depth_of_the_chain() {
        let unanswered = || RequestError::new(RequestErrorKind::TimedOut);
        let unanswered: [&(dyn StdError + 'static); 4] = [
            &CreateStreamError::from(unanswered()),
            &GetStreamError::with_source(GetStreamErrorKind::Request, unanswered()),
            &ConsumerInfoError::from(unanswered()),
            &ConsumerError::from(unanswered()),
        ];
        for error in unanswered {
            assert_eq!(Cause::from_error(error), Cause::TimedOut, "{error:?}");
        }
        let other = GetStreamError::new(GetStreamErrorKind::EmptyName);
        assert_eq!(Cause::from_error(&other), Cause::Other);
    }
}
