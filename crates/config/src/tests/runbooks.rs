//! Tests of `runbooks`.

use super::{env, faults};
use crate::*;

#[test]
fn a_host_may_have_a_token_of_a_file_or_a_variable() {
    let text = "runbooks:\n  hosts: [a.example, {host: github.com, token_file: '/run/$${x}'}]\n  \
                private_hosts: [{host: 'wiki.corp:8443', token_env: WIKI_TOKEN}, {host: b.corp}]\n  ca_file: /c\n";
    let config = Config::parse("f", text, &env).unwrap();
    let tokens: Vec<_> = config
        .runbooks
        .sources()
        .map(|source| (source.host.to_string(), source.token.clone()))
        .collect();
    let named = |host: &str, token| (host.to_owned(), token);
    let expected = [
        named("a.example", None),
        named(
            "github.com",
            Some(SecretSource::File("/run/${x}".to_owned())),
        ),
        named(
            "wiki.corp:8443",
            Some(SecretSource::Variable("WIKI_TOKEN".to_owned())),
        ),
        named("b.corp", None),
    ];
    assert_eq!(
        (tokens.as_slice(), config.runbooks.ca_file.as_deref()),
        (&expected[..], Some("/c"))
    );
    let shown = show(&config);
    assert_eq!(Config::parse("shown", &shown, &env), Ok(config), "{shown}");
}

#[test]
fn a_fault_of_a_token_names_its_fix_and_no_secret() {
    for (entry, expected) in [
        (
            "{host: '*.corp', token_file: /t}",
            "accepted: one host, because its token must reach no other one",
        ),
        (
            "{host: a.corp, token_file: /t, token_env: T}",
            "accepted: either token_file or token_env",
        ),
        (
            "{host: a.corp, token_env: s3cret-token}",
            "not the name of an environment variable",
        ),
        (
            "{host: a.corp, token: s3cret}",
            "unknown key; accepted: host, token_file, token_env",
        ),
        ("{token_file: /t}", "runbooks.hosts[0].host"),
        (
            "{host: 'https://a.corp', token_file: /t}",
            "without a scheme",
        ),
        ("7", "accepted: a text"),
    ] {
        let fault = faults(&format!("runbooks: {{hosts: [{entry}]}}"));
        assert!(
            fault.contains(expected) && !fault.contains("s3cret"),
            "{entry}: {fault}"
        );
        assert!(fault.contains(": 1 fault\n"), "{fault}");
    }
}
