//! Real servers over streamable HTTP.

use std::path::Path;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::cluster::Cluster;
use super::content::{check, everything};
use super::investigation::{call, results};
use super::programs::{Node, line};
use crate::support::process::Tarsy;
use crate::support::process::ports::free_port;
use crate::support::wait::eventually;

/// A server that listens; it ends when the value is dropped.
struct HttpServer {
    url: String,
    _process: Tarsy,
}

impl HttpServer {
    /// Starts a program, with this port in place of `PORT`.
    async fn start(program: &str, args: &[&str]) -> Self {
        // The programs print no address.
        let port = free_port().to_string();
        let args: Vec<&str> = args
            .iter()
            .map(|arg| if *arg == "PORT" { port.as_str() } else { arg })
            .collect();
        let process = Tarsy::spawn_program(Path::new(program), program, &args, &[("PORT", &port)]);
        let address = format!("127.0.0.1:{port}");
        eventually("the server listens", async || {
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
        Self {
            url: format!("http://{address}/mcp"),
            _process: process,
        }
    }

    fn config(&self) -> Value {
        json!({"url": self.url})
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_content_over_http_reaches_the_model_as_text() {
    let Some(node) = Node::find("http") else {
        return;
    };
    let server =
        HttpServer::start(&node.program("mcp-server-everything"), &["streamableHttp"]).await;
    check(&line("all", &server.config()), &everything()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_a_foreign_server_over_http_extends_a_call() {
    let Some(node) = Node::find("http") else {
        return;
    };
    let server =
        HttpServer::start(&node.program("mcp-server-everything"), &["streamableHttp"]).await;
    let mut config = server.config();
    config["tool_timeout"] = json!("2s");
    let operation = call(
        "all.trigger-long-running-operation",
        &json!({"duration": 5, "steps": 10}),
    );
    let shown = results(&line("all", &config), &[operation]).await;
    assert_eq!(
        shown[0].content,
        "Long running operation completed. Duration: 5 seconds, Steps: 10."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_read_over_http() {
    let Some(node) = Node::find("http") else {
        return;
    };
    let Some(cluster) = Cluster::checkout("http").await else {
        return;
    };
    let kubeconfig = cluster.kubeconfig();
    let args = [
        "--read-only",
        "--bind-address",
        "127.0.0.1",
        "--kubeconfig",
        &kubeconfig,
        "--port",
        "PORT",
    ];
    let server = HttpServer::start(&node.program("kubernetes-mcp-server"), &args).await;
    let calls = [
        call(
            "kubernetes.pods_list_in_namespace",
            &json!({"namespace": "checkout"}),
        ),
        call(
            "kubernetes.pods_get",
            &json!({"namespace": "checkout", "name": "checkout-7d9f8b6c5-x2x9p"}),
        ),
    ];
    let shown = results(&line("kubernetes", &server.config()), &calls).await;
    assert_eq!(
        shown[0].content.matches("checkout-7d9f8b6c5-").count(),
        3,
        "{shown:#?}"
    );
    assert!(shown[1].content.contains("reason: OOMKilled"), "{shown:#?}");
}
