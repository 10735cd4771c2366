//! An operator of NATS with an account, whose users log in with JWTs: <https://docs.nats.io> (decentralized JWT
//! authentication). `nsc` writes the same claims.

use std::path::Path;

use nkeys::KeyPair;
use serde_json::{Value, json};

/// The keys of an operator, of the system account, and of the account of tarsy.
pub(crate) struct Operator {
    operator: KeyPair,
    system: KeyPair,
    account: KeyPair,
}

impl Operator {
    pub(crate) fn new() -> Self {
        Self {
            operator: KeyPair::new_operator(),
            system: KeyPair::new_account(),
            account: KeyPair::new_account(),
        }
    }

    /// The lines of a server's configuration.
    pub(crate) fn settings(&self) -> String {
        let account = |pair: &KeyPair, name: &str| {
            let all = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1});
            // The system account may not have JetStream.
            let limits = if name == "SYS" {
                json!({"subs": -1, "data": -1, "payload": -1, "conn": -1})
            } else {
                all
            };
            let claims = json!({"type": "account", "version": 2, "limits": limits});
            format!(
                "{}: {}",
                pair.public_key(),
                signed(&self.operator, &pair.public_key(), name, &claims)
            )
        };
        let operator = signed(
            &self.operator,
            &self.operator.public_key(),
            "O",
            &json!({"type": "operator", "version": 2}),
        );
        format!(
            "operator: {operator}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload {{ {}\n{} }}\n",
            self.system.public_key(),
            account(&self.system, "SYS"),
            account(&self.account, "TARSY"),
        )
    }

    /// Writes the credentials of a new user. `permissions` has the keys `pub` and `sub`, each with `allow`.
    pub(crate) fn write_user(&self, file: &Path, name: &str, permissions: &Value) {
        let user = KeyPair::new_user();
        let mut claims =
            json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        for key in ["pub", "sub"] {
            claims[key] = permissions.get(key).cloned().unwrap_or_else(|| json!({}));
        }
        let jwt = signed(&self.account, &user.public_key(), name, &claims);
        let seed = user.seed().expect("the seed");
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(file, text).expect("the credentials can be written");
    }
}

/// A JWT with these claims of NATS about `subject`.
fn signed(issuer: &KeyPair, subject: &str, name: &str, claims: &Value) -> String {
    let part = |value: Value| base64url(value.to_string().as_bytes());
    let head = part(json!({"typ": "JWT", "alg": "ed25519-nkey"}));
    let body = part(
        json!({"jti": name, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": name, "sub": subject,
        "nats": claims}),
    );
    let text = format!("{head}.{body}");
    let signature = issuer.sign(text.as_bytes()).expect("a signature");
    format!("{text}.{}", base64url(&signature))
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().enumerate().fold(0u32, |bits, (index, byte)| {
            bits | u32::from(*byte) << (16 - 8 * index)
        });
        text.extend(
            (0..=group.len())
                .map(|digit| char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63])),
        );
    }
    text
}
