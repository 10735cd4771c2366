//! Command lines of programs that take a password by a short flag: `mysql -p…`, `curl -u user:…`.

use super::phrases;
use super::word::WordSet;
use crate::bytes::{
    back, byte, is_blank, is_opaque, is_quote, near_line_end, part, skip, skip_near,
};
use crate::names::Secrecy;
use crate::spans::SecretSpan;
use crate::values::{is_harmless, secret_word};

/// The flags of a program that take a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// Flags with a secret as their argument, separate or joined.
    secret: &'static [&'static str],
    /// Flags with `user:secret` as their argument.
    pair: &'static [&'static str],
    form: ArgumentForm,
}

/// The form in which a program reads the argument of a flag with a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentForm {
    /// The argument follows a blank.
    Apart,
    /// Directly after the flag: `mysql -p` without it prompts.
    Joined,
    Either,
}

const P: Command = Command {
    secret: &["-p"],
    pair: &[],
    form: ArgumentForm::Apart,
};
const USER: Command = Command {
    secret: &[],
    pair: &["-u", "--user", "--proxy-user", "-U"],
    ..P
};
const MYSQL: Command = Command {
    form: ArgumentForm::Joined,
    ..P
};

impl Command {
    /// The program with this name, with or without a path.
    pub(super) fn named(word: &str) -> Option<Self> {
        let name = word.rsplit('/').next().unwrap_or_default();
        Some(match name {
            "curl" | "http" | "https" | "httpie" | "wget" | "etcdctl" | "lftp" | "ncftp" | "xh"
            | "influx" => USER,
            "ab" => Self {
                pair: &["-A", "-P"],
                ..USER
            },
            "wrk" | "hey" => Self {
                pair: &["-a"],
                ..USER
            },
            "sshpass" => Self {
                form: ArgumentForm::Either,
                ..P
            },
            "mysql" | "mysqldump" | "mysqladmin" | "mysqlsh" | "mariadb" | "mariadb-dump"
            | "xtrabackup" => MYSQL,
            "redis-cli" | "valkey-cli" | "keydb-cli" => Self {
                secret: &["-a", "--pass"],
                ..P
            },
            "docker" | "podman" | "nerdctl" | "helm" | "oc" | "az" | "mongo" | "mongosh"
            | "mongodump" | "mongorestore" | "skopeo" | "crane" | "buildah" | "7z" | "nats-top"
            | "rclone" | "useradd" | "usermod" | "rabbitmqadmin" | "clickhouse-client"
            | "vncpasswd" => P,
            "ldapsearch" | "ldapmodify" | "ldapadd" | "ldapdelete" | "ldappasswd"
            | "ldapwhoami" => Self {
                secret: &["-w"],
                ..P
            },
            "sqlcmd" | "bcp" | "ipmitool" | "cqlsh" | "zip" | "unzip" | "mosquitto_pub"
            | "mosquitto_sub" => Self {
                secret: &["-P", "-p"],
                ..P
            },
            "ssh-keygen" => Self {
                secret: &["-N", "-P"],
                ..P
            },
            "smbclient" | "mount.cifs" | "rpcclient" => Self {
                pair: &["-U"],
                ..USER
            },
            "keytool" | "jarsigner" => Self {
                secret: &["-storepass", "-keypass"],
                ..P
            },
            "snmpwalk" | "snmpget" | "snmpbulkwalk" => Self {
                secret: &["-A", "-X", "-c"],
                ..P
            },
            _ => return None,
        })
    }

    /// Whether the argument after this flag is a secret; `None` for any other argument.
    pub(super) fn flag(self, argument: &str) -> Option<bool> {
        let known = self.secret.contains(&argument) || self.pair.contains(&argument);
        known.then_some(self.form != ArgumentForm::Joined)
    }

    /// The secret of a flag of this program; `start` and `end` are the offsets of the flag.
    pub(super) fn secret(self, text: &str, start: usize, end: usize) -> Option<SecretSpan> {
        let word = part(text, start, end);
        if let Some(flag) = self.pair.iter().find(|flag| word.starts_with(**flag)) {
            return pair(text, start + flag.len());
        }
        let flag = self.secret.iter().find(|flag| word.starts_with(**flag))?;
        let after = start + flag.len();
        let may_join = self.form != ArgumentForm::Apart;
        if after < end || is_quote(byte(text, after)) && may_join {
            let long = word.starts_with("--") || flag.len() > 2;
            return (!long).then(|| secret_word(text, after))?;
        }
        let at = skip(text, after, is_blank);
        let argument = at > after && byte(text, at) != b'-' && self.form != ArgumentForm::Joined;
        if argument {
            secret_word(text, at)
        } else if may_join {
            joined_with_other(text, after)
        } else {
            None
        }
    }
}

/// `mysql -p'…'` and `-p…` whose value does not begin like a word.
fn joined_with_other(text: &str, after: usize) -> Option<SecretSpan> {
    let joined = !b"\0 \t\n\r\"\\],".contains(&byte(text, after));
    joined.then(|| secret_word(text, after))?
}

/// The part after the colon of `user:secret`, also of `user%secret`.
fn pair(text: &str, after: usize) -> Option<SecretSpan> {
    let at = skip(text, after, |b| {
        is_blank(b) || is_quote(b) || b == b'=' || b == b'\\'
    });
    let end = skip_near(text, at, 256, |b| !b.is_ascii_whitespace() && !is_quote(b));
    let colon = part(text, at, end).find([':', '%', ','])?;
    let start = at + colon + 1;
    let quote = byte(text, at.saturating_sub(1));

    let end = if is_quote(quote) {
        // The secret itself may have spaces when the pair stands between quotes.
        part(text, start, near_line_end(text, start, 256))
            .find(char::from(quote))
            .map_or(end, |length| start + length)
    } else {
        end
    };
    let value = part(text, start, end).trim_end_matches('\\');
    (!is_harmless(value, Secrecy::Strong)).then(|| SecretSpan::new(start, start + value.len()))
}

/// Words before a secret without a separator, and words that begin a statement with secrets.
pub(super) static KEYWORDS: WordSet<25> = WordSet::new([
    "by",
    "pass",
    "auth",
    "login",
    "user",
    "setuser",
    "values",
    "put",
    "patch",
    "set",
    "default",
    "result",
    "basic",
    "bearer",
    "htpasswd",
    "add_user",
    "change_password",
    "requirepass",
    "masterauth",
    "sentinel-pass",
    "community",
    "rocommunity",
    "rwcommunity",
    "com2sec",
    "trapcommunity",
]);

/// The secret after a keyword without a separator: `requirepass x`, `IDENTIFIED BY 'x'`.
pub(super) fn by_words(text: &str, start: usize, end: usize) -> Option<SecretSpan> {
    let word = part(text, start, end);
    let at = skip(text, end, is_blank);
    if at == end || at >= text.len() {
        return None;
    }
    let known = KEYWORDS.find(word)?;
    let line = back(text, start.saturating_sub(256), start, |b| b != b'\n');
    let before = part(text, line, start).trim_end();
    match known {
        "requirepass" | "masterauth" | "sentinel-pass" | "rocommunity" | "rwcommunity"
        | "trapcommunity" => secret_word(text, at),
        "community" if before.to_ascii_lowercase().contains("snmp") => secret_word(text, at),
        "com2sec" => last_word(text, at),
        "pass" if before.ends_with("passin") => secret_word(text, at),
        "by" if is_quote(byte(text, at)) => {
            let tail = before
                .get(before.len().saturating_sub(64)..)
                .unwrap_or(before)
                .to_ascii_lowercase();
            let is_known = ["identified", "password", "auth_plugin"]
                .iter()
                .any(|verb| tail.contains(verb));
            is_known.then(|| secret_word(text, at))?
        }
        "auth" if word == "AUTH" => {
            let end = near_line_end(text, at, 512);
            let last = part(text, at, end)
                .rfind(' ')
                .map_or(at, |space| at + space + 1);
            let alone = before.is_empty() || before.ends_with(['>', '"', '\'', '`']);
            (alone || is_opaque(part(text, last, end), 16)).then(|| secret_word(text, last))?
        }
        "auth" if before.ends_with("stats") => pair(text, at),
        "user" if before.ends_with("net") || before.ends_with("net.exe") => second_word(text, at),
        "login" if word == "LOGIN" => second_word(text, at),
        "login" => phrases::login(text, end),
        "htpasswd" | "add_user" | "change_password" if word == known => {
            let last = part(text, at, near_line_end(text, at, 512)).trim_end();
            let given = word != "htpasswd"
                || last
                    .split(' ')
                    .any(|flag| flag.starts_with('-') && flag.contains('b'));
            given.then(|| last_word(text, at))?
        }
        _ => None,
    }
}

/// The last word of the line, if it has more than one.
fn last_word(text: &str, at: usize) -> Option<SecretSpan> {
    let line = part(text, at, near_line_end(text, at, 512)).trim_end();
    let from = line.rfind(' ').map_or(0, |space| space + 1);
    (from > 0).then(|| SecretSpan::new(at + from, at + line.len()))
}

/// The word after the next one, unless it is an option: `net user bob … /add`.
fn second_word(text: &str, at: usize) -> Option<SecretSpan> {
    let first = skip_near(text, at, 128, |b| b.is_ascii_graphic());
    let second = skip(text, first, is_blank);
    let is_argument =
        second > first && !matches!(byte(text, second), b'/' | b'-' | b'\n' | b'\r' | 0);
    if !is_argument {
        return None;
    }
    let span = secret_word(text, second)?;
    is_opaque(part(text, span.start, span.end), 6).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_a_program_is_found_after_its_option() {
        let found = |line: &'static str, flag: &str| {
            let command = Command::named(line.split(' ').next().unwrap()).unwrap();
            let start = line.find(flag).unwrap();
            let end = start + flag.len();
            command
                .secret(line, start, end)
                .and_then(|span| line.get(span.start..span.end))
        };
        assert_eq!(found("curl -u bob:s3cret https://x", "-u"), Some("s3cret"));
        assert_eq!(found("curl -u 'bob:a b' x", "-u"), Some("a b"));
        assert_eq!(found("mysql -ps3cret shop", "-ps3cret"), Some("s3cret"));
        assert_eq!(found("mysql -p shop", "-p"), None);
        assert_eq!(found("redis-cli -a s3cret ping", "-a"), Some("s3cret"));
        assert_eq!(
            found("/usr/bin/sshpass -p s3cret ssh x", "-p"),
            Some("s3cret")
        );
    }
}
