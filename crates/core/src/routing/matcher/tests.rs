use proptest::prelude::*;

use super::*;
use crate::routing::Facts;

fn parsed(text: &str) -> Result<(String, &'static str, String), MatcherFault> {
    Matcher::parse(text).map(|matcher| match matcher.test {
        Test::Is(value) => (matcher.name, "=", value),
        Test::IsNot(value) => (matcher.name, "!=", value),
        Test::Fits(regex) => (matcher.name, "=~", regex.as_str().to_owned()),
        Test::FitsNot(regex) => (matcher.name, "!~", regex.as_str().to_owned()),
    })
}

/// The cases of `pkg/labels/parse_test.go` of Alertmanager 0.27 that are about one matcher.
#[test]
fn matchers_read_as_in_alertmanager() {
    for (text, name, operator, value) in [
        ("foo=bar", "foo", "=", "bar"),
        ("foo=\"bar\"", "foo", "=", "bar"),
        ("foo=bar\"", "", "", ""),
        ("foo!=bar", "foo", "!=", "bar"),
        ("foo=~bar", "foo", "=~", "^(?:bar)$"),
        ("foo!~\"bar\"", "foo", "!~", "^(?:bar)$"),
        ("  foo = bar  ", "foo", "=", "bar"),
        ("foo=bar baz", "foo", "=", "bar baz"),
        ("foo=", "foo", "=", ""),
        ("foo=\"\"", "foo", "=", ""),
        ("foo=\"bar,quux\"", "foo", "=", "bar,quux"),
        ("foo=\"bar\\nbaz\"", "foo", "=", "bar\nbaz"),
        ("foo=\"bar \\\" baz\"", "foo", "=", "bar \" baz"),
        ("foo=bar\\", "foo", "=", "bar\\"),
        ("foo=\"a\\.b\"", "foo", "=", "a\\.b"),
        ("foo=~\"10\\.0\\..*\"", "foo", "=~", "^(?:10\\.0\\..*)$"),
        ("foo==bar", "foo", "=", "=bar"),
        ("foo=~=bar", "foo", "=~", "^(?:=bar)$"),
        ("foo=~bar|baz", "foo", "=~", "^(?:bar|baz)$"),
        ("\"foo bar\"=\"x\"", "foo bar", "=", "x"),
        ("\"a\\\"b\"=x", "a\"b", "=", "x"),
        (
            "kubernetes.pod=~\"db-.*\"",
            "kubernetes.pod",
            "=~",
            "^(?:db-.*)$",
        ),
        ("größe=\"groß\"", "größe", "=", "groß"),
        ("@severity=\"high\"", "@severity", "=", "high"),
        ("\"@timestamp\"!=\"\"", "@timestamp", "!=", ""),
    ] {
        let expected = if name.is_empty() {
            Err(MatcherFault::Quote)
        } else {
            Ok((name.to_owned(), operator, value.to_owned()))
        };
        assert_eq!(parsed(text), expected, "{text}");
    }
    for (text, fault) in [
        ("", "no matcher"),
        ("foo", "no matcher"),
        ("=bar", "no matcher"),
        ("foo bar", "no matcher"),
        ("foo!bar", "no matcher"),
        ("{foo=bar}", "no matcher"),
        ("foo=\"bar", "a quote that is not closed"),
        ("foo=\"b\"ar\"", "a quote that is not closed"),
        ("foo=\"", "a quote that is not closed"),
        ("foo=b\"ar", "a quote that is not closed"),
        ("\"foo=bar", "a quote that is not closed"),
        ("foo=~\"(\"", "no regular expression"),
        ("foo=~\"a)|(b\"", "no regular expression"),
        ("foo=~\"(a{1000}){1000}\"", "no regular expression"),
        ("@sevrity=high", "is no fact of an alert"),
        ("@severity=warning", "is no severity"),
    ] {
        let found = Matcher::parse(text).map(|matcher| matcher.to_string());
        assert!(
            found
                .as_ref()
                .is_err_and(|found| found.to_string().contains(fault)),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn a_regular_expression_is_anchored_and_an_absent_label_is_empty() {
    let facts = Facts::from([("namespace", "payments"), ("cluster", "dev\nx")]);
    for (text, expected) in [
        ("namespace=payments", true),
        ("namespace=pay", false),
        ("namespace=~pay", false),
        ("namespace=~\"pay.*\"", true),
        ("namespace=~\"x|pay.*\"", true),
        ("namespace!~pay", true),
        ("namespace!~\"pay.*\"", false),
        ("namespace!=payments", false),
        ("team=\"\"", true),
        ("team!=\"\"", false),
        ("team=~\".*\"", true),
        ("team=~\".+\"", false),
        ("team!=storage", true),
        ("cluster=~dev", false),
        ("cluster=~\"dev.x\"", false),
    ] {
        assert_eq!(
            Matcher::parse(text).unwrap().matches(&facts),
            expected,
            "{text}"
        );
    }
}

/// A matcher of `name` with a value or an expression of few words, so that matchers often agree.
fn any_matcher() -> impl Strategy<Value = Matcher> {
    let value = prop::sample::select(vec!["", "a", "b", "ab"]);
    let expression = prop::sample::select(vec!["", ".*", ".+", "a.*", "a|b", "[ab]+"]);
    let name = prop::sample::select(vec!["x", "y"]);
    (name, 0_usize..4, value, expression).prop_map(|(name, operator, value, expression)| {
        let text = match operator {
            0 => format!("{name}=\"{value}\""),
            1 => format!("{name}!=\"{value}\""),
            2 => format!("{name}=~\"{expression}\""),
            _ => format!("{name}!~\"{expression}\""),
        };
        Matcher::parse(&text).unwrap()
    })
}

proptest! {
    #[test]
    fn what_follows_from_a_matcher_holds_whenever_it_holds(
        one in any_matcher(), other in any_matcher(), x in "[ab]{0,3}", y in "[ab]{0,3}",
    ) {
        let facts = Facts::from([("x", x.as_str()), ("y", y.as_str())]);
        if one.follows_from(&other) && other.matches(&facts) {
            prop_assert!(one.matches(&facts), "{one} from {other}: {x:?} {y:?}");
        }
        prop_assert!(one.follows_from(&one));
    }

    #[test]
    fn any_text_is_a_matcher_or_has_a_fault_and_a_quoted_value_is_kept(
        text in "\\PC{0,40}", value in "[^\\\\\"]{0,20}",
    ) {
        drop(Matcher::parse(&text));
        let found = parsed(&format!("label=\"{value}\"")).map(|(_, _, value)| value);
        prop_assert_eq!(found, Ok(value));
    }
}
