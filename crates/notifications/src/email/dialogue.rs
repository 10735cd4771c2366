//! The dialogue with a mail server: the connection, TLS, the login, and one message.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Severity;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::lines::Lines;
use super::message::Email;
use super::verdict::{Failure, Part};
use crate::guard;
use tarsy_config::{EmailRoute, Smtp, SmtpTls};

/// The time limit for a connection to one of a server's addresses.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The answer after which the content follows.
const GO_AHEAD: u16 = 354;

/// A connection on which messages may be sent.
pub(super) struct Dialogue(AsyncSmtpConnection);

impl Dialogue {
    /// Connects, protects the connection as the route wants, and sends the password if there is one.
    ///
    /// # Errors
    /// When the server cannot be reached so, or refuses the password.
    pub(super) async fn open(
        route: &EmailRoute,
        credentials: Option<&Credentials>,
    ) -> Result<Self, Failure> {
        let smtp = &route.smtp;
        let hello = ClientId::Domain(route.from.email.domain().to_owned());
        let addresses = addresses(smtp).await.map_err(ours)?;
        let mut connection = match smtp.tls {
            SmtpTls::Required => {
                let tls = tls(smtp).await.map_err(ours)?;
                AsyncSmtpConnection::connect_tokio1(
                    addresses.as_slice(),
                    Some(CONNECT_TIMEOUT),
                    &hello,
                    Some(tls),
                    None,
                )
                .await
                .map_err(of_connection)?
            }
            SmtpTls::Starttls => {
                let tls = tls(smtp).await.map_err(ours)?;
                let mut connection = plain(&addresses, &hello).await?;
                if !connection.can_starttls() {
                    return Err(ours("the server offers no STARTTLS".to_owned()));
                }
                let secured = connection.starttls(tls, &hello).await;
                secured.map_err(of_connection)?;
                connection
            }
            SmtpTls::None => plain(&addresses, &hello).await?,
        };
        if let Some(credentials) = credentials {
            let taken = connection.auth(DEFAULT_MECHANISMS, credentials).await;
            taken.map_err(|error| Failure::new(Part::Login, &error))?;
        }
        Ok(Self(connection))
    }

    /// Names sender and recipients, and returns the answers that refuse a recipient for ever.
    ///
    /// # Errors
    /// When the sender is refused, or a recipient for now: then no recipient gets the message yet.
    pub(super) async fn name(&mut self, email: &Email) -> Result<Vec<String>, Failure> {
        let sender = Mail::new(Some(email.from.clone()), Vec::new());
        let named = self.0.command(sender).await;
        named.map_err(|error| Failure::new(Part::Sender, &error))?;

        let mut refused = Vec::new();
        for recipient in &email.to {
            let named = self
                .0
                .command(Rcpt::new(recipient.clone(), Vec::new()))
                .await;
            if let Err(error) = named {
                let failure = Failure::new(Part::Recipient, &error);
                if !failure.is_final() {
                    return Err(failure);
                }
                refused.push(format!("{recipient}: {failure}"));
            }
        }
        Ok(refused)
    }

    /// Asks whether the content may follow.
    ///
    /// # Errors
    /// When it may not.
    pub(super) async fn ask(&mut self) -> Result<(), Failure> {
        let answer = self.0.command(Data).await;
        let answer = answer.map_err(|error| Failure::new(Part::Data, &error))?;
        if answer.has_code(GO_AHEAD) {
            return Ok(());
        }
        let reason = format!("SMTP {} to DATA", answer.code());
        Err(Failure::of_ours(Part::Data, reason))
    }

    /// Sends the content.
    ///
    /// # Errors
    /// When the server refuses it, or does not answer.
    pub(super) async fn content(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let answer = self.0.message(bytes).await;
        let answer = answer.map_err(|error| Failure::new(Part::Content, &error))?;
        if answer.code().severity == Severity::PositiveCompletion {
            return Ok(());
        }
        let reason = format!("SMTP {} to the message", answer.code());
        Err(Failure::of_ours(Part::Content, reason))
    }

    /// Takes leave; the answer does not matter.
    pub(super) async fn quit(&mut self) {
        if !self.0.has_broken() {
            self.0.quit().await.ok();
        }
    }
}

fn ours(reason: String) -> Failure {
    Failure::of_ours(Part::Connection, reason)
}

fn of_connection(error: lettre::transport::smtp::Error) -> Failure {
    Failure::new(Part::Connection, &error)
}

/// The addresses that this route may reach. Without TLS these are of this machine, unless the operator permits others;
/// with a password always.
async fn addresses(smtp: &Smtp) -> Result<Vec<SocketAddr>, String> {
    let mut addresses = guard::addresses(&smtp.host, smtp.port).await?;
    if smtp.tls == SmtpTls::None && (smtp.login.is_some() || !smtp.allow_plaintext) {
        addresses.retain(|address| address.ip().to_canonical().is_loopback());
    }
    if addresses.is_empty() {
        return Err(format!(
            "{} is not this machine, and tls is none",
            smtp.host
        ));
    }
    Ok(addresses)
}

/// A connection without TLS, after the greeting.
async fn plain(addresses: &[SocketAddr], hello: &ClientId) -> Result<AsyncSmtpConnection, Failure> {
    let stream = connected(addresses)
        .await
        .map_err(|error| ours(format!("it cannot be reached: {error}")))?;
    AsyncSmtpConnection::connect_with_transport(Box::new(Lines(stream)), hello)
        .await
        .map_err(of_connection)
}

async fn connected(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_elapsed) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// TLS with the authorities of the system and those of `ca_file`. They are read each time, on a thread for files.
async fn tls(smtp: &Smtp) -> Result<TlsParameters, String> {
    let host = smtp.host.clone();
    let file = smtp.ca_file.clone();
    let built = tokio::task::spawn_blocking(move || parameters(host, file.as_deref()));
    built.await.map_err(|error| format!("no TLS: {error}"))?
}

fn parameters(host: String, ca_file: Option<&str>) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host);
    if let Some(file) = ca_file {
        let fault = |reason: &str| format!("smtp.ca_file cannot be used: {reason}");
        let pem = std::fs::read(file).map_err(|error| fault(&error.to_string()))?;
        let is_pem = String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----");
        let certificate = if is_pem {
            Certificate::from_pem(&pem).ok()
        } else {
            None
        };
        let certificate = certificate.ok_or_else(|| fault("it has no certificate in PEM"))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(|error| format!("no TLS: {error}"))
}
