//! The signature of a channel: an HMAC-SHA-256 of subject, id and body, so that a stolen login of the broker decides
//! nothing.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use ring::hmac::{Context, HMAC_SHA256, Key, verify};

use tarsy_config::Secret;
use tarsy_core::approvals::Channel;
use tarsy_engine::ports::Proof;

/// The header of the signature: `v1=<64 hexadecimal digits>`.
pub const SIGNATURE: &str = "Tarsy-Signature";
const VERSION: &str = "v1=";
/// The first part of what is signed; another form of signature needs another one.
const FORM: &str = "tarsy decision 1";
/// A shorter key would be guessed.
const MIN_KEY_BYTES: usize = 16;

/// The keys of the channels that sign. Each is read for each message, because its file may change.
#[derive(Clone, Debug, Default)]
pub struct ChannelKeys(pub BTreeMap<Channel, Secret>);

impl ChannelKeys {
    /// The signature of a message; `None` for a channel without a key.
    ///
    /// # Errors
    /// When the key of the channel cannot be read, or is too short.
    pub(super) fn sign(
        &self,
        channel: Channel,
        signed: &Signed<'_>,
    ) -> Result<Option<String>, String> {
        let Some(key) = self.key(channel)? else {
            return Ok(None);
        };
        let mut context = Context::with_key(&key);
        context.update(&signed.bytes());
        let tag = context.sign();
        Ok(Some(format!("{VERSION}{}", HEXLOWER.encode(tag.as_ref()))))
    }

    /// The proof that a signature gives. The comparison takes the same time for each wrong one.
    pub(super) fn prove(
        &self,
        channel: Channel,
        signed: &Signed<'_>,
        signature: Option<&str>,
    ) -> Proof {
        let key = match self.key(channel) {
            Ok(Some(key)) => key,
            Ok(None) => return Proof::NotNeeded,
            Err(reason) => return Proof::Unreadable(reason),
        };
        let tag = signature
            .and_then(|signature| signature.strip_prefix(VERSION))
            .and_then(|hex| HEXLOWER.decode(hex.as_bytes()).ok());
        match tag {
            Some(tag) if verify(&key, &signed.bytes(), &tag).is_ok() => Proof::Valid,
            Some(_) | None => Proof::Invalid,
        }
    }

    fn key(&self, channel: Channel) -> Result<Option<Key>, String> {
        let Some(secret) = self.0.get(&channel) else {
            return Ok(None);
        };
        let text = secret.read().map_err(|error| error.to_string())?;
        if text.len() < MIN_KEY_BYTES {
            let fault = secret.fault("has too few bytes; accepted: at least 16");
            return Err(fault.to_string());
        }
        Ok(Some(Key::new(HMAC_SHA256, text.as_bytes())))
    }
}

/// The parts that a signature covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub(super) subject: &'a str,
    pub(super) id: &'a str,
    pub(super) body: &'a [u8],
}

impl Signed<'_> {
    /// The parts, each with its length before it, so that no two messages have the same bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [
            FORM.as_bytes(),
            self.subject.as_bytes(),
            self.id.as_bytes(),
            self.body,
        ] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(directory: &tempfile::TempDir, key: &str) -> ChannelKeys {
        let path = directory.path().join("key");
        std::fs::write(&path, key).unwrap();
        let secret = Secret::in_file("approvals.keys.web", &path.display().to_string());
        ChannelKeys(BTreeMap::from([(Channel::Web, secret)]))
    }

    const SIGNED: Signed<'_> = Signed {
        subject: "tarsy.decisions.web.s",
        id: "id",
        body: b"{}",
    };

    #[test]
    fn a_signature_proves_exactly_its_subject_id_and_body() {
        let directory = tempfile::tempdir().unwrap();
        let keys = keys(&directory, "0123456789abcdef\n");
        let signature = keys.sign(Channel::Web, &SIGNED).unwrap().unwrap();
        let prove = |signed: &Signed<'_>, signature: Option<&str>| {
            keys.prove(Channel::Web, signed, signature)
        };
        assert_eq!(prove(&SIGNED, Some(&signature)), Proof::Valid);
        let others = [
            Signed {
                subject: "tarsy.decisions.web.t",
                ..SIGNED
            },
            Signed { id: "i", ..SIGNED },
            Signed {
                id: "id{",
                body: b"}",
                ..SIGNED
            },
            Signed {
                body: b"{ }",
                ..SIGNED
            },
        ];
        for other in others {
            assert_eq!(prove(&other, Some(&signature)), Proof::Invalid, "{other:?}");
        }
        for wrong in [
            None,
            Some(""),
            Some("v1="),
            Some(signature.trim_start_matches(VERSION)),
            Some(&signature.to_uppercase()),
            Some(&format!("{signature}00")),
        ] {
            assert_eq!(prove(&SIGNED, wrong), Proof::Invalid, "{wrong:?}");
        }
    }

    #[test]
    fn a_channel_without_a_key_needs_no_signature_and_a_lost_key_proves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let all = keys(&directory, "0123456789abcdef");
        assert_eq!(all.prove(Channel::Cli, &SIGNED, None), Proof::NotNeeded);
        assert_eq!(all.sign(Channel::Cli, &SIGNED), Ok(None));
        let signature = all.sign(Channel::Web, &SIGNED).unwrap();
        let short = keys(&directory, "short");
        for keys in [short.clone(), {
            std::fs::remove_file(directory.path().join("key")).unwrap();
            short
        }] {
            let proof = keys.prove(Channel::Web, &SIGNED, signature.as_deref());
            assert!(
                matches!(&proof, Proof::Unreadable(reason) if !reason.contains("short")),
                "{proof:?}"
            );
            keys.sign(Channel::Web, &SIGNED).unwrap_err();
        }
    }

    #[test]
    fn another_key_makes_another_signature() {
        let directory = tempfile::tempdir().unwrap();
        let one = keys(&directory, "0123456789abcdef").sign(Channel::Web, &SIGNED);
        let other = keys(&directory, "0123456789abcdeg");
        assert_ne!(other.sign(Channel::Web, &SIGNED), one);
        let signature = one.unwrap();
        let proof = other.prove(Channel::Web, &SIGNED, signature.as_deref());
        assert_eq!(proof, Proof::Invalid);
    }
}
