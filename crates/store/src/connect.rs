//! The options of a connection, and the store with its pools.

use std::path::PathBuf;
use std::time::Duration;

use diesel::PgConnection;

use super::address;
use super::error::Error;
use super::pool::{self, Addresses, Limits, Newest, Pool};
use super::state::{History, KeptTexts, Outgoing, Positions};
use super::tails::Tails;
use tarsy_config::Secret;
use tarsy_core::approvals::RequestId;
use tarsy_core::ids::SessionId;
use tarsy_core::public_url::PublicUrl;
use tarsy_mask::Mask;

/// The least time that libpq waits for a server, in seconds.
const MIN_CONNECT_SECS: u64 = 2;
/// Rows of `store_probes`: each process writes to one of them.
const PROBE_SLOTS: i16 = 64;

/// The address of the database and the time limits of connections and statements. The `Debug` form leaves the address
/// out, because it may contain a password.
#[derive(Clone)]
pub struct ConnectOptions {
    /// A libpq connection string, as a URL or as keywords.
    pub url: String,
    pub secrets: Secrets,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// The number of connections. Renewals have one more of their own.
    pub pool_size: usize,
    /// The server cancels a statement after this time. The client waits 10 s longer.
    pub statement_timeout: Duration,
    /// The server cancels a statement that has waited for a row for this time.
    pub lock_timeout: Duration,
    /// The time that a call waits for a connection of the pool, how long a new connection tries all servers of the
    /// address together (but 2 s for each), and how long the kernel waits for an acknowledgement of sent bytes.
    pub connect_timeout: Duration,
    /// The period in which a call whose outcome is unknown is sent again.
    pub retry_for: Duration,
    /// Accepts a read-only server, unless the address lists several servers. When `false`, libpq refuses a read-only
    /// server (`target_session_attrs=read-write`), unless the address sets another value.
    pub may_be_read_only: bool,
    /// Every transaction is read-only, whatever rights the role has. Among several servers, or where the address asks
    /// for `read-write`, libpq takes the primary: for a connection that only reads, it knows no writable server.
    pub only_reads: bool,
}

/// The files of a connection. They are read for each connection, so that a renewed password is used without a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Replaces [`ConnectOptions::url`].
    pub address: Option<Secret>,
    /// Replaces the password of the address.
    pub password: Option<Secret>,
    /// The authorities that may have signed the server's certificate. With them the certificate has to fit the host,
    /// unless the address has another `sslmode`.
    pub ca: Option<PathBuf>,
}

impl Secrets {
    /// The texts that may appear nowhere, as far as they can be read now.
    pub fn read(&self) -> Vec<String> {
        [&self.address, &self.password]
            .into_iter()
            .flatten()
            .filter_map(|secret| secret.read().ok())
            .collect()
    }
}

impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("application_name", &self.application_name)
            .field("pool_size", &self.pool_size)
            .finish_non_exhaustive()
    }
}

impl ConnectOptions {
    /// The defaults for a worker.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            secrets: Secrets::default(),
            application_name: "tarsy".to_owned(),
            pool_size: 8,
            statement_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(8),
            connect_timeout: Duration::from_secs(5),
            retry_for: Duration::from_secs(20),
            may_be_read_only: false,
            only_reads: false,
        }
    }

    /// The connection string with all settings that apply from the first statement on, and how to make them through a
    /// pooler, which refuses `options`.
    ///
    /// # Errors
    /// [`Error::Secret`] when a file cannot be read.
    pub(super) fn addresses(&self) -> Result<Addresses, Error> {
        let url = match &self.secrets.address {
            Some(file) => file.read()?,
            None => self.url.clone(),
        };
        // libpq waits for one server after the other, so a silent one must not use up the time of the next.
        let servers = u64::try_from(address::each_server(&url).len())
            .unwrap_or(1)
            .max(1);
        let connect_secs = (self.connect_timeout.as_secs() / servers).max(MIN_CONNECT_SECS);
        let mut parameters = vec![
            ("connect_timeout", connect_secs.to_string()),
            (
                "tcp_user_timeout",
                self.connect_timeout.as_millis().to_string(),
            ),
            ("keepalives", "1".to_owned()),
            ("keepalives_idle", "10".to_owned()),
            ("keepalives_interval", "5".to_owned()),
            ("keepalives_count", "3".to_owned()),
            ("application_name", self.application_name.clone()),
        ];
        if let Some(wanted) = self.wanted_server(&url) {
            parameters.push(("target_session_attrs", wanted.to_owned()));
        }
        if let Some(ca) = &self.secrets.ca {
            parameters.push(("sslrootcert", ca.display().to_string()));
            if !address::may_set_tls_mode(&url) {
                parameters.push(("sslmode", "verify-full".to_owned()));
            }
        }
        if let Some(password) = &self.secrets.password {
            parameters.push(("password", password.read()?));
        }
        let settings = self.settings();
        let options: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("-c {name}={value}"))
            .collect();
        Ok(Addresses {
            direct: address::with(&url, &parameters, &options.join(" ")),
            plain: address::with(&url, &parameters, ""),
            settings: settings
                .iter()
                .map(|(name, value)| format!("SET {name} = '{value}';"))
                .collect(),
        })
    }

    /// The settings of the sessions.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let statement = self.statement_timeout.as_millis().to_string();
        let mut settings = vec![
            ("statement_timeout", statement.clone()),
            ("lock_timeout", self.lock_timeout.as_millis().to_string()),
            ("idle_in_transaction_session_timeout", statement),
        ];
        if self.only_reads {
            settings.push(("default_transaction_read_only", "on".to_owned()));
        }
        settings
    }

    /// The value of `target_session_attrs`, if it is not left to the address.
    fn wanted_server(&self, url: &str) -> Option<&'static str> {
        let wanted = if self.only_reads {
            "primary"
        } else {
            "read-write"
        };
        if address::may_set_session_attributes(url) {
            // libpq refuses a session that is read-only by default.
            return (self.only_reads && address::wants_read_write(url)).then_some(wanted);
        }
        let needs_primary = !self.may_be_read_only || address::names_several_servers(url);
        needs_primary.then_some(wanted)
    }

    /// Runs `work` on a separate connection, outside the pools.
    pub(super) async fn with_connection<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PgConnection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut addresses = self.addresses()?;
        addresses.direct = pool::choose(addresses.direct).await;
        blocking(move || work(&mut addresses.establish()?)).await
    }

    fn pool(&self, size: usize, newest: &Newest) -> Result<Pool, Error> {
        let options = self.clone();
        // A new connection may have to try several servers.
        let limits = Limits {
            size,
            wait: self.connect_timeout,
            create: 2 * self.connect_timeout,
            statement: self.statement_timeout,
        };
        pool::build(limits, newest.clone(), move || options.addresses())
    }
}

/// Runs `work` where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Broken(error.to_string()))?
}

/// The load of the pool that sessions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The most connections that it opens.
    pub size: usize,
    /// Connections that run a statement.
    pub in_use: usize,
    /// Statements that wait for a connection.
    pub waiting: usize,
}

/// The database: implements the store ports of the engine. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) pool: Pool,
    pub(super) renewals: Pool,
    /// The longest time that one try of a call may take; the outcome of a longer one is unknown.
    pub(super) call_timeout: Duration,
    pub(super) retry_for: Duration,
    /// The row that the probe of this process writes to.
    pub(super) probe_slot: i16,
    pub(super) mask: Mask,
    /// Events that end a session carry a link that begins with it.
    pub(super) public_url: Option<PublicUrl>,
    pub(super) outgoing: Outgoing,
    /// The position that pruning has reached.
    pub(super) positions: Positions,
    /// The position that adding words to old sessions has reached.
    pub(super) history: History,
    /// The texts of skills that this process has stored.
    pub(super) kept_texts: KeptTexts,
    pub(super) tails: Tails,
}

impl Store {
    /// Builds the pools without connecting: a worker can start while the database is unavailable.
    ///
    /// # Errors
    /// When a pool cannot be built from the options.
    pub fn new(options: &ConnectOptions) -> Result<Self, Error> {
        let newest = Newest::default();
        Ok(Self {
            pool: options.pool(options.pool_size, &newest)?,
            renewals: options.pool(1, &newest)?,
            call_timeout: options.statement_timeout + Duration::from_secs(10),
            retry_for: options.retry_for,
            probe_slot: fastrand::i16(0..PROBE_SLOTS),
            mask: Mask::default(),
            public_url: None,
            outgoing: Outgoing::default(),
            positions: Positions::default(),
            history: History::default(),
            kept_texts: KeptTexts::default(),
            tails: Tails::default(),
        })
    }

    /// Looks, every five seconds at most, whether another server of the address was promoted. Connections to the old
    /// one are then not used again. The probe of a worker does the same.
    pub async fn look_for_a_newer_primary(&self) {
        self.pool.manager().look_for_a_newer_primary().await;
    }

    /// The same store with this mask. It is applied to the headers and subject of a settled message, and to the reason
    /// of a dead letter.
    #[must_use]
    pub fn masking(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    /// The same store; the events by which it ends sessions, and its reports, carry a link to the page of the session.
    #[must_use]
    pub fn linking(self, public_url: Option<PublicUrl>) -> Self {
        Self { public_url, ..self }
    }

    pub(super) fn link(&self, session: SessionId) -> Option<String> {
        self.public_url.as_ref().map(|url| url.session(session))
    }

    /// The address of the page of a request for an approval, if `web.public_url` is set.
    pub fn approval_link(&self, request: RequestId) -> Option<String> {
        let url = self.public_url.as_ref()?;
        Some(format!("{}/approvals/{request}", url.as_str()))
    }

    /// The present load of the pool that sessions share.
    pub fn pool_use(&self) -> PoolUse {
        let status = self.pool.status();
        let in_use = status.size.saturating_sub(status.available);
        PoolUse {
            size: status.max_size,
            in_use,
            waiting: status.waiting,
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("pool", &self.pool.status())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: [&str; 7] = [
        "connect_timeout=5",
        "tcp_user_timeout=5000",
        "keepalives=1",
        "keepalives_idle=10",
        "keepalives_interval=5",
        "keepalives_count=3",
        "application_name=tarsy",
    ];
    const OPTIONS: &str = "options=-c%20statement_timeout%3D10000%20-c%20lock_timeout%3D8000%20-c%20idle_in_transaction_session_timeout%3D10000";

    #[test]
    fn options_show_no_password() {
        let shown = format!("{:?}", ConnectOptions::new("postgres://u:s3cret@h/db"));
        assert_eq!(
            shown,
            r#"ConnectOptions { application_name: "tarsy", pool_size: 8, .. }"#
        );
    }

    #[test]
    fn the_connection_string_has_the_timeouts_and_requires_a_writable_server() {
        let timeouts = TIMEOUTS.join("&");
        let made = |url: &str, may_be_read_only| {
            ConnectOptions {
                may_be_read_only,
                ..ConnectOptions::new(url)
            }
            .addresses()
            .unwrap()
            .direct
        };
        let primary = "target_session_attrs=read-write";
        assert_eq!(
            made("postgres://h/db", false),
            format!("postgres://h/db?{timeouts}&{primary}&{OPTIONS}")
        );
        assert_eq!(
            made("postgres://h/db", true),
            format!("postgres://h/db?{timeouts}&{OPTIONS}")
        );
        let of_two = timeouts.replace("connect_timeout=5", "connect_timeout=2");
        assert_eq!(
            made("postgres://h,i/db", true),
            format!("postgres://h,i/db?{of_two}&{primary}&{OPTIONS}")
        );
        let url = "postgres://h,i/db?target_session_attrs=any";
        assert_eq!(made(url, false), format!("{url}&{of_two}&{OPTIONS}"));
        let words = made("host=h dbname=db", false);
        assert!(
            words.starts_with("host=h dbname=db connect_timeout='5' ")
                && words.contains(" options='-c "),
            "{words}"
        );
    }

    #[test]
    fn a_connection_that_only_reads_is_read_only_and_looks_for_no_writable_session() {
        let made = |url: &str| {
            let options = ConnectOptions {
                may_be_read_only: true,
                only_reads: true,
                ..ConnectOptions::new(url)
            };
            options.addresses().unwrap().direct
        };
        let read_only = "%20-c%20default_transaction_read_only%3Don";
        let timeouts = TIMEOUTS.join("&");
        assert_eq!(
            made("postgres://h/db"),
            format!("postgres://h/db?{timeouts}&{OPTIONS}{read_only}")
        );
        let of_two = timeouts.replace("connect_timeout=5", "connect_timeout=2");
        let primary = "target_session_attrs=primary";
        assert_eq!(
            made("postgres://h,i/db"),
            format!("postgres://h,i/db?{of_two}&{primary}&{OPTIONS}{read_only}")
        );
        let url = "postgres://h,i/db?target_session_attrs=read-write";
        assert_eq!(
            made(url),
            format!("{url}&{of_two}&{primary}&{OPTIONS}{read_only}")
        );
        let url = "postgres://h,i/db?target_session_attrs=prefer-standby";
        assert_eq!(made(url), format!("{url}&{of_two}&{OPTIONS}{read_only}"));
        // A setting of the address comes first, and the last one counts.
        let own = made("postgres://h/db?options=-c%20default_transaction_read_only%3Doff");
        assert!(own.ends_with(read_only), "{own}");
    }

    #[test]
    fn files_replace_the_address_and_the_password_at_each_connection() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let secret =
            |name: &str| Secret::file_of(name, &|name| Some(file(name).display().to_string()));
        let ca = Some("/etc/ca.pem".into());
        let secrets = Secrets {
            address: secret("url"),
            password: secret("password"),
            ca,
        };
        let options = ConnectOptions {
            secrets,
            ..ConnectOptions::new("postgres://elsewhere/db")
        };
        assert!(
            options
                .addresses()
                .unwrap_err()
                .to_string()
                .contains("there is no such file")
        );
        for (url, password, expected) in [
            (
                "postgres://h/one\n",
                "p&1\n",
                "&sslrootcert=%2Fetc%2Fca.pem&sslmode=verify-full&password=p%261&",
            ),
            (
                "postgres://h/two?sslmode=verify-ca",
                "p2",
                "&sslrootcert=%2Fetc%2Fca.pem&password=p2&",
            ),
        ] {
            std::fs::write(file("url"), url).unwrap();
            std::fs::write(file("password"), password).unwrap();
            let made = options.addresses().unwrap().direct;
            assert!(
                made.starts_with(url.trim()) && made.contains(expected),
                "{made}"
            );
        }
    }
}
