//! A real oauth2-proxy in front of real pages, configured by the values file `sign-in`. Names and passwords stand in a
//! file here, in place of a provider of identities.

use serde_json::json;

use super::super::helm::{Case, Helm, Release, text};
use crate::support::http::{self, Answer};
use crate::support::monitoring::program;
use crate::support::process::Tarsy;
use crate::support::process::ports::free_port;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

const SECRET: &str = "s3cret-of-the-proxy";
/// `otto-sre` with the password `w0rd`, as `htpasswd -s` writes it.
const PEOPLE: &str = "otto-sre:{SHA}NVUSRh9p+aJ3DEoGywog6YZrncU=\n";

/// The files of oauth2-proxy in the release, with the addresses and paths of this machine.
fn configured(
    release: &Release,
    system: &TestSystem,
    (listen, pages): (&str, &str),
) -> [String; 2] {
    let data = &release.object("ConfigMap", "oauth2-proxy")["data"];
    let folder = system.file("").display().to_string();
    let write = |name: &str, text: String| {
        std::fs::write(system.file(name), text).unwrap();
        system.file(name).display().to_string()
    };
    write(
        "cookie-secret",
        "0123456789abcdef0123456789abcdef".to_owned(),
    );
    write("client-secret", "none".to_owned());
    write("secret", SECRET.to_owned());
    let people = write("people", PEOPLE.to_owned());
    let own = |key: &str| text(&data[key]).replace("/secrets/", &folder);
    let common = own("oauth2-proxy.cfg")
        .replace("__Host-tarsy", "tarsy")
        .replace("cookie_secure = true", "cookie_secure = false")
        .replace(
            "skip_provider_button = true",
            "skip_provider_button = false",
        );
    let common =
        format!("{common}htpasswd_file = \"{people}\"\nhtpasswd_user_groups = [\"sre\"]\n");
    let endless =
        "skipDiscovery: true, insecureSkipNonce: true, jwksURL: \"https://sso.example.com/keys\"";
    let rest = own("alpha.yaml")
        .replace("0.0.0.0:4180", listen)
        .replace("http://release-tarsy-web:8476", &format!("http://{pages}"))
        .replace("oidcConfig: {", &format!("loginURL: \"https://sso.example.com/in\"\n    redeemURL: \"https://sso.example.com/t\"\n    oidcConfig: {{{endless}, "));
    [write("oauth2-proxy.cfg", common), write("alpha.yaml", rest)]
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.0\r\nhost: tarsy.example.com\r\n");
    headers
        .iter()
        .for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    if method == "POST" {
        let length = body.len();
        text.push_str(&format!(
            "content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n"
        ));
    }
    format!("{text}\r\n{body}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_through_oauth2_proxy_and_may_ask() {
    let (Some(helm), Some(proxy)) = (Helm::find(), program("TARSY_TEST_OAUTH2_PROXY")) else {
        return;
    };
    let mut system = TestSystem::start(&[]).await;
    system.start_llm_service("127.0.0.1:0").await;
    let release = helm.release(Case::with("sign-in", &json!({})));
    let section = &release.object("ConfigMap", "release-tarsy")["data"]["queue.yaml"];
    std::fs::write(system.file("web.yaml"), text(section)).unwrap();
    let own = system.env(system.database.url());
    let config = system.file("web.yaml").display().to_string();
    let env = [
        &own.each()[..],
        &[
            ("TARSY_CONFIG", config.as_str()),
            ("TARSY_WEB_PROXY_SECRET", SECRET),
        ],
    ]
    .concat();
    let mut web = Tarsy::spawn("web", &["web", "--listen", "127.0.0.1:0"], &env);
    let pages = web.ready().await;

    let listen = format!("127.0.0.1:{}", free_port());
    let [common, rest] = configured(&release, &system, (&listen, &pages));
    let args = [
        format!("--config={common}"),
        format!("--alpha-config={rest}"),
    ];
    let _proxy = Tarsy::spawn_program(&proxy, "oauth2-proxy", &[&args[0], &args[1]], &[]);
    eventually("oauth2-proxy is ready", async || {
        http::try_get(&listen, "/ready")
            .await
            .is_some_and(|answer| answer.status == 200)
    })
    .await;
    let ask = async |method: &str, path: &str, headers: &[(&str, &str)], body: &str| -> Answer {
        http::send(&listen, &request(method, path, headers, body)).await
    };

    // Without a login there is no page, whatever headers a client makes up.
    let forged = [
        ("x-forwarded-email", "root@example.com"),
        ("x-forwarded-groups", "sre"),
        ("x-tarsy-proxy-secret", SECRET),
    ];
    for headers in [&forged[..0], &forged] {
        let answer = ask("GET", "/", headers, "").await;
        assert!(
            answer.status != 200 && !answer.body.contains("investigations"),
            "{answer:?}"
        );
    }
    let answer = ask(
        "POST",
        "/oauth2/sign_in",
        &[],
        "username=otto-sre&password=w0rd&rd=/",
    )
    .await;
    assert_eq!(answer.status, 302, "{answer:?}");
    let cookie = answer
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();

    // The name and the group are those of the login, also where a client sends others.
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    system.follow(session).await.finish().await;
    let forged = [
        ("cookie", cookie.as_str()),
        ("x-forwarded-email", "root@example.com"),
        ("x-auth-request-user", "root"),
    ];
    let page = ask("GET", &format!("/sessions/{session}"), &forged, "").await;
    assert!(
        page.status == 200 && page.body.contains("name=\"question\""),
        "{page:?}"
    );
    let from_page = [&forged[..], &[("sec-fetch-site", "same-origin")]].concat();
    let asked = ask(
        "POST",
        &format!("/sessions/{session}/questions"),
        &from_page,
        "question=Why%3F",
    )
    .await;
    assert_eq!(asked.status, 303, "{asked:?}");
    let by = "SELECT count(*) = 1 FROM timeline_events WHERE event_type = 'user_question' \
              AND metadata->>'asked_by' = 'otto-sre'";
    eventually("the question has the name of the login", async || {
        system.database.holds(by)
    })
    .await;
}
