//! `receive.slack`: the Slack app whose requests `tarsy receive --slack-only` accepts, and the secrets that sign them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::{Text, VariableName};
use crate::read::reader::Field;
use crate::secret::SecretSource;
use crate::write::is_default;

/// The app and the workspace of Slack. A request of any other one is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct SlackApp {
    /// The id of the app.
    #[serde(with = "As::<Text>")]
    #[schemars(extend("x-required" = "the id of the app, such as A0123ABCD"))]
    pub app: String,
    /// The id of the workspace; a guest of another one does not decide.
    #[serde(with = "As::<Text>")]
    #[schemars(extend("x-required" = "the id of the workspace, such as T0123ABCD"))]
    pub team: String,
    /// The file with the app's signing secret.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub signing_secret_file: Option<String>,
    /// The variable with the app's signing secret.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub signing_secret_env: Option<String>,
    /// The file with a second secret, which is accepted as well while the secret is exchanged.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub second_secret_file: Option<String>,
    /// The variable with a second secret.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub second_secret_env: Option<String>,
}

impl SlackApp {
    /// The secrets that sign requests: the present one, and the second one if there is one.
    pub fn secrets(&self) -> Vec<SecretSource> {
        let first = source(&self.signing_secret_file, &self.signing_secret_env);
        let second = source(&self.second_secret_file, &self.second_secret_env);
        first.into_iter().chain(second).collect()
    }

    pub(super) fn check(&self, field: &Field<'_>) {
        for (key, id, first) in [("app", &self.app, 'A'), ("team", &self.team, 'T')] {
            if field.has(key) && !is_id(id, first) {
                field
                    .at(key)
                    .expected(&format!("an id such as {first}0123ABCD, not a name"));
            }
        }
        for (file, variable) in [
            ("signing_secret_file", "signing_secret_env"),
            ("second_secret_file", "second_secret_env"),
        ] {
            if field.has(file) && field.has(variable) {
                let problem = format!("is set, and {variable} as well; accepted: one of them");
                field.at(file).fault(problem);
            }
        }
        if !field.has("signing_secret_file") && !field.has("signing_secret_env") {
            field.missing(
                "signing_secret_file",
                "the file with the app's signing secret, or signing_secret_env",
            );
        }
    }
}

fn source(file: &Option<String>, variable: &Option<String>) -> Option<SecretSource> {
    let of_file = file.clone().map(SecretSource::File);
    of_file.or_else(|| variable.clone().map(SecretSource::Variable))
}

fn is_id(text: &str, first: char) -> bool {
    let mut characters = text.chars();
    characters.next() == Some(first)
        && text.len() > 1
        && characters.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, show};

    fn parse(slack: &str) -> Result<Config, String> {
        let text = format!("receive: {{slack: {slack}}}");
        Config::parse("f", &text, &|_| None).map_err(|faults| faults.to_string())
    }

    #[test]
    fn the_app_of_slack_is_read_with_its_secrets_as_references_and_shown_again() {
        let text = "{app: A1, team: T1, signing_secret_env: SIGN, second_secret_file: /run/new}";
        let config = parse(text).unwrap();
        let secrets = config.receive.slack.as_ref().map(SlackApp::secrets);
        let expected = vec![
            SecretSource::Variable("SIGN".to_owned()),
            SecretSource::File("/run/new".to_owned()),
        ];
        assert_eq!(secrets, Some(expected));
        let shown = show(&config);
        let again = Config::parse("f", &shown, &|_| None).unwrap();
        assert_eq!(again.receive, config.receive, "{shown}");
        assert_eq!(parse("null").unwrap().receive.slack, None);
    }

    #[test]
    fn each_fault_of_the_app_of_slack_names_its_key() {
        for (slack, key) in [
            ("{team: T1, signing_secret_env: S}", "receive.slack.app"),
            ("{app: A1, signing_secret_env: S}", "receive.slack.team"),
            (
                "{app: tarsy, team: T1, signing_secret_env: S}",
                "receive.slack.app",
            ),
            (
                "{app: A1, team: A1, signing_secret_env: S}",
                "receive.slack.team",
            ),
            ("{app: A1, team: T1}", "receive.slack.signing_secret_file"),
            (
                "{app: A1, team: T1, signing_secret_env: S, signing_secret_file: /f}",
                "receive.slack.signing_secret_file",
            ),
            (
                "{app: A1, team: T1, signing_secret_env: S, second_secret_env: S, second_secret_file: /f}",
                "receive.slack.second_secret_file",
            ),
        ] {
            let faults = parse(slack).unwrap_err();
            assert!(
                faults.contains("1 fault") && faults.contains(key),
                "{slack}: {faults}"
            );
        }
    }
}
