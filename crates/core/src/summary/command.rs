//! The command that a next step begins with.

/// A longer text in back quotes is no command.
const MAX_COMMAND: usize = 2_000;

/// A command at the beginning of a text, in back quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The command without its back quotes.
    pub text: &'a str,
    /// The text after the command, without the punctuation between them.
    pub rest: &'a str,
}

/// The command at the beginning of a next step. One word in back quotes is a name.
pub fn command(next: &str) -> Option<Command<'_>> {
    let inside = next.trim_start().strip_prefix('`')?;
    let (text, rest) = inside.split_once('`')?;
    let rest = rest.trim_start_matches(['.', ',', ';', ':', ' ']);
    (text.len() <= MAX_COMMAND && text.trim().contains(' ')).then_some(Command {
        text: text.trim(),
        rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_stands_at_the_beginning_and_has_arguments() {
        let of = |text| command(text).map(|Command { text, rest }| (text, rest));
        assert_eq!(
            of("`kubectl get pods`. Then wait"),
            Some(("kubectl get pods", "Then wait"))
        );
        for text in [
            "raise the limit",
            "set `limit` to 2",
            "`limit` to 2",
            "`never closed x",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
