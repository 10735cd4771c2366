//! Warns when a provider's native tools ran although the strategy does not use them.

use tarsy_core::execution::entry::Answer;
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::plan::Strategy;

/// A `ReAct` model has no native tools. Their output makes no event and stays in the record of the call; the warning
/// shows an operator that the backend is not the configured one.
pub(super) fn warn_if_unexpected(
    session_id: SessionId,
    execution_id: ExecutionId,
    strategy: Strategy,
    answer: &Answer,
) {
    let code_executions = answer.code_executions.len();
    let groundings = answer.groundings.len();
    if strategy == Strategy::React && code_executions + groundings > 0 {
        tracing::warn!(%session_id, %execution_id, code_executions, groundings, "native tool output in a react answer ignored");
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::io::Write;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;
    use uuid::Uuid;

    use super::*;
    use tarsy_core::native::{CodePart, Grounding};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(strategy: Strategy, answer: &Answer) -> String {
        let written = Written::default();
        let target = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(move || target.clone());
        let session_id = SessionId(Uuid::from_u128(1));
        let execution_id = ExecutionId(Uuid::from_u128(2));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            warn_if_unexpected(session_id, execution_id, strategy, answer);
        });
        let bytes = written.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn native_tool_output_in_a_react_answer_is_one_warning_without_content() {
        let grounding = Grounding {
            search_widget: "<b>secret</b>".to_owned(),
            ..Grounding::default()
        };
        let code = CodePart {
            code: "secret".to_owned(),
            ..CodePart::default()
        };
        let answer = Answer {
            code_executions: vec![code.clone(), code],
            groundings: vec![grounding],
            ..Answer::default()
        };
        let logged_lines = logged(Strategy::React, &answer);
        assert_eq!(logged_lines.lines().count(), 1);
        let marks = [
            "WARN",
            "session_id=00000000-0000-0000-0000-000000000001",
            "execution_id=00000000-0000-0000-0000-000000000002",
            "code_executions=2 groundings=1",
        ];
        assert!(
            marks.iter().all(|mark| logged_lines.contains(mark)),
            "{logged_lines}"
        );
        assert!(!logged_lines.contains("secret"), "{logged_lines}");
        assert_eq!(logged(Strategy::React, &Answer::default()), "");
        assert_eq!(logged(Strategy::NativeThinking, &answer), "");
    }
}
