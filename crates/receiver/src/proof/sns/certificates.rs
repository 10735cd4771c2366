//! The certificates with which SNS signs: requested from SNS, kept for a day.
//!
//! SNS serves the end certificate alone, without those of its issuers, so no chain can be built from it. The chain that
//! proves it is the one of the TLS connection to the host of the configured region.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{Client, Url};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::time::Instant;
use webpki::{EndEntityCert, KeyUsage};

use super::message::Message;
use super::topic::Topic;
use crate::proof::Signed;
use crate::response::Rejection;
use tarsy_http::outgoing;

/// The time limit for a request with its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CERTIFICATE_BYTES: usize = 16 * 1024;
/// SNS changes its certificate about once a year.
const MAX_AGE: Duration = Duration::from_hours(24);
/// The time that a certificate is used although it could not be read again.
const MAX_STALE: Duration = Duration::from_hours(7 * 24);
const MAX_CACHED: usize = 64;
/// Forged messages can name certificates that do not exist; this many requests are sent within the interval.
const MAX_REQUESTS: u32 = 60;
/// The number of requests for one address, so that one sender of forged messages does not use up the requests of the
/// others.
const MAX_REQUESTS_PER_ADDRESS: u32 = 10;
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
    requests: Requests,
}

/// The requests within an interval, by the address of the sender.
#[derive(Debug)]
struct Requests {
    interval_began: Instant,
    count: u32,
    by_sender: HashMap<IpAddr, u32>,
}

impl Requests {
    fn new() -> Self {
        Self {
            interval_began: Instant::now(),
            count: 0,
            by_sender: HashMap::new(),
        }
    }

    /// Counts one. Returns whether it may be sent.
    fn begin(&mut self, sender: IpAddr) -> bool {
        if self.interval_began.elapsed() >= REQUESTS_INTERVAL {
            *self = Self::new();
        }
        if self.count >= MAX_REQUESTS {
            return false;
        }
        let of_sender = self.by_sender.entry(sender).or_default();
        if *of_sender >= MAX_REQUESTS_PER_ADDRESS {
            return false;
        }
        *of_sender += 1;
        self.count += 1;
        true
    }
}

#[derive(Clone, Debug)]
struct Cached {
    requested_at: Instant,
    certificate: CertificateDer<'static>,
}

pub(super) fn client() -> reqwest::Result<Client> {
    outgoing::builder()
        .timeout(REQUEST_TIMEOUT)
        .https_only(true)
        .build()
}

impl Certificates {
    /// An empty cache. `client` is [`super::client`] outside tests.
    pub fn new(client: Client) -> Self {
        let state = State {
            cached: HashMap::new(),
            requests: Requests::new(),
        };
        Self {
            client,
            state: Mutex::new(state),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Checks the signature of a message about `topic`, which `signed` has.
    pub(super) async fn verify(
        &self,
        topic: &Topic,
        message: &Message,
        signed: Signed<'_>,
    ) -> Result<(), Rejection> {
        let Some(url) = topic.certificate_url(&message.certificate_url) else {
            let reason = format!("SigningCertURL is not a certificate of {}", topic.host());
            return Err(Rejection::Unproven(reason));
        };
        let certificate = self.certificate(url, signed.sender).await?;
        verify(&certificate, message, signed.now).map_err(Rejection::Unproven)
    }

    /// The certificate, read within a day. One that cannot be read again is used for a week.
    async fn certificate(
        &self,
        url: Url,
        sender: IpAddr,
    ) -> Result<CertificateDer<'static>, Rejection> {
        let (cached, may_request) = self.begin(&url, sender);
        let is_fresh = cached
            .as_ref()
            .is_some_and(|cached| cached.requested_at.elapsed() < MAX_AGE);
        let requested = if is_fresh || !may_request {
            None
        } else {
            Some(self.request(url.clone()).await)
        };
        match (requested, cached) {
            (Some(Ok(certificate)), _) => {
                let mut state = self.state.lock();
                state.cached.insert(
                    url,
                    Cached {
                        requested_at: Instant::now(),
                        certificate: certificate.clone(),
                    },
                );
                Ok(certificate)
            }
            (requested, cached) => {
                if let Some(Err(reason)) = &requested {
                    tracing::warn!(%url, "certificate of sns not read: {reason}");
                }
                let refusal = if requested.is_some() {
                    "the certificate of SNS cannot be read now"
                } else {
                    "too many certificates of SNS were requested within a minute"
                };
                cached
                    .map(|cached| cached.certificate)
                    .ok_or_else(|| Rejection::unavailable(refusal))
            }
        }
    }

    /// The cached certificate. Without a fresh one, counts a request, and returns whether it may be sent.
    fn begin(&self, url: &Url, sender: IpAddr) -> (Option<Cached>, bool) {
        let mut state = self.state.lock();
        state
            .cached
            .retain(|_, cached| cached.requested_at.elapsed() < MAX_STALE);
        let cached = state.cached.get(url).cloned();
        if cached
            .as_ref()
            .is_some_and(|cached| cached.requested_at.elapsed() < MAX_AGE)
        {
            return (cached, false);
        }
        if cached.is_none() && state.cached.len() >= MAX_CACHED {
            let oldest = state
                .cached
                .iter()
                .min_by_key(|(_, cached)| cached.requested_at)
                .map(|(url, _)| url.clone());
            oldest.map(|url| state.cached.remove(&url));
        }
        let may_request = state.requests.begin(sender);
        (cached, may_request)
    }

    async fn request(&self, url: Url) -> Result<CertificateDer<'static>, String> {
        let mut answer = self.client.get(url).send().await.map_err(outgoing::cause)?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(format!(
                "SNS answered with HTTP {}",
                answer.status().as_u16()
            ));
        }
        let mut pem = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(outgoing::cause)? {
            pem.extend_from_slice(&chunk);
            if pem.len() > MAX_CERTIFICATE_BYTES {
                return Err(format!(
                    "the answer has more than {MAX_CERTIFICATE_BYTES} bytes"
                ));
            }
        }
        CertificateDer::from_pem_slice(&pem)
            .map_err(|_| "the answer has no certificate in PEM".to_owned())
    }
}

/// Checks that the certificate is valid now, and that the signature of the message is its own.
fn verify(
    certificate: &CertificateDer<'_>,
    message: &Message,
    now: DateTime<Utc>,
) -> Result<(), String> {
    let certificate = EndEntityCert::try_from(certificate)
        .map_err(|error| format!("certificate of SNS: {error:?}"))?;
    let now = UnixTime::since_unix_epoch(Duration::from_secs(
        u64::try_from(now.timestamp()).unwrap_or_default(),
    ));
    let usage = KeyUsage::server_auth();
    let checked = certificate.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &[],
        &[],
        now,
        usage,
        None,
        None,
    );
    // Its dates and its use are checked first; its issuer is not known here.
    match checked.err() {
        None | Some(webpki::Error::UnknownIssuer) => {}
        Some(error) => return Err(format!("certificate of SNS is not valid: {error:?}")),
    }
    certificate
        .verify_signature(
            webpki::ring::RSA_PKCS1_2048_8192_SHA256,
            message.canonical.as_bytes(),
            &message.signature,
        )
        .map_err(|_| "the signature does not belong to this message".to_owned())
}
