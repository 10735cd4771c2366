//! Tests of the system page: what it says of workers that differ, and to whom.

use http_body_util::BodyExt as _;

use crate::api::{KnownWorker, ReportState, System};
use crate::pages::system::system;
use crate::testing::backend::FakeBackend;
use crate::testing::data::system as report_of;
use crate::testing::markup::{check, texts};

#[test]
fn each_worker_has_its_servers_its_providers_and_the_age_of_its_report() {
    let hostile = "<script>x</script>\u{202e}";
    let known = |name: &str, state: ReportState| {
        let mut system = report_of(name, hostile);
        system.report.config.text = (state == ReportState::Current).then(|| hostile.to_owned());
        for server in &mut system.report.servers {
            server.error = Some(hostile.to_owned());
        }
        KnownWorker {
            worker_id: system.report.worker_id,
            name: name.to_owned(),
            state,
            has_status: state == ReportState::Current,
            system: (state != ReportState::Missing).then_some(system),
        }
    };
    let workers = vec![
        known(hostile, ReportState::Current),
        known("w2", ReportState::Stale),
        known("w3", ReportState::Missing),
    ];
    let page = system(&System {
        workers,
        warnings: vec![hostile.to_owned()],
        live: false,
    });
    let page = page.into_string();
    assert_eq!(check(&page).err(), None);
    assert!(
        !page.contains("<script>") && !page.contains('\u{202e}'),
        "{page}"
    );
    let text = texts(&page);
    for words in [
        "The broker is not connected: nothing of this is current.",
        "Its last report is 3.0 s old, and it sends no status: what follows may be wrong.",
        "has sent no report",
        "reachable",
        "unreachable",
        "usable",
        "no key",
        "It has 20 bytes, which is too large for a report",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[tokio::test]
async fn a_reader_whom_the_configuration_does_not_list_sees_no_system_page() {
    let backend = FakeBackend::with_events(3);
    for path in ["/system", "/api/v1/system"] {
        let response = backend.answer(path, &[]).await;
        assert_eq!(response.status().as_u16(), 403, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(body.contains("web.allow.system"), "{body}");
        assert!(!body.contains("k8s"), "{body}");
    }
    let list = backend.answer("/", &[]).await;
    let list = list.into_body().collect().await.unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&list).contains("/system"));
}
