//! Any body is recognised and read by any source: nothing panics, and every alert holds together.
//!
//! The first line of the input is an expression, which is the type, the key, the severity and the text of the source;
//! the rest is the body.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tarsy_core::alert::AlertStatus;
use tarsy_core::intake::{Hints, Intake, MAX_PARTS, MAX_TEXT_BYTES};
use tarsy_core::sources::{
    Capture, Expression, LabelSource, LinkSource, NamedSource, Pointer, Reader, Rule, Sign, Source, Sources, TestSign,
    Words,
};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (first, body) = text.split_once('\n').unwrap_or(("/a", &text));
    let Ok(expression) = Expression::parse(first) else { return };
    assert_eq!(Expression::parse(&expression.to_string()).as_ref(), Ok(&expression), "an expression shows as itself");
    for source in [of_body(&expression), of_elements(&expression)] {
        let named = NamedSource { name: "any".to_owned(), reader: Reader::Declared(Box::new(source)) };
        let intake = Intake::new(Arc::new(Sources::new(vec![named], Vec::new())));
        for source in [None, Some("any".to_owned())] {
            holds(&intake, body.as_bytes(), &Hints { source, ..Hints::default() });
        }
    }
});

fn holds(intake: &Intake, body: &[u8], hints: &Hints) {
    let Ok(parts) = intake.read(body, hints) else { return };
    assert!((1..=MAX_PARTS).contains(&parts.len()));
    assert_eq!(intake.read(body, hints).as_ref(), Ok(&parts), "the same body gives the same alerts");
    for part in parts {
        let alert = part.alert;
        assert!(!alert.fingerprint.is_empty() && !alert.title.is_empty() && alert.text.len() < MAX_TEXT_BYTES + 8_192);
        assert_eq!(alert.status == AlertStatus::Ignored, alert.ignored_because.is_some());
        let is_counted = matches!(alert.status, AlertStatus::Firing | AlertStatus::Acknowledged);
        assert_eq!(is_counted, !alert.members.is_empty());
    }
}

fn of_body(expression: &Expression) -> Source {
    let pointer = |text: &str| Pointer::parse(text).expect("a pointer");
    let capture = Capture::new(Expression::parse("/t").expect("an expression"), r"(?<x>\w+) (?<y>.*)");
    Source {
        recognise: vec![Rule { has: vec![pointer("/a"), pointer("/m/b")], ..Rule::default() }],
        parse: vec![pointer("/m")],
        capture: capture.ok(),
        alert_type: Some(expression.clone()),
        title: Some(expression.clone()),
        severity: Words { from: Some(expression.clone()), ..Words::default() },
        status: Words { from: Some(expression.clone()), ..Words::default() },
        test: vec![TestSign { pointer: pointer("/t"), signs: vec![Sign::Begins("test".to_owned())] }],
        key: vec![vec![expression.clone()], vec![expression.clone(), expression.clone()]],
        labels: vec![
            LabelSource::Object(pointer("/l")),
            LabelSource::Split { list: pointer("/l"), separator: ":".to_owned() },
            LabelSource::Pairs { list: pointer("/l"), name: pointer("/n"), value: pointer("/v") },
        ],
        links: vec![LinkSource { name: "link".to_owned(), url: expression.clone() }],
        runbook: Some(expression.clone()),
        at: Some(expression.clone()),
        ..Source::default()
    }
}

fn of_elements(expression: &Expression) -> Source {
    let pointer = |text: &str| Pointer::parse(text).expect("a pointer");
    Source {
        each: Some(pointer("/e")),
        parse_element: vec![pointer("@/m")],
        text: Some(expression.pointers().into_iter().cloned().collect()),
        title: Expression::parse("{@/t} of {@} | \"t\"").ok(),
        ..of_body(expression)
    }
}
