use super::*;

#[test]
fn a_priority_in_the_query_is_one_of_four_words() {
    assert_eq!(priority("").unwrap(), None);
    assert_eq!(priority("a=b&priority=low").unwrap(), Some(Severity::Low));
    for wrong in [
        "priority=",
        "priority=urgent",
        "priority=LOW",
        "priority=low%20",
    ] {
        assert!(priority(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn headers_about_the_bytes_are_passed_on_unless_a_signature_covers_the_body_alone() {
    let of = |content_type: &'static str, encoding: &'static str, cover| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        content(&headers, cover)
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    };
    let latin = "application/json; charset=ISO-8859-1";
    let passed = [
        "Content-Type: application/json; charset=ISO-8859-1",
        "Content-Encoding: gzip",
    ];
    assert_eq!(of(latin, "gzip", HeaderCover::Covered), passed);
    assert_eq!(of(latin, "gzip", HeaderCover::Uncovered), [""; 0]);
    assert_eq!(
        of(
            "application/json; charset=utf-8",
            "identity",
            HeaderCover::Covered
        ),
        [""; 0]
    );
}

#[test]
fn the_tenant_of_a_query_goes_before_that_of_mimir_and_a_signature_covers_neither() {
    let of = |uri: &str, header: Option<&'static str>, cover| {
        let mut request = hyper::Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header("X-Scope-OrgID", header);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let rules = HeaderRules {
            forwarded: vec![headers::TENANT],
            ..HeaderRules::default()
        };
        tenant(&head, &rules, cover).map(|(_, tenant)| tenant)
    };
    let covered = HeaderCover::Covered;
    assert_eq!(of("/hooks/alertmanager", None, covered), None);
    assert_eq!(
        of("/hooks/alertmanager", Some("team-a"), covered).as_deref(),
        Some("team-a")
    );
    assert_eq!(
        of(
            "/alert?priority=low&tenant=team%20b",
            Some("team-a"),
            covered
        )
        .as_deref(),
        Some("team b")
    );
    assert_eq!(of("/alert?tenant=a%0ab", None, covered), None);
    assert_eq!(
        of(
            "/alert?tenant=team-b",
            Some("team-a"),
            HeaderCover::Uncovered
        ),
        None
    );
}

#[test]
fn an_event_in_headers_becomes_the_body_and_another_body_stays() {
    let mut headers = HeaderMap::new();
    for name in ["ce-id", "ce-source", "ce-specversion"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
    }
    let body = br#"{"a":1}"#;
    assert_eq!(event_of(&headers, body), None);
    headers.insert("ce-type", HeaderValue::from_static("x"));
    let event: Value = serde_json::from_slice(&event_of(&headers, body).unwrap()).unwrap();
    assert_eq!(
        (&event["type"], &event["data"]["a"]),
        (&Value::from("x"), &Value::from(1))
    );
}

#[test]
fn only_listed_headers_are_forwarded_and_under_their_listed_names() {
    let rules = HeaderRules {
        forwarded: vec!["Tarsy-Title", "Tarsy-Chain"],
        ignored: vec!["Tarsy-Force", "Tarsy-Retry-Of"],
        forbidden: vec!["Tarsy-Parent-Id"],
    };
    let mut headers = HeaderMap::new();
    headers.insert(
        "tarsy-title",
        HeaderValue::from_bytes("größer".as_bytes()).unwrap(),
    );
    headers.insert("nats-msg-id", HeaderValue::from_static("x"));
    headers.insert("tarsy-force", HeaderValue::from_static("true"));
    assert_eq!(
        forwarded(&headers, &rules).unwrap(),
        [("Tarsy-Title", "größer".to_owned())]
    );
    assert_eq!(
        present(&headers, &rules.ignored).collect::<Vec<_>>(),
        ["Tarsy-Force"]
    );
    headers.insert("tarsy-chain", HeaderValue::from_bytes(&[0xff]).unwrap());
    assert!(forwarded(&headers, &rules).is_err());
    headers.remove("tarsy-chain");
    headers.insert("TARSY-PARENT-ID", HeaderValue::from_static("x"));
    assert!(
        matches!(forwarded(&headers, &rules), Err(Rejection::Invalid(why)) if why.contains("Tarsy-Parent-Id"))
    );
}
