//! Tests of `streams`.

use std::time::Duration;

use super::env;
use crate::*;

#[test]
fn configured_limits_of_streams_differ_from_absent_ones() {
    let text = "streams: {replicas: 3, storage: file, placement: {tags: [ssd, 'az:1']}, alerts: {max_bytes: 2GiB}, \
                timeline: {max_age: 48h, storage: memory, placement: {cluster: eu}}, dead_letters: {max_bytes: 1GiB}}";
    let tags = vec!["ssd".to_owned(), "az:1".to_owned()];
    let expected = Streams {
        replicas: Some(3),
        storage: Some(StreamStorage::File),
        placement: Some(StreamPlacement {
            cluster: None,
            tags,
        }),
        alerts: StreamLimits {
            max_bytes: Some(2 << 30),
            ..StreamLimits::default()
        },
        timeline: StreamLimits {
            max_age: Some(Duration::from_hours(48)),
            storage: Some(StreamStorage::Memory),
            placement: Some(StreamPlacement {
                cluster: Some("eu".to_owned()),
                tags: Vec::new(),
            }),
            ..StreamLimits::default()
        },
        dead_letters: StreamLimits {
            max_bytes: Some(1 << 30),
            ..StreamLimits::default()
        },
        control: StreamLimits::default(),
    };
    assert_eq!(Config::parse("f", text, &env).unwrap().streams, expected);
    assert_eq!(
        Config::parse("f", "", &env).unwrap().streams,
        Streams::default()
    );
    assert_eq!(
        Config::parse("example", EXAMPLE, &env).unwrap().streams,
        Streams::default(),
        "the example sets nothing"
    );
}
