//! Adds parameters to a connection string. Everything that the operator wrote is kept; the two `options` are joined.
//!
//! Parses both forms of libpq, URLs and keywords, as far as this requires.

/// Adds parameters and command-line options of the server. Later values win, so these override the operator's.
pub(super) fn with(address: &str, parameters: &[(&str, String)], options: &str) -> String {
    let form = ConnectionString::parse(address);
    let own = form.value("options").or_else(|| {
        std::env::var("PGOPTIONS")
            .ok()
            .map(|own| form.written(&own))
    });
    let options = match own {
        Some(own) if !own.is_empty() => format!("{own}{}", form.written(&format!(" {options}"))),
        Some(_) | None => form.written(options),
    };
    let mut all = address.to_owned();
    for (key, value) in parameters {
        all = form.add(all, key, &form.written(value));
    }
    form.add(all, "options", &options)
}

/// Whether the address, or a variable or service file that libpq reads, may set `target_session_attrs`.
pub(super) fn may_set_session_attributes(address: &str) -> bool {
    may_set(address, "target_session_attrs", "PGTARGETSESSIONATTRS")
}

/// Whether the address, or a variable or service file that libpq reads, may set `sslmode`.
pub(super) fn may_set_tls_mode(address: &str) -> bool {
    may_set(address, "sslmode", "PGSSLMODE")
}

/// A service file may set any parameter.
fn may_set(address: &str, parameter: &str, variable: &str) -> bool {
    let form = ConnectionString::parse(address);
    let is_in_address = |key: &str| form.value(key).is_some();
    let is_in_environment = |name: &str| std::env::var_os(name).is_some();
    is_in_address(parameter)
        || is_in_address("service")
        || is_in_environment(variable)
        || is_in_environment("PGSERVICE")
}

/// Whether the address lists more than one server.
pub(super) fn names_several_servers(address: &str) -> bool {
    match ConnectionString::parse(address) {
        ConnectionString::Url { servers, .. } => servers.contains(','),
        form @ ConnectionString::Words(_) => ["host", "hostaddr"]
            .iter()
            .filter_map(|key| form.value(key))
            .any(|v| v.contains(',')),
    }
}

/// Whether the address, or a variable that libpq reads, asks for a session that may write.
pub(super) fn wants_read_write(address: &str) -> bool {
    let own = ConnectionString::parse(address).value("target_session_attrs");
    own.or_else(|| std::env::var("PGTARGETSESSIONATTRS").ok())
        .is_some_and(|wanted| wanted == "read-write")
}

/// Whether the address lists several servers of which the one that takes writes is wanted.
pub(super) fn chooses_among_servers(address: &str) -> bool {
    let wanted = ConnectionString::parse(address).value("target_session_attrs");
    let is_primary =
        wanted.is_some_and(|wanted| ["read-write", "primary"].contains(&wanted.as_str()));
    is_primary && each_server(address).len() > 1
}

/// The address for each of its servers alone. Empty where libpq reads them from elsewhere (`hostaddr`, a service).
pub(super) fn each_server(address: &str) -> Vec<String> {
    let form = ConnectionString::parse(address);
    if form.value("service").is_some() || form.value("hostaddr").is_some() {
        return Vec::new();
    }
    let servers = match (&form, form.value("host")) {
        (ConnectionString::Url { servers, .. }, None) => servers
            .split('/')
            .next()
            .unwrap_or_default()
            .split(',')
            .map(host_and_port)
            .collect(),
        (_, hosts) => paired(
            &hosts.unwrap_or_default(),
            &form.value("port").unwrap_or_default(),
        ),
    };
    let mut addresses = Vec::new();
    for (host, port) in servers {
        let address = form.add(address.to_owned(), "host", &host);
        addresses.push(form.add(address, "port", port.as_deref().unwrap_or("5432")));
    }
    addresses
}

/// A server of a URL, for example `db-1:5432` or `[::1]:5432`.
fn host_and_port(server: &str) -> (String, Option<String>) {
    match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (
            host.trim_matches(['[', ']']).to_owned(),
            Some(port.to_owned()).filter(|port| !port.is_empty()),
        ),
        Some(_) | None => (server.trim_matches(['[', ']']).to_owned(), None),
    }
}

/// The servers of two lists; one port may stand for all.
fn paired(hosts: &str, ports: &str) -> Vec<(String, Option<String>)> {
    let ports: Vec<&str> = ports.split(',').filter(|port| !port.is_empty()).collect();
    let mut servers = Vec::new();
    for (index, host) in hosts.split(',').enumerate() {
        let port = ports.get(index).or_else(|| ports.first());
        servers.push((host.to_owned(), port.map(ToString::to_string)));
    }
    servers
}

enum ConnectionString<'a> {
    /// `query` is without its `?`.
    Url {
        servers: &'a str,
        query: Option<&'a str>,
    },
    /// Keywords with their values, without quotes.
    Words(Vec<(String, String)>),
}

impl<'a> ConnectionString<'a> {
    fn parse(address: &'a str) -> Self {
        let Some((_, rest)) = address.split_once("://") else {
            return Self::Words(words(address));
        };
        // A password may contain a question mark, a query may contain an @.
        let servers = match rest.split_once('@') {
            Some((user, servers)) if !user.contains('/') => servers,
            Some(_) | None => rest,
        };
        let (servers, query) = match servers.split_once('?') {
            Some((servers, query)) => (servers, Some(query)),
            None => (servers, None),
        };
        Self::Url { servers, query }
    }

    /// The value of a parameter, escaped as this form writes it.
    fn value(&self, key: &str) -> Option<String> {
        match self {
            Self::Url { query, .. } => {
                let mut pairs = query
                    .unwrap_or_default()
                    .split('&')
                    .filter_map(|pair| pair.split_once('='));
                pairs
                    .rfind(|(name, _)| *name == key)
                    .map(|(_, value)| value.to_owned())
            }
            Self::Words(words) => words
                .iter()
                .rfind(|(name, _)| name == key)
                .map(|(_, value)| self.written(value)),
        }
    }

    /// Escapes a value as this form writes it; keyword values are without their quotes.
    fn written(&self, value: &str) -> String {
        match self {
            Self::Url { .. } => value.bytes().fold(String::new(), |mut out, byte| {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    out.push(char::from(byte));
                } else {
                    out.push_str(&format!("%{byte:02X}"));
                }
                out
            }),
            Self::Words(_) => value.replace('\\', "\\\\").replace('\'', "\\'"),
        }
    }

    fn add(&self, address: String, key: &str, written: &str) -> String {
        match self {
            Self::Url { .. } => {
                let joint = if has_query(&address) { '&' } else { '?' };
                format!("{address}{joint}{key}={written}")
            }
            Self::Words(_) => format!("{address} {key}='{written}'"),
        }
    }
}

fn has_query(address: &str) -> bool {
    matches!(
        ConnectionString::parse(address),
        ConnectionString::Url { query: Some(_), .. }
    )
}

/// Parses `key = value` pairs, with or without quotes. It stops at a syntax error, which libpq reports.
fn words(text: &str) -> Vec<(String, String)> {
    let mut chars = text.chars().peekable();
    let mut found = Vec::new();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_whitespace() && *c != '=') {
            key.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if key.is_empty() || chars.next_if_eq(&'=').is_none() {
            return found;
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let is_quoted = chars.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        while let Some(c) = chars.next_if(|c| {
            if is_quoted {
                *c != '\''
            } else {
                !c.is_whitespace()
            }
        }) {
            let escaped = if c == '\\' { chars.next() } else { Some(c) };
            value.extend(escaped);
        }
        if is_quoted {
            chars.next();
        }
        found.push((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_added_to_both_forms_of_address_and_options_are_joined() {
        let parameters = [("a", "b c'".to_owned())];
        let cases = [
            (
                "postgres://h/db",
                "postgres://h/db?a=b%20c%27&options=-c%20x%3D1",
            ),
            (
                "postgres://u:p?w@h/db",
                "postgres://u:p?w@h/db?a=b%20c%27&options=-c%20x%3D1",
            ),
            (
                "postgres://h/db?password=a@b",
                "postgres://h/db?password=a@b&a=b%20c%27&options=-c%20x%3D1",
            ),
            (
                "postgres://h/db?options=-csearch_path%3Dt",
                "postgres://h/db?options=-csearch_path%3Dt&a=b%20c%27&options=-csearch_path%3Dt%20-c%20x%3D1",
            ),
            (
                "host=h dbname=db",
                r"host=h dbname=db a='b c\'' options='-c x=1'",
            ),
            (
                r"options = '-c search_path=\'t\'' host=h",
                r"options = '-c search_path=\'t\'' host=h a='b c\'' options='-c search_path=\'t\' -c x=1'",
            ),
        ];
        for (address, expected) in cases {
            assert_eq!(with(address, &parameters, "-c x=1"), expected);
        }
    }

    #[test]
    fn each_server_of_an_address_is_addressed_alone() {
        let primary = "target_session_attrs=read-write";
        for (address, servers) in [
            (
                format!("postgres://u:p@h:1,[::1]:2,i/db?{primary}"),
                vec!["host=h&port=1", "host=::1&port=2", "host=i&port=5432"],
            ),
            (
                format!("postgres:///db?host=h,i&port=1,2&{primary}"),
                vec!["host=h&port=1", "host=i&port=2"],
            ),
            (
                format!("host=h,i port=7 {primary}"),
                vec!["host='h' port='7'", "host='i' port='7'"],
            ),
            (
                format!("postgres://h/db?{primary}"),
                vec!["host=h&port=5432"],
            ),
            (format!("hostaddr=10.0.0.1,10.0.0.2 {primary}"), vec![]),
        ] {
            let joint = if address.contains("://") { '&' } else { ' ' };
            let expected: Vec<String> = servers
                .iter()
                .map(|server| format!("{address}{joint}{server}"))
                .collect();
            assert_eq!(each_server(&address), expected);
            assert_eq!(
                chooses_among_servers(&address),
                servers.len() > 1,
                "{address}"
            );
        }
        assert!(!chooses_among_servers(
            "postgres://h,i/db?target_session_attrs=any"
        ));
    }

    #[test]
    fn session_attributes_and_several_servers_are_found_in_an_address() {
        for (address, kind, several) in [
            ("postgres://h/db", false, false),
            ("postgres://u:a,b@h/db", false, false),
            ("postgres://h,i/db?target_session_attrs=any", true, true),
            ("host=h,i", false, true),
            ("host=h target_session_attrs=primary", true, false),
            ("service=tarsy", true, false),
        ] {
            assert_eq!(
                (
                    may_set_session_attributes(address),
                    names_several_servers(address)
                ),
                (kind, several),
                "{address}"
            );
        }
    }
}
