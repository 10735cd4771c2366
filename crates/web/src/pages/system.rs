//! The page `/system`: what workers say of themselves.

use std::time::Duration;

use maud::{Markup, html};

use crate::api::{KnownWorker, ReportState, System};
use crate::ports::WorkerSystem;
use crate::shell::words::{brief, whole};
use tarsy_core::readable::format;
use tarsy_reports::system::{
    ProviderReport, ProviderState, ServerReport, ServerState, ShownConfig,
};

/// The page below its bar.
pub(crate) fn system(system: &System) -> Markup {
    html! {
        div.head { h1 { "System" } }
        @if !system.live { p.banner role="status" { "The broker is not connected: nothing of this is current." } }
        @for warning in &system.warnings { p.banner { (brief(warning, 400)) } }
        @if system.workers.is_empty() {
            div.empty { p { "No worker has sent its status or a report." } p { "Start one: " code { "tarsy worker" } } }
        }
        @for worker in &system.workers { (self::worker(worker)) }
    }
}

fn worker(worker: &KnownWorker) -> Markup {
    let heading = format!("w-{}", worker.worker_id);
    html! {
        section.sys aria-labelledby=(heading) {
            h2 id=(heading) { "Worker " (brief(&worker.name, 80)) }
            @match &worker.system {
                Some(system) => (reported(worker, system)),
                None => p.banner {
                    "It sends its status, but has sent no report: it has started just now, is of an earlier version, or may not \
                     publish on " code { "tarsy.systems.*" } ". Nothing is known of its tools and providers."
                },
            }
        }
    }
}

fn reported(worker: &KnownWorker, system: &WorkerSystem) -> Markup {
    let report = &system.report;
    html! {
        @if worker.state != ReportState::Current {
            p.banner {
                "Its last report is " (ago(system.age_ms)) " old" @if !worker.has_status { ", and it sends no status" }
                ": what follows may be wrong."
            }
        }
        p.meta {
            span { "version " (brief(&report.version, 40)) }
            span { "configuration " code { (brief(&report.config.hash, 40)) } }
            span { "runs for " (ago(report.uptime_ms)) }
            span { "reported " (ago(system.age_ms)) " ago" }
        }
        (servers(&report.servers))
        (providers(&report.providers))
        (config(&report.config))
    }
}

fn ago(ms: u64) -> String {
    format::span(Duration::from_millis(ms))
}

fn servers(servers: &[ServerReport]) -> Markup {
    html! {
        h3 { "Tool servers" }
        @if servers.is_empty() { p.muted { "No tool server is configured." } } @else {
            div.scroll tabindex="0" role="group" aria-label="Tool servers" { table.wide {
                thead { tr {
                    th scope="col" { "server" } th scope="col" { "state" } th.num scope="col" { "read-only" }
                    th.num scope="col" { "changing" } th.num scope="col" { "left out" } th.num scope="col" { "asked" }
                    th scope="col" { "last error" }
                } }
                tbody { @for server in servers { (self::server(server)) } }
            } }
        }
    }
}

fn server(server: &ServerReport) -> Markup {
    let word = match server.state {
        ServerState::Reachable => "reachable",
        ServerState::Unreachable => "unreachable",
        ServerState::NotConnected => "not connected",
        ServerState::NotAsked => "not asked yet",
        ServerState::Unknown => "unknown",
    };
    let is_bad = matches!(
        server.state,
        ServerState::Unreachable | ServerState::Unknown
    );
    let count = |of: fn(&tarsy_reports::system::ToolCounts) -> u32| {
        server
            .tools
            .as_ref()
            .map_or_else(|| "–".to_owned(), |tools| of(tools).to_string())
    };
    html! {
        tr {
            td { (brief(&server.name, 80)) }
            td class=[is_bad.then_some("warn")] { (word) }
            td.num { (count(|tools| tools.read_only)) } td.num { (count(|tools| tools.changing)) }
            td.num { (count(|tools| tools.left_out)) }
            td.num { (server.asked_ms.map_or_else(|| "–".to_owned(), |ms| format!("{} ago", ago(ms)))) }
            td.text { (brief(server.error.as_deref().unwrap_or_default(), 400)) }
        }
    }
}

fn providers(providers: &[ProviderReport]) -> Markup {
    html! {
        h3 { "Providers of models" }
        @if providers.is_empty() { p.muted { "No provider is configured." } } @else {
            div.scroll tabindex="0" role="group" aria-label="Providers" { table.wide {
                thead { tr {
                    th scope="col" { "provider" } th scope="col" { "at the last check" } th.num scope="col" { "checked" }
                    th scope="col" { "error" }
                } }
                tbody { @for provider in providers { (self::provider(provider)) } }
            } }
            p.muted { "Providers are checked before the first claim of a worker, and not again after the first success." }
        }
    }
}

fn provider(provider: &ProviderReport) -> Markup {
    let word = match provider.state {
        ProviderState::Usable => "usable",
        ProviderState::Unusable => "unusable",
        ProviderState::NotKnown => "not known",
        ProviderState::NotChecked => "not checked",
        ProviderState::Unknown => "unknown",
    };
    html! {
        tr {
            td { (brief(&provider.name, 80)) }
            td class=[(provider.state == ProviderState::Unusable).then_some("warn")] { (word) }
            td.num { (provider.checked_ms.map_or_else(|| "–".to_owned(), |ms| format!("{} ago", ago(ms)))) }
            td.text { (brief(provider.error.as_deref().unwrap_or_default(), 400)) }
        }
    }
}

fn config(config: &ShownConfig) -> Markup {
    html! {
        h3 { "Configuration" }
        @match &config.text {
            Some(text) => details.raw {
                summary { "As " code { "tarsy config show" } " prints it, without secrets" }
                pre tabindex="0" { (whole(text)) }
            },
            None => p.banner { "It has " (config.bytes) " bytes, which is too large for a report: tarsy config show prints it." },
        }
    }
}
