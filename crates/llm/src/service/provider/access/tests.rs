use super::*;

const VARIABLES: [(&str, &str); 8] = [
    ("GEMINI_API_KEY", "gemini-key"),
    ("OPENAI_API_KEY", "openai-key"),
    ("OPENAI_BASE_URL", "http://proxy.test:4000/v1"),
    ("CASE_KEY_1", "case-key"),
    ("DATABASE_URL", "postgres://secret"),
    ("XAI_API_KEY_FILE", "/nowhere"),
    ("OTHER", "other"),
    ("OLLAMA_HOST", "ollama.test:11434"),
];

fn access(keys: &[&str], urls: &[&str]) -> Access {
    let keys = keys.iter().map(|text| (*text).to_owned()).collect();
    let urls = urls
        .iter()
        .map(|text| UrlPattern::parse(text).unwrap())
        .collect();
    Access::new(
        keys,
        urls,
        Environment::new(|name: &str| {
            VARIABLES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        }),
    )
}

async fn ask(access: &Access, provider: &str, key: &str, url: &str) -> Result<String, String> {
    let config = LlmConfig {
        api_key_env: key.into(),
        base_url: url.into(),
        ..LlmConfig::default()
    };
    let endpoint = access
        .endpoint(known::by_name(provider).unwrap(), &config)
        .await;
    endpoint
        .map(|endpoint| {
            format!(
                "{} {}",
                endpoint.url,
                endpoint
                    .key
                    .map(|key| key.expose().to_owned())
                    .unwrap_or_default()
            )
        })
        .map_err(|error| error.message)
}

#[tokio::test]
async fn known_keys_go_to_the_addresses_of_their_own_provider() {
    let access = access(&[], &[]);
    let gemini = "https://generativelanguage.googleapis.com/ gemini-key";
    for (provider, key, url, expected) in [
        ("google", "GEMINI_API_KEY", "", gemini),
        ("google", "", "", gemini),
        (
            "google",
            "",
            "https://GENERATIVELANGUAGE.googleapis.com:443",
            gemini,
        ),
        (
            "openai",
            "OPENAI_API_KEY",
            "",
            "http://proxy.test:4000/v1 openai-key",
        ),
        (
            "openai",
            "OPENAI_API_KEY",
            "https://api.openai.com/v1",
            "https://api.openai.com/v1 openai-key",
        ),
        (
            "openai",
            "OPENAI_API_KEY",
            "http://proxy.test:4000/v1/x",
            "http://proxy.test:4000/v1/x openai-key",
        ),
        ("ollama", "", "", "http://ollama.test:11434/ "),
        (
            "ollama",
            "",
            "http://127.0.0.1:11434/v1",
            "http://127.0.0.1:11434/v1 ",
        ),
    ] {
        assert_eq!(
            ask(&access, provider, key, url).await,
            Ok(expected.to_owned()),
            "{provider} {key} {url}"
        );
    }
}

#[tokio::test]
async fn nothing_else_is_sent_anywhere() {
    let access = access(&[], &[]);
    let url = |shown| {
        Err(format!(
            "The base URL '{shown}' may not be used with this key; permit it with --allow-base-url '{shown}'"
        ))
    };
    let key = |name| {
        Err(format!(
            "Environment variable '{name}' is not permitted as a key; permit it with --allow-key-env '{name}'"
        ))
    };
    for (name, address, expected) in [
        (
            "GEMINI_API_KEY",
            "https://evil.test/steal?x=1",
            url("https://evil.test"),
        ),
        (
            "GEMINI_API_KEY",
            "https://api.openai.com",
            url("https://api.openai.com"),
        ),
        (
            "GEMINI_API_KEY",
            "http://proxy.test:4000/v1",
            url("http://proxy.test:4000"),
        ),
        (
            "",
            "http://generativelanguage.googleapis.com",
            url("http://generativelanguage.googleapis.com"),
        ),
        ("DATABASE_URL", "", key("DATABASE_URL")),
        (
            "NOT_THERE",
            "",
            Err("Environment variable 'NOT_THERE' is not set".to_owned()),
        ),
        ("CASE_KEY_1", "", key("CASE_KEY_1")),
        (
            "GEMINI_API_KEY",
            "evil",
            Err("The base URL is no address".to_owned()),
        ),
        (
            "GOOGLE_API_KEY",
            "",
            Err("Environment variable 'GOOGLE_API_KEY' is not set".to_owned()),
        ),
    ] {
        assert_eq!(
            ask(&access, "google", name, address).await,
            expected,
            "{name} {address}"
        );
    }
    let unreadable = Err("The file that 'XAI_API_KEY_FILE' names cannot be read".to_owned());
    assert_eq!(ask(&access, "xai", "", "").await, unreadable);
}

async fn status_of(access: &Access, provider: &str, key: &str, url: &str) -> String {
    let config = LlmConfig {
        api_key_env: key.into(),
        base_url: url.into(),
        ..LlmConfig::default()
    };
    let status = access
        .status(known::by_name(provider).unwrap(), &config)
        .await;
    let key = status.key.as_str();
    let address = status.address_status.as_str();
    let error = status
        .error
        .map(|error| error.code.as_str())
        .unwrap_or_default();
    format!(
        "{} {key} {} {address} {error}",
        status.key_env, status.address
    )
}

#[tokio::test]
async fn the_status_of_a_provider_names_the_cause_and_no_value() {
    let access = access(&["CASE_KEY_*"], &[]);
    let gemini = "https://generativelanguage.googleapis.com permitted";
    for (provider, key, url, expected) in [
        (
            "google",
            "GEMINI_API_KEY",
            "",
            format!("GEMINI_API_KEY set {gemini} "),
        ),
        ("google", "", "", format!("GEMINI_API_KEY set {gemini} ")),
        (
            "google",
            "GOOGLE_API_KEY",
            "",
            format!("GOOGLE_API_KEY not_set {gemini} credentials"),
        ),
        (
            "google",
            "DATABASE_URL",
            "",
            format!("DATABASE_URL not_permitted {gemini} credentials"),
        ),
        (
            "google",
            "NOT_THERE",
            "",
            format!("NOT_THERE not_permitted {gemini} credentials"),
        ),
        (
            "google",
            "CASE_KEY_1",
            "",
            format!("CASE_KEY_1 set {gemini} "),
        ),
        (
            "xai",
            "",
            "",
            "XAI_API_KEY unreadable https://api.x.ai permitted credentials".to_owned(),
        ),
        (
            "openai",
            "",
            "",
            "OPENAI_API_KEY set http://proxy.test:4000 permitted ".to_owned(),
        ),
        (
            "openai",
            "OPENAI_API_KEY",
            "https://u:secret@evil.test/x?secret",
            "OPENAI_API_KEY set https://evil.test not_permitted invalid_request".to_owned(),
        ),
        (
            "ollama",
            "",
            "",
            "OLLAMA_API_KEY not_set http://ollama.test:11434 permitted ".to_owned(),
        ),
    ] {
        assert_eq!(
            status_of(&access, provider, key, url).await,
            expected,
            "{provider} {key} {url}"
        );
    }
}

#[tokio::test]
async fn the_status_of_a_variable_that_is_not_permitted_does_not_say_whether_it_is_set() {
    let access = access(&["CASE_KEY_*"], &[]);
    for name in ["DATABASE_URL", "NOT_THERE"] {
        let config = LlmConfig {
            api_key_env: name.into(),
            ..LlmConfig::default()
        };
        let status = access
            .status(known::by_name("google").unwrap(), &config)
            .await;
        assert_eq!(status.error.unwrap().message, not_permitted(name).message);
    }
}

#[tokio::test]
async fn the_patterns_of_the_operator_permit_more() {
    let access = access(&["CASE_KEY_*"], &["https://llm.corp.test/gemini"]);
    for (key, url, expected) in [
        (
            "CASE_KEY_1",
            "https://llm.corp.test/gemini/x",
            Ok("https://llm.corp.test/gemini/x case-key"),
        ),
        (
            "CASE_KEY_1",
            "https://api.openai.com",
            Ok("https://api.openai.com/ case-key"),
        ),
        (
            "GEMINI_API_KEY",
            "https://llm.corp.test/gemini",
            Ok("https://llm.corp.test/gemini gemini-key"),
        ),
        (
            "CASE_KEY_2",
            "",
            Err("Environment variable 'CASE_KEY_2' is not set"),
        ),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(
            ask(&access, "google", key, url).await,
            expected,
            "{key} {url}"
        );
    }
    assert!(
        ask(
            &access,
            "google",
            "CASE_KEY_1",
            "https://llm.corp.test/other"
        )
        .await
        .is_err()
    );
}
