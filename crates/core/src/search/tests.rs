use proptest::prelude::*;

use super::labels::label_words;
use super::{MAX_LABELS, MAX_WORDS, Searchable, alert_words, analysis_words, label_query, query};

fn words(text: &str) -> Vec<String> {
    analysis_words(None, Some(text))
}

#[test]
fn a_text_has_the_words_that_people_search() {
    for (text, expected) in [
        ("Disk FULL, disk full!", vec!["disk", "full"]),
        (
            "pod shop-7d9f-x2",
            vec!["7d9f", "pod", "shop", "shop-7d9f-x2", "x2"],
        ),
        ("10.0.0.1:9100", vec!["10", "10.0.0.1", "9100"]),
        ("http://a.b/c_d?e=ff", vec!["a.b", "c_d", "ff", "http"]),
        ("Ärger in Straße 5", vec!["in", "straße", "ärger"]),
        ("a 1 ... ___ <!-- ~/ ./", vec![]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn words_have_a_bound_and_the_important_ones_come_first() {
    let many = (0..100_000).fold(String::new(), |text, number| text + &format!("w{number} "));
    let found = analysis_words(Some("the cause"), Some(&format!("{many}`exit 137`")));
    assert_eq!(found.len(), MAX_WORDS);
    assert!(
        found.contains(&"cause".to_owned()) && found.contains(&"w1".to_owned()),
        "{found:?}"
    );
    let found = analysis_words(None, Some(&format!("first `exit-137` {many}")));
    assert!(found.contains(&"exit-137".to_owned()), "{found:?}");
    let of_alert = alert_words(&["Disk full", "KubeDisk"], &many);
    assert!(of_alert.contains(&"disk".to_owned()) && of_alert.contains(&"kubedisk".to_owned()));
    // A word of any length is found by its beginning.
    let long = "x".repeat(100_000);
    assert_eq!(words(&long), ["x".repeat(64)]);
    assert_eq!(query(&long), Some(format!("'{}'", "x".repeat(64))));
    let labels = (0..10_000).fold(String::new(), |text, number| {
        text + &format!("key{number}: v\n")
    });
    assert_eq!(label_words(&labels).len(), MAX_LABELS);
}

#[test]
fn a_search_has_the_syntax_of_web_searches() {
    for (search, expected) in [
        ("disk full", Some("'disk' & 'full'")),
        ("disk -full", Some("'disk' & !('full')")),
        ("disk or memory full", Some("'disk' | 'memory' & 'full'")),
        (
            "\"disk full\" -\"no space\"",
            Some("'disk' & 'full' & !('no' & 'space')"),
        ),
        ("- \"disk\"", Some("'disk'")),
        ("shop-7d9f-x2", Some("'shop-7d9f-x2'")),
        ("OR or", None),
        ("", None),
        ("a ' \\ :* & | ! ()", None),
        ("it's", Some("'it'")),
    ] {
        assert_eq!(query(search).as_deref(), expected, "{search}");
    }
    assert_eq!(
        query(&"word ".repeat(1_000))
            .unwrap()
            .matches("'word'")
            .count(),
        32
    );
}

#[test]
fn a_session_has_the_words_of_its_alert_and_of_its_analysis() {
    let text = |text: &str| Some(text.to_owned());
    let found = Searchable {
        title: "Disk full".to_owned(),
        alert_type: "KubeDisk".to_owned(),
        text: "namespace: shop".to_owned(),
        summary: text("the log"),
        analysis: text("It was `logrotate`."),
    };
    let label = label_query("namespace", "shop").replace('\'', "");
    let expected = [
        "disk",
        "full",
        "kubedisk",
        "namespace",
        "shop",
        &label,
        "it",
        "log",
        "logrotate",
        "the",
        "was",
    ];
    assert_eq!(found.words(), expected);
}

proptest! {
    #[test]
    fn words_and_queries_of_any_text_stay_within_their_bounds(text in any::<String>(), key in "[^\n]{1,9}", value in ".{1,9}") {
        let is_word = |word: &String| (2..=64).contains(&word.len()) && !word.contains(['\'', '\\', '\0']);
        prop_assert!(alert_words(&[&text], &text).iter().all(is_word));
        prop_assert!(words(&text).iter().all(is_word));
        prop_assert!(!query(&text).unwrap_or_default().contains(['\\', '\0']));
        prop_assert_eq!(label_query(&key, &value).len(), 19);
    }
}
