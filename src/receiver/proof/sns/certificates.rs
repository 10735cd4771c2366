//! The certificates with which SNS signs: requested from SNS, kept for a day.
//!
//! SNS serves the end certificate alone, without those of its issuers, so no chain can be built from it. The chain that
//! proves it is the one of the TLS connection to the host of the configured region.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, Url};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::time::Instant;
use webpki::{EndEntityCert, KeyUsage};

use super::message::Message;
use super::topic::Topic;
use crate::outgoing;
use crate::receiver::response::Rejection;

/// For a request with its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CERTIFICATE_BYTES: usize = 16 * 1024;
/// SNS changes its certificate about once a year.
const MAX_AGE: Duration = Duration::from_hours(24);
const MAX_CACHED: usize = 64;
/// Forged messages can name certificates that do not exist; this many requests are sent within the interval.
const MAX_REQUESTS: u32 = 30;
const REQUESTS_INTERVAL: Duration = Duration::from_mins(1);

/// The certificates of the last day, and the client that requests them.
#[derive(Debug)]
pub struct Certificates {
    client: Client,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cached: HashMap<Url, Cached>,
    interval_began: Instant,
    /// Within the interval.
    requests: u32,
}

#[derive(Debug)]
struct Cached {
    requested_at: Instant,
    certificate: CertificateDer<'static>,
}

pub(super) fn client() -> reqwest::Result<Client> {
    outgoing::builder().timeout(REQUEST_TIMEOUT).https_only(true).build()
}

impl Certificates {
    /// An empty cache. `client` is [`super::client`] outside tests.
    pub fn new(client: Client) -> Self {
        let state = State { cached: HashMap::new(), interval_began: Instant::now(), requests: 0 };
        Self { client, state: Mutex::new(state) }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Checks the signature of a message about `topic`.
    pub(super) async fn verify(&self, topic: &Topic, message: &Message, now: DateTime<Utc>) -> Result<(), Rejection> {
        let Some(url) = topic.certificate_url(&message.certificate_url) else {
            let reason = format!("SigningCertURL is not a certificate of {}", topic.host());
            return Err(Rejection::Unproven(reason));
        };
        let certificate = self.certificate(url).await?;
        verify(&certificate, message, now).map_err(Rejection::Unproven)
    }

    async fn certificate(&self, url: Url) -> Result<CertificateDer<'static>, Rejection> {
        if let Some(cached) = self.begin(&url)? {
            return Ok(cached);
        }
        let certificate = self.request(url.clone()).await.map_err(|reason| {
            tracing::warn!(%url, "certificate of sns not read: {reason}");
            Rejection::unavailable("the certificate of SNS cannot be read now")
        })?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cached.insert(url, Cached { requested_at: Instant::now(), certificate: certificate.clone() });
        Ok(certificate)
    }

    /// The cached certificate; `None` counts a request.
    fn begin(&self, url: &Url) -> Result<Option<CertificateDer<'static>>, Rejection> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cached.retain(|_, cached| cached.requested_at.elapsed() < MAX_AGE);
        if let Some(cached) = state.cached.get(url) {
            return Ok(Some(cached.certificate.clone()));
        }
        if state.cached.len() >= MAX_CACHED {
            let oldest = state.cached.iter().min_by_key(|(_, cached)| cached.requested_at).map(|(url, _)| url.clone());
            oldest.map(|url| state.cached.remove(&url));
        }
        if state.interval_began.elapsed() >= REQUESTS_INTERVAL {
            (state.interval_began, state.requests) = (Instant::now(), 0);
        }
        if state.requests >= MAX_REQUESTS {
            return Err(Rejection::unavailable("too many certificates of SNS were requested within a minute"));
        }
        state.requests += 1;
        Ok(None)
    }

    async fn request(&self, url: Url) -> Result<CertificateDer<'static>, String> {
        let mut answer = self.client.get(url).send().await.map_err(outgoing::cause)?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(format!("SNS answered with HTTP {}", answer.status().as_u16()));
        }
        let mut pem = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(outgoing::cause)? {
            pem.extend_from_slice(&chunk);
            if pem.len() > MAX_CERTIFICATE_BYTES {
                return Err(format!("the answer has more than {MAX_CERTIFICATE_BYTES} bytes"));
            }
        }
        CertificateDer::from_pem_slice(&pem).map_err(|_| "the answer has no certificate in PEM".to_owned())
    }
}

/// Checks that the certificate is valid now, and that the signature of the message is its own.
fn verify(certificate: &CertificateDer<'_>, message: &Message, now: DateTime<Utc>) -> Result<(), String> {
    let certificate = EndEntityCert::try_from(certificate).map_err(|error| format!("certificate of SNS: {error:?}"))?;
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.timestamp()).unwrap_or_default()));
    let usage = KeyUsage::server_auth();
    let checked = certificate.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &[], &[], now, usage, None, None);
    // Its dates and its use are checked first; its issuer is not known here.
    match checked.err() {
        None | Some(webpki::Error::UnknownIssuer) => {}
        Some(error) => return Err(format!("certificate of SNS is not valid: {error:?}")),
    }
    let (text, signature) = (message.canonical.as_bytes(), message.signature.as_slice());
    let verified = certificate.verify_signature(webpki::ring::RSA_PKCS1_2048_8192_SHA256, text, signature);
    verified.map_err(|_| "the signature does not belong to this message".to_owned())
}
