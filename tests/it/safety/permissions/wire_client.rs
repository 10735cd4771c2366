//! A client that writes the protocol of NATS itself, so that each refusal of the server belongs to one command:
//! <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::PASSWORD;
use crate::support::nats::NatsServer;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct WireClient {
    stream: BufReader<TcpStream>,
    subscriptions: usize,
}

impl WireClient {
    pub(super) async fn connect(server: &NatsServer, user: &str) -> Self {
        let url = server.url();
        let stream = TcpStream::connect(url.trim_start_matches("nats://"))
            .await
            .unwrap();
        let mut client = Self {
            stream: BufReader::new(stream),
            subscriptions: 0,
        };
        let connect = json!({"verbose": false, "pedantic": false, "tls_required": false, "user": user, "pass": PASSWORD,
            "name": "matrix", "lang": "test", "version": "0", "headers": true, "no_responders": true});
        let answers = client.command(&format!("CONNECT {connect}\r\n")).await;
        assert!(
            !answers.iter().any(|line| line.starts_with("-ERR")),
            "{user}: {answers:?}"
        );
        client
    }

    /// Whether the server permits this.
    pub(super) async fn publish(&mut self, subject: &str, payload: &str) -> bool {
        self.publish_with_reply(subject, "", payload).await
    }

    /// Whether the server permits this. A reply goes to `reply`.
    pub(super) async fn publish_with_reply(
        &mut self,
        subject: &str,
        reply: &str,
        payload: &str,
    ) -> bool {
        self.is_permitted(&format!(
            "PUB {subject} {reply} {}\r\n{payload}\r\n",
            payload.len()
        ))
        .await
    }

    /// Whether the server permits this.
    pub(super) async fn subscribe(&mut self, subject: &str) -> bool {
        self.subscriptions += 1;
        let id = self.subscriptions;
        self.is_permitted(&format!("SUB {subject} {id}\r\n")).await
    }

    async fn is_permitted(&mut self, command: &str) -> bool {
        let answers = self.command(command).await;
        let refused = answers
            .iter()
            .any(|line| line.starts_with("-ERR 'Permissions Violation"));
        assert!(
            refused || !answers.iter().any(|line| line.starts_with("-ERR")),
            "{command}: {answers:?}"
        );
        !refused
    }

    /// Sends a command; the server has handled it when it answers the PING after it.
    async fn command(&mut self, command: &str) -> Vec<String> {
        self.stream
            .write_all(format!("{command}PING\r\n").as_bytes())
            .await
            .unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(ANSWER_TIMEOUT, self.stream.read_line(&mut line)).await;
            assert!(
                read.expect("an answer in time").unwrap() > 0,
                "the server has closed the connection: {lines:?}"
            );
            if line.starts_with("PONG") {
                return lines;
            }
            lines.push(line);
        }
    }
}
