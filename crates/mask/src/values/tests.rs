use super::*;

fn value(text: &str, reach: Reach) -> Option<&str> {
    secret_at(text, 0, reach, Secrecy::Strong).and_then(|span| text.get(span.start..span.end))
}

#[test]
fn the_end_of_a_value_depends_on_its_layout() {
    for (text, word, line) in [
        ("hunter2 user=bob", "hunter2", "hunter2"),
        ("correct horse battery", "correct", "correct horse battery"),
        ("ab&cdSECRET", "ab&cdSECRET", "ab&cdSECRET"),
        ("abc&page=2", "abc", "abc"),
        ("a'b\"c, x", "a'b\"c", "a'b\"c, x"),
        ("'it''s' x", "it''s", "it''s"),
        ("\"a b\\\"c\" x", "a b\\\"c", "a b\\\"c"),
        ("!!str &x abc", "!!str &x abc", "!!str &x abc"),
        ("abc;User Id=x", "abc", "abc"),
        ("${abc!", "${abc!", "${abc!"),
        ("{abc", "{abc", "{abc"),
        ("${X:-abc}", "${X:-abc}", "${X:-abc}"),
    ] {
        assert_eq!(
            (value(text, Reach::Word), value(text, Reach::Line)),
            (Some(word), Some(line)),
            "{text}"
        );
    }
}

#[test]
fn a_placeholder_is_no_secret() {
    for text in [
        "null",
        "\"\"",
        "${DB_PASSWORD}",
        "$(cat /run/x)",
        "$DB_PASSWORD",
        "{{ .Values.x }}",
        "****",
        "<none>",
        "<set to the key 'password' in secret 'db'>  Optional: false",
        "[REDACTED]",
        "must not be empty",
        "/run/secrets/db",
        "arn:aws:secretsmanager:eu:1:secret:x",
        "true",
        "12",
        "${file:/a/b:password}",
    ] {
        assert_eq!(value(text, Reach::Line), None, "{text}");
    }
}
