//! Command lines of programs that take a password by a short flag: `mysql -p…`, `curl -u user:…`.

use crate::investigation::mask::bytes::{
    back, byte, is_blank, is_opaque, is_quote, near_line_end, part, skip, skip_near,
};
use crate::investigation::mask::names::Secrecy;
use crate::investigation::mask::spans::SecretSpan;
use crate::investigation::mask::values::{Reach, is_harmless, secret_at};

/// The flags of a program that take a secret.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// Flags with a secret as their argument, separate or joined.
    secret: &'static [&'static str],
    /// Flags with `user:secret` as their argument.
    pair: &'static [&'static str],
    /// Only the joined form has a secret: `mysql -p` prompts for it.
    fused: bool,
}

const P: Command = Command { secret: &["-p"], pair: &[], fused: false };
const USER: Command = Command { secret: &[], pair: &["-u", "--user", "--proxy-user", "-U"], fused: false };
const MYSQL: Command = Command { secret: &["-p"], pair: &[], fused: true };

impl Command {
    /// The program with this name, with or without a path.
    pub(super) fn named(word: &str) -> Option<Self> {
        let name = word.rsplit('/').next().unwrap_or_default();
        Some(match name {
            "curl" | "http" | "https" | "httpie" | "wget" => USER,
            "mysql" | "mysqldump" | "mysqladmin" | "mysqlsh" | "mariadb" | "mariadb-dump" | "xtrabackup" => MYSQL,
            "redis-cli" | "valkey-cli" | "keydb-cli" => Self { secret: &["-a", "--pass"], ..P },
            "sshpass" | "docker" | "podman" | "nerdctl" | "helm" | "oc" | "az" | "mongo" | "mongosh" | "mongodump"
            | "mongorestore" | "skopeo" | "crane" | "buildah" | "7z" | "nats-top" | "rclone" => P,
            "ldapsearch" | "ldapmodify" | "ldapadd" | "ldapdelete" | "ldappasswd" | "ldapwhoami" => {
                Self { secret: &["-w"], ..P }
            }
            "sqlcmd" | "bcp" | "ipmitool" | "cqlsh" | "zip" | "unzip" => Self { secret: &["-P", "-p"], ..P },
            "smbclient" | "mount.cifs" | "rpcclient" => Self { secret: &[], pair: &["-U"], fused: false },
            "keytool" | "jarsigner" => Self { secret: &["-storepass", "-keypass"], ..P },
            "snmpwalk" | "snmpget" | "snmpbulkwalk" => Self { secret: &["-A", "-X", "-c"], ..P },
            _ => return None,
        })
    }

    /// Whether the argument behind this flag is a secret; `None` for any other argument.
    pub(super) fn flag(self, argument: &str) -> Option<bool> {
        let known = self.secret.contains(&argument) || self.pair.contains(&argument);
        known.then_some(!self.fused)
    }

    /// The secret of a flag of this program; `start` and `end` are the offsets of the flag.
    pub(super) fn secret(self, text: &str, start: usize, end: usize) -> Option<SecretSpan> {
        let word = part(text, start, end);
        if let Some(flag) = self.pair.iter().find(|flag| word.starts_with(**flag)) {
            return pair(text, start + flag.len());
        }
        let flag = self.secret.iter().find(|flag| word.starts_with(**flag))?;
        let after = start + flag.len();
        if after < end || is_quote(byte(text, after)) && self.fused {
            let long = word.starts_with("--") || flag.len() > 2;
            return if long { None } else { secret_at(text, after, Reach::Word, Secrecy::Strong) };
        }
        let at = skip(text, after, is_blank);
        let argument = at > after && byte(text, at) != b'-' && !self.fused;
        if argument { value(text, at) } else { fused_with_other(text, after).filter(|_| self.fused) }
    }
}

/// `mysql -p'…'` and `-p…` whose value does not begin like a word.
fn fused_with_other(text: &str, after: usize) -> Option<SecretSpan> {
    let joined = !matches!(byte(text, after), 0 | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\\' | b']' | b',');
    if joined { secret_at(text, after, Reach::Word, Secrecy::Strong) } else { None }
}

fn value(text: &str, at: usize) -> Option<SecretSpan> {
    secret_at(text, at, Reach::Word, Secrecy::Strong)
}

/// The part after the colon of `user:secret`, also of `user%secret`.
fn pair(text: &str, after: usize) -> Option<SecretSpan> {
    let at = skip(text, after, |b| is_blank(b) || is_quote(b) || b == b'=' || b == b'\\');
    let end = skip_near(text, at, 256, |b| !b.is_ascii_whitespace() && !is_quote(b));
    let colon = part(text, at, end).find([':', '%'])?;
    let (start, quote) = (at + colon + 1, byte(text, at.saturating_sub(1)));
    let end = if is_quote(quote) {
        // The secret itself may have spaces when the pair stands between quotes.
        part(text, start, near_line_end(text, start, 256)).find(char::from(quote)).map_or(end, |length| start + length)
    } else {
        end
    };
    let value = part(text, start, end).trim_end_matches('\\');
    (!is_harmless(value, Secrecy::Strong)).then(|| SecretSpan::new(start, start + value.len()))
}

/// The secret behind a keyword without a separator: `requirepass x`, `IDENTIFIED BY 'x'`.
pub(super) fn by_words(text: &str, start: usize, end: usize) -> Option<SecretSpan> {
    let word = part(text, start, end);
    let at = skip(text, end, is_blank);
    if at == end || at >= text.len() {
        return None;
    }
    const KNOWN: [&str; 9] =
        ["requirepass", "masterauth", "sentinel-pass", "auth", "by", "pass", "htpasswd", "add_user", "change_password"];
    let known = KNOWN.into_iter().find(|known| word.eq_ignore_ascii_case(known))?;
    let line = back(text, start.saturating_sub(256), start, |b| b != b'\n');
    let before = part(text, line, start).trim_end();
    match known {
        "requirepass" | "masterauth" | "sentinel-pass" => value(text, at),
        "pass" if before.ends_with("passin") => value(text, at),
        "by" if is_quote(byte(text, at)) => {
            let tail = before.get(before.len().saturating_sub(64)..).unwrap_or(before).to_ascii_lowercase();
            let is_known = ["identified", "password", "auth_plugin"].iter().any(|verb| tail.contains(verb));
            if is_known { value(text, at) } else { None }
        }
        "auth" if word == "AUTH" => {
            let end = near_line_end(text, at, 512);
            let last = part(text, at, end).rfind(' ').map_or(at, |space| at + space + 1);
            let alone = before.is_empty() || before.ends_with(['>', '"', '\'', '`']);
            if alone || is_opaque(part(text, last, end), 16) { value(text, last) } else { None }
        }
        "htpasswd" | "add_user" | "change_password" if word == known => {
            let last = part(text, at, near_line_end(text, at, 512)).trim_end();
            let given = word != "htpasswd" || last.split(' ').any(|flag| flag.starts_with('-') && flag.contains('b'));
            let from = last.rfind(' ').map_or(0, |space| space + 1);
            (given && from > 0).then(|| SecretSpan::new(at + from, at + last.len()))
        }
        _ => None,
    }
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
            command.secret(line, start, end).and_then(|span| line.get(span.start..span.end))
        };
        assert_eq!(found("curl -u bob:s3cret https://x", "-u"), Some("s3cret"));
        assert_eq!(found("curl -u 'bob:a b' x", "-u"), Some("a b"));
        assert_eq!(found("mysql -ps3cret shop", "-ps3cret"), Some("s3cret"));
        assert_eq!(found("mysql -p shop", "-p"), None);
        assert_eq!(found("redis-cli -a s3cret ping", "-a"), Some("s3cret"));
        assert_eq!(found("/usr/bin/sshpass -p s3cret ssh x", "-p"), Some("s3cret"));
    }
}
