//! Tests of the numbers of reports.

use super::*;

fn open(line: &str, sources: &[&str]) -> Vec<String> {
    SearchedTexts::new(sources.iter().copied())
        .unsupported(line)
        .into_iter()
        .map(|figure| figure.text)
        .collect()
}

#[test]
fn a_number_of_a_source_is_supported_in_every_spelling() {
    for (line, source) in [
        ("1,284.00 EUR too much", "drift 1284"),
        ("18 % of the requests", "0.1797"),
        ("31% fail", "\"0.3088\""),
        ("99.9 percent", "0.9994"),
        ("511Mi of 512Mi", "535822336 bytes, limit 536870912"),
        ("1.91 billion", "1912604118"),
        ("124 million ids", "1788140902 then 1912604118"),
        ("213 GB retained", "213 GB"),
        ("214G of 275G", "214G x\n275G y"),
        ("heap 480m", "-Xmx480m"),
        ("at 13:25", "[1795181100, \"0.3088\"]"),
        ("at 9:12 and 09:12:31", "2026-11-19T09:12:31Z"),
        ("about 400 connections", "397"),
        ("14 × 40 = 560", "6 -> 14 pods, DB_POOL_SIZE 40"),
        ("238 to 397 connections, 159 more", "238 397"),
        ("revision 43", "revision 43"),
    ] {
        assert_eq!(open(line, &[source]), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn a_number_that_no_source_has_is_found() {
    for (line, source, invented) in [
        ("83 connections", "238 connections", vec!["83"]),
        ("37 % of the requests", "0.1797", vec!["37 %"]),
        ("limit 640Mi, used 511Mi", "512Mi 511Mi", vec!["640Mi"]),
        ("at 13:40 [7]", "13:04 [1795181100]", vec!["13:40"]),
        ("revision 44 [42]", "revision 43, 42", vec!["44"]),
        ("**1,300.00** EUR", "1,284.00", vec!["1,300.00"]),
    ] {
        assert_eq!(open(line, &[source]), invented, "{line}");
    }
}

#[test]
fn names_dates_durations_and_small_counts_are_not_checked() {
    let line = "pod checkout-7d9f8b6c5-x2x9p, 5.8.0, gateway-3, 5xx, 3 pods, 18 November, Nov 18, 2026-11-18, \
                44.7 hours, 29 h, 40 min, 20 minutes, 500ms, `-Xmx640m` PAY-318-20 [12, 99]";
    assert_eq!(open(line, &[""]), Vec::<String>::new());
}

#[test]
fn what_a_line_counts_or_calculates_is_supported() {
    let log = "12:00:01 error: timeout\n".repeat(47) + "12:01:00 ok\n";
    for (line, source) in [
        ("47 errors in the log", log.as_str()),
        ("48 lines, of which 47 have a Timeout", &log),
        ("exit code 137 is 128 + 9", "exit code: 137"),
        ("from 200 to 350, 75 % more", "200 350"),
        ("at 10:30:05", "2026-11-27T12:30:05+02:00 started"),
        ("since 13:25", "{\"ts\": 1795181100123}"),
    ] {
        assert_eq!(open(line, &[source]), Vec::<String>::new(), "{line}");
    }
    assert_eq!(open("46 errors in the log", &[&log]), ["46"]);
}

#[test]
fn the_nearest_number_has_the_same_digits_or_is_about_as_large() {
    let nearest = |line: &str, source: &str| {
        let texts = SearchedTexts::new([source]);
        let figure = texts.unsupported(line).pop().unwrap();
        texts.nearest(&figure)
    };
    assert_eq!(
        nearest("211 TB free", "free 211328364800, total 150000000000000"),
        Some("211328364800".to_owned())
    );
    assert_eq!(
        nearest("83 connections", "97 and 238"),
        Some("97".to_owned())
    );
    assert_eq!(nearest("83 connections", "2 and 238000"), None);
    assert_eq!(nearest("at 13:40", "13:04"), None);
}

#[test]
fn a_hostile_source_is_read_in_bounded_time() {
    for part in [
        "1000000 ",
        "1,",
        "9.",
        "2026-11-27T12:30:05+02:00 ",
        "1795181100 ",
    ] {
        let source = part.repeat(200_000 / part.len());
        let begun = std::time::Instant::now();
        open("83 errors at 13:40, 211 TB and 77 % of 5551", &[&source]);
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(5),
            "{part}"
        );
    }
}
