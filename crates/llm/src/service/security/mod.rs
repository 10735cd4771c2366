//! Authentication of the service's clients: TLS with or without client certificates, and bearer tokens.
//!
//! The files are read when the service starts, where a fault ends it, and again every two seconds. A new content is
//! used for new connections and calls; a faulty one is logged once, and the last good one stays.

mod tls;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use tonic::codegen::http::HeaderMap;

pub(super) use self::tls::ServerTls;
pub use self::tls::TlsFiles;
use self::tokens::Tokens;
use crate::pem::FileError;
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mask::Mask;

const RELOAD_INTERVAL: Duration = Duration::from_secs(2);

/// The protection of a service. Clones share it. By default there is none.
#[derive(Clone, Debug, Default)]
pub struct Security {
    tls: Option<Arc<ServerTls>>,
    tokens: Option<Arc<Tokens>>,
}

impl Security {
    /// Reads the files. The mask hides every token, from the moment at which it is read.
    ///
    /// # Errors
    /// When one cannot be read, or has no usable content.
    pub fn load(
        tls: Option<TlsFiles>,
        token: Option<TokenSource>,
        mask: &Mask,
    ) -> Result<Self, FileError> {
        Ok(Self {
            tls: tls.map(ServerTls::load).transpose()?.map(Arc::new),
            tokens: token
                .map(|source| Tokens::load(source, mask.clone()))
                .transpose()?
                .map(Arc::new),
        })
    }

    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether only clients with a certificate or a token are served.
    pub fn authenticates(&self) -> bool {
        self.tokens.is_some()
            || self
                .tls
                .as_ref()
                .is_some_and(|tls| tls.asks_for_certificates())
    }

    pub(super) fn tls(&self) -> Option<Arc<ServerTls>> {
        self.tls.clone()
    }

    /// Whether a call with these headers may be answered.
    pub(super) fn permits(&self, headers: &HeaderMap) -> bool {
        self.tokens
            .as_ref()
            .is_none_or(|tokens| tokens.permit(headers))
    }

    /// Reads the files again and again, for as long as it is polled; returns at once if there are none.
    pub(super) async fn keep_up(self) {
        if self.tls.is_none() && self.tokens.is_none() {
            return;
        }
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await; // pacing of reads
            let security = self.clone();
            // A panic of the task would be repeated by the next one.
            tokio::task::spawn_blocking(move || security.reload())
                .await
                .ok();
        }
    }

    fn reload(&self) {
        if let Some(tls) = &self.tls {
            tls.reload();
        }
        if let Some(tokens) = &self.tokens {
            tokens.reload();
        }
    }
}
