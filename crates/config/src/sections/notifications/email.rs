//! The e-mail of a route: the server that takes it, the sender, and the recipients.

use lettre::Address;
use lettre::message::Mailbox;
use serde_json::{Map as Object, Value, json};

use super::kind::{Keys, secret};
use crate::read::reader::{Field, Map};
use crate::secret::SecretSource;
use crate::write::Written as _;

/// The most recipients of a route. A longer list belongs to the mail server, behind one address.
const MAX_RECIPIENTS: usize = 50;
const ADDRESS: &str = "an address such as tarsy@example.com, or Name <tarsy@example.com>";
const HOST: &str = "a host name or an IP address, without a port";
/// The characters of a local part without quotation marks, beside letters and digits.
const LOCAL: &str = ".!#$%&'*+/=?^_`{|}~-";
/// The port at which TLS begins with the connection.
const SUBMISSIONS: u16 = 465;

/// The e-mail of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailRoute {
    pub smtp: Smtp,
    pub from: Mailbox,
    /// At least one.
    pub to: Vec<Mailbox>,
}

/// The server that takes the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smtp {
    /// A name, or an address without brackets.
    pub host: String,
    pub port: u16,
    pub tls: SmtpTls,
    /// Without TLS also other hosts than this one are reached; never with a password.
    pub allow_plaintext: bool,
    pub login: Option<SmtpLogin>,
    /// Authorities beside those of the system.
    pub ca_file: Option<String>,
}

/// The name and password for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpLogin {
    pub username: String,
    pub password: SecretSource,
}

/// The protection of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SmtpTls {
    /// TLS from the first byte.
    Required,
    /// TLS before the sender is named; a server without it is refused.
    Starttls,
    None,
}

tarsy_core::words!(pub SmtpTls, pub ALL);

impl EmailRoute {
    pub(super) fn read(map: &mut Map<'_>) -> Option<Self> {
        let smtp = map
            .required("smtp", "the server, with its host")
            .and_then(|field| field.section(|map| Smtp::read(map)));
        let from = map
            .required("from", ADDRESS)
            .and_then(|field| mailbox(&field));
        let to = recipients(map);
        Some(Self {
            smtp: smtp?,
            from: from?,
            to: to?,
        })
    }

    /// The keys as they are written.
    pub(super) fn written(&self) -> Object<String, Value> {
        let text = |mailbox: &Mailbox| Value::from(mailbox.to_string().form());
        let mut keys = Object::new();
        keys.insert("smtp".to_owned(), self.smtp.written());
        keys.insert("from".to_owned(), text(&self.from));
        keys.insert("to".to_owned(), self.to.iter().map(text).collect());
        keys
    }
}

impl Smtp {
    fn read(map: &mut Map<'_>) -> Option<Self> {
        let host = map.required("host", HOST).and_then(|field| host(&field));
        let port = map.get("port").and_then(|field| field.number(1..=65535));
        let port = port.and_then(|port| u16::try_from(port).ok());
        let tls = map
            .get("tls")
            .and_then(|field| field.choice(&SmtpTls::ALL, SmtpTls::as_str));
        let tls = tls.unwrap_or(match port {
            Some(SUBMISSIONS) => SmtpTls::Required,
            Some(_) | None => SmtpTls::Starttls,
        });
        let allow_plaintext = map
            .get("allow_plaintext")
            .and_then(|field| field.flag())
            .unwrap_or_default();
        let smtp = Self {
            port: port.unwrap_or_else(|| tls.port()),
            tls,
            allow_plaintext,
            login: login(map)?,
            ca_file: map.text("ca_file"),
            host: host?,
        };
        smtp.check(map).then_some(smtp)
    }

    /// Whether the connection is protected as far as its content needs; reports what is not.
    fn check(&self, map: &Map<'_>) -> bool {
        if self.tls != SmtpTls::None || is_loopback(&self.host) {
            return true;
        }
        let fault = if self.login.is_some() {
            "a password would be readable on the network; accepted: required, starttls"
        } else if !self.allow_plaintext {
            "messages would be readable on the network; accepted: required, starttls, or none with allow_plaintext: true"
        } else {
            return true;
        };
        map.field().at("tls").fault(fault.to_owned());
        false
    }

    fn written(&self) -> Value {
        let Self {
            host,
            port,
            tls,
            allow_plaintext,
            login,
            ca_file,
        } = self;
        let mut keys = json!({"host": host.form(), "port": port, "tls": tls.as_str()});
        let mut add = Object::new();
        if *allow_plaintext {
            add.insert("allow_plaintext".to_owned(), json!(true));
        }
        if let Some(SmtpLogin { username, password }) = login {
            let written = Keys::PASSWORD.for_secret(password);
            add.insert("username".to_owned(), json!(username.form()));
            add.insert(written.0.to_owned(), json!(written.1.to_owned().form()));
        }
        if let Some(file) = ca_file {
            add.insert("ca_file".to_owned(), json!(file.form()));
        }
        if let Some(keys) = keys.as_object_mut() {
            keys.extend(add);
        }
        keys
    }
}

impl SmtpTls {
    /// The port of servers with this protection.
    fn port(self) -> u16 {
        match self {
            Self::Required => SUBMISSIONS,
            Self::Starttls => 587,
            Self::None => 25,
        }
    }
}

/// Whether a host is this machine by its name. The address is compared again when it is known.
fn is_loopback(host: &str) -> bool {
    let address: Result<std::net::IpAddr, _> = host.parse();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The name and password; `Some(None)` without both, `None` after a fault.
fn login(map: &mut Map<'_>) -> Option<Option<SmtpLogin>> {
    let username = map.text("username");
    let has_source = map.has(Keys::PASSWORD.file) || map.has(Keys::PASSWORD.variable);
    let password = secret(map, Keys::PASSWORD);
    match (username, password) {
        (Some(username), Some(password)) => Some(Some(SmtpLogin { username, password })),
        (None, None) if !has_source && !map.has("username") => Some(None),
        (Some(_), None) if !has_source => {
            map.missing(
                Keys::PASSWORD.file,
                "password_file, or password_env with the name of a variable",
            );
            None
        }
        (None, Some(_)) if !map.has("username") => {
            map.missing("username", "the name that belongs to the password");
            None
        }
        // The source or the name has a fault of its own.
        (_, _) => None,
    }
}

fn host(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let literal = text.trim_start_matches('[').trim_end_matches(']');
    let is_address = literal.parse::<std::net::IpAddr>().is_ok();
    let is_name = !text.is_empty()
        && text.len() <= 253
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if is_address {
        return Some(literal.to_owned());
    }
    if is_name {
        return Some(text);
    }
    field.expected(HOST);
    None
}

fn recipients(map: &mut Map<'_>) -> Option<Vec<Mailbox>> {
    let field = map.required("to", "a list of addresses")?;
    let items = field.list()?;
    if items.is_empty() || items.len() > MAX_RECIPIENTS {
        field.expected(&format!("1 to {MAX_RECIPIENTS} addresses"));
        return None;
    }
    let read: Vec<Option<Mailbox>> = items.iter().map(mailbox).collect();
    read.into_iter().collect()
}

fn mailbox(field: &Field<'_>) -> Option<Mailbox> {
    let text = field.text()?;
    let parsed = parse(&text);
    if parsed.is_none() {
        field.expected(ADDRESS);
    }
    parsed
}

/// An address, alone or behind a name. Stricter than RFC 5322: no quotation marks within a name, no comments, and only
/// ASCII in the address, so that nothing has to be escaped in a command or a header.
fn parse(text: &str) -> Option<Mailbox> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let text = text.trim();
    let Some(named) = text.strip_suffix('>') else {
        return Some(Mailbox::new(None, address(text)?));
    };
    let (name, written) = named.rsplit_once('<')?;
    let name = name.trim();
    let unquoted = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
        .unwrap_or(name);
    if unquoted.contains(['"', '\\', '<', '>']) {
        return None;
    }
    let name = Some(unquoted.to_owned()).filter(|name| !name.trim().is_empty());
    Some(Mailbox::new(name, address(written)?))
}

fn address(text: &str) -> Option<Address> {
    let is_plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '@' || LOCAL.contains(c));
    if is_plain { text.parse().ok() } else { None }
}
