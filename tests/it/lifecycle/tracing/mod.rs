//! Traces and logs of whole processes, with a collector of OpenTelemetry.

mod adapters;
mod collector;
mod content;
mod cost;
mod lines;
mod resumed;
mod slow_collector;
mod transport;
mod whole_trace;

use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use self::collector::{Collector, Span};
use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

/// A system whose processes export their traces to one collector.
struct Traced {
    system: TestSystem,
    collector: Collector,
    /// Variables in addition to those of the system.
    env: Vec<(&'static str, String)>,
}

impl Traced {
    async fn start(watched: &[&str], env: &[(&'static str, &str)]) -> Self {
        Self::start_with(
            Setup {
                watched,
                ..Setup::default()
            },
            &[],
            env,
        )
        .await
    }

    /// Starts everything except workers, with these options of the LLM service.
    async fn start_with(setup: Setup<'_>, options: &[&str], env: &[(&'static str, &str)]) -> Self {
        let (mut system, collector) = (
            TestSystem::start_with(setup).await,
            Collector::start().await,
        );
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.clone());
        let env = env.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let env: Vec<_> = env.chain([endpoint]).collect();
        let variables = borrowed(&env);
        system
            .replace_llm_service(&[&["--pace", "0ms"], options].concat(), &variables)
            .await;
        Self {
            system,
            collector,
            env,
        }
    }

    fn spawn(&self, name: &str, args: &[&str]) -> Tarsy {
        self.spawn_with(name, args, &[])
    }

    fn spawn_with(&self, name: &str, args: &[&str], more: &[(&str, &str)]) -> Tarsy {
        let system = self.system.env(self.system.database.url());
        let env = [&system.each()[..], &borrowed(&self.env), more].concat();
        Tarsy::spawn(name, args, &env)
    }

    async fn worker(&self, name: &str) -> Tarsy {
        let mut worker = self.spawn(name, &["worker", "--name", name, "--log", "json"]);
        worker.ready().await;
        worker
    }

    /// Publishes the alert of the drill with `tarsy submit`.
    async fn submit(&self, variables: &[(&str, &str)], options: &[&str]) -> SessionId {
        let file = self.system.file("alert.json");
        std::fs::write(&file, tarsy_drill::builtin("oom-killed").unwrap().alert).unwrap();
        let args = [
            &["submit", file.to_str().unwrap(), "--priority", "critical"],
            options,
        ]
        .concat();
        let mut submit = self.spawn_with("submit", &args, variables);
        let (code, out) = submit.finished().await;
        assert_eq!(code, 0, "{}", submit.log());
        SessionId::parse(out.trim()).unwrap()
    }

    async fn completed(&self, session: SessionId) {
        let mut timeline = self.system.follow(session).await;
        assert_eq!(
            timeline.finish().await.event_type,
            EventType::SessionCompleted
        );
    }

    /// Ends these processes and the LLM service in order, so that everything is exported; returns all spans.
    async fn ended(&mut self, workers: &mut [&mut Tarsy]) -> Vec<Span> {
        for process in workers
            .iter_mut()
            .map(|worker| &mut **worker)
            .chain([&mut self.system.llm])
        {
            process.terminate();
            assert_eq!(process.finished().await.0, 0, "{}", process.log());
        }
        self.collector.spans()
    }
}

fn borrowed<'a>(env: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    env.iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// The spans with this beginning of a name.
fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans
        .iter()
        .filter(|span| span.name.starts_with(name))
        .collect()
}

/// The name of the parent; `-` if no span has its id.
fn parent_of<'a>(spans: &'a [Span], span: &Span) -> &'a str {
    spans
        .iter()
        .find(|other| other.id == span.parent)
        .map_or("-", |parent| parent.name.as_str())
}

fn trace_of(session: SessionId) -> String {
    session.to_string().replace('-', "")
}
