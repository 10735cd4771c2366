//! The API of Kubernetes, as JSON.

use std::path::Path;

use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};

use super::container::each;

/// A client of an API server with the rights of an administrator.
#[derive(Clone, Debug)]
pub(in super::super) struct Api {
    client: Client,
    server: String,
    token: String,
}

/// A refused request.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Refusal {
    /// The status of HTTP.
    pub(in super::super) code: u16,
    pub(in super::super) message: String,
}

impl Api {
    pub(super) fn new(server: &str, authority: &Path, token: &str) -> Self {
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let certificates =
            Certificate::from_pem_bundle(&std::fs::read(authority).unwrap()).unwrap();
        let client = Client::builder()
            .no_proxy()
            .tls_certs_only(certificates)
            .build()
            .unwrap();
        Self {
            client,
            server: server.to_owned(),
            token: token.to_owned(),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<Value, Refusal> {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.server))
            .bearer_auth(&self.token);
        if let Some((kind, body)) = body {
            request = request.header("content-type", kind).body(body.to_string());
        }
        let failed = |error: reqwest::Error| Refusal {
            code: 0,
            message: format!("{error:?}"),
        };
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let text = answer.text().await.map_err(failed)?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if status.is_success() {
            return Ok(body);
        }
        let message = body["message"]
            .as_str()
            .map_or_else(|| body.to_string(), str::to_owned);
        Err(Refusal {
            code: status.as_u16(),
            message,
        })
    }

    pub(in super::super) async fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Method::GET, path, None).await
    }

    /// The items of a list.
    pub(in super::super) async fn list(&self, path: &str) -> Result<Vec<Value>, Refusal> {
        Ok(each(&self.get(path).await?["items"]).cloned().collect())
    }

    pub(in super::super) async fn create(
        &self,
        path: &str,
        object: &Value,
    ) -> Result<Value, Refusal> {
        self.send(Method::POST, path, Some(("application/json", object)))
            .await
    }

    /// Replaces these fields of an object.
    pub(in super::super) async fn merge(
        &self,
        path: &str,
        fields: &Value,
    ) -> Result<Value, Refusal> {
        self.send(
            Method::PATCH,
            path,
            Some(("application/merge-patch+json", fields)),
        )
        .await
    }

    /// Deletes the object with this uid at once, and no later one of the same name.
    pub(super) async fn delete_exactly(&self, path: &str, uid: &str) -> Result<Value, Refusal> {
        let only = json!({"uid": uid});
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": only});
        self.send(Method::DELETE, path, Some(("application/json", &options)))
            .await
    }

    /// Deletes an object. `seconds` of grace, 0 to delete it at once; `None` for its own.
    pub(in super::super) async fn delete(
        &self,
        path: &str,
        seconds: Option<u64>,
    ) -> Result<Value, Refusal> {
        let options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": seconds});
        self.send(Method::DELETE, path, Some(("application/json", &options)))
            .await
    }
}
