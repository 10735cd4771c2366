//! `tarsy doctor` and `tarsy health`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use reqwest::{Client, StatusCode};

use super::addresses;
use super::output::{json_line, print, style};
use crate::admin::doctor;
use crate::admin::models::Ask;
use crate::cli::args::{DoctorArgs, GlobalArgs, HealthArgs};
use crate::cli::exit::Exit;
use crate::cli::render::tables::checks;
use tarsy_config::find;

pub(super) async fn doctor(global: &GlobalArgs, args: DoctorArgs) -> anyhow::Result<Exit> {
    let style = style();
    let mut found = Vec::new();
    let ask = if args.no_probe {
        Ask::Nothing
    } else {
        Ask::OneWord(doctor::PROBE_TIMEOUT)
    };
    let mut checks = if args.permissions {
        doctor::permissions::run(&addresses(global)).boxed()
    } else {
        doctor::run(&addresses(global), find(global.config.clone()), ask).boxed()
    };
    while let Some(check) = checks.next().await {
        let lines = if args.json {
            vec![json_line(&check)?]
        } else {
            checks::check(&check, &style)
        };
        print(&lines)?;
        found.push(check);
    }
    if !args.json {
        print(&[checks::sum(&found)])?;
    }
    let failed = found
        .iter()
        .any(|check| check.verdict == doctor::Verdict::Fail);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// Asks `/readyz`, for a container without a shell and without an HTTP client.
pub(super) async fn health(args: HealthArgs) -> anyhow::Result<Exit> {
    let (status, body) = fetched(args.address, "/readyz", args.timeout)
        .await
        .with_context(|| format!("no answer from {}", args.address))?;
    print(&[body.trim_end().to_owned()])?;
    let ready = status.is_success();
    Ok(if ready { Exit::Done } else { Exit::Failed })
}

/// The answer of a role of this machine to a request of this path.
pub(super) async fn fetched(
    address: SocketAddr,
    path: &str,
    timeout: Duration,
) -> reqwest::Result<(StatusCode, String)> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    // The role is on this machine: neither a proxy nor certificate authorities are needed.
    let client = Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .timeout(timeout)
        .build()?;
    let answer = client.get(format!("http://{address}{path}")).send().await?;
    Ok((answer.status(), answer.text().await?))
}
