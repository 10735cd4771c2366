//! The credentials for broker and database in the environment.
//!
//! They have no arguments, because every user of the machine can read a command line.

use std::path::PathBuf;

use tarsy_bus::{LoginSource, NatsCertificate, NatsCredentials};
use tarsy_config::{Env, Faults, Secret, environment_fault};
use tarsy_store::Secrets;

const CREDS: &str = "NATS_CREDS_FILE";
const NKEY: &str = "NATS_NKEY_FILE";
const USER: &str = "NATS_USER";
const PASSWORD: &str = "NATS_PASSWORD";
const TOKEN: &str = "NATS_TOKEN";
const CA: &str = "NATS_CA_FILE";
const CERT: &str = "NATS_CERT_FILE";
const KEY: &str = "NATS_KEY_FILE";
const DATABASE_PASSWORD: &str = "DATABASE_PASSWORD";
const DATABASE_CA: &str = "DATABASE_CA_FILE";

/// The credentials for the broker. `url_file` is the file of its address, which may have a login. No file is read yet.
///
/// # Errors
/// When two logins are set, or one half of a login or of a certificate.
pub fn of_nats(url_file: Option<Secret>, env: Env<'_>) -> Result<NatsCredentials, Faults> {
    let user = env(USER).filter(|user| !user.is_empty());
    let login = match (user, Secret::find(PASSWORD, env)?) {
        (None, None) => None,
        (Some(user), Some(password)) => Some((USER, LoginSource::Password { user, password })),
        (Some(_), None) => {
            let problem = format!("needs {PASSWORD} or {PASSWORD}_FILE as well");
            return Err(environment_fault(USER, problem));
        }
        (None, Some(password)) => {
            let problem = format!("needs {USER} as well");
            return Err(environment_fault(password.variable(), problem));
        }
    };
    let token = Secret::find(TOKEN, env)?.map(|token| (TOKEN, LoginSource::Token(token)));
    let creds = Secret::file_of(CREDS, env).map(|file| (CREDS, LoginSource::Credentials(file)));
    let nkey = Secret::file_of(NKEY, env).map(|file| (NKEY, LoginSource::Nkey(file)));
    let mut logins = [creds, nkey, login, token].into_iter().flatten();
    let of_url = url_file
        .clone()
        .map_or(LoginSource::Url, LoginSource::UrlFile);
    let (first, login) = logins.next().unwrap_or(("", of_url));
    if let Some((second, _)) = logins.next() {
        let problem = format!("is set, and {second} as well; accepted: only one login");
        return Err(environment_fault(first, problem));
    }
    let path = |name: &str| env(name).filter(|file| !file.is_empty()).map(PathBuf::from);
    let certificate = match (path(CERT), path(KEY)) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(NatsCertificate { certificate, key }),
        (Some(_), None) => return Err(environment_fault(CERT, format!("needs {KEY} as well"))),
        (None, Some(_)) => return Err(environment_fault(KEY, format!("needs {CERT} as well"))),
    };
    Ok(NatsCredentials {
        login,
        url_file,
        ca: path(CA),
        certificate,
    })
}

/// The credentials for the database. `address` is the file of its address. No file is read yet.
///
/// # Errors
/// When a password is set twice.
pub fn of_database(address: Option<Secret>, env: Env<'_>) -> Result<Secrets, Faults> {
    let ca = env(DATABASE_CA)
        .filter(|file| !file.is_empty())
        .map(PathBuf::from);
    Ok(Secrets {
        address,
        password: Secret::find(DATABASE_PASSWORD, env)?,
        ca,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nats(set: &[(&str, &str)]) -> Result<NatsCredentials, String> {
        let env = |name: &str| {
            set.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        of_nats(Secret::file_of("NATS_URL_FILE", &env), &env).map_err(|faults| faults.to_string())
    }

    #[test]
    fn one_login_is_taken_and_every_combination_of_two_is_refused() {
        assert_eq!(nats(&[]), Ok(NatsCredentials::default()));
        let kinds: [&[(&str, &str)]; 4] = [
            &[(CREDS, "/creds")],
            &[(NKEY, "/nkey")],
            &[(USER, "tarsy"), ("NATS_PASSWORD_FILE", "/password")],
            &[(TOKEN, "s3cret")],
        ];
        for (index, kind) in kinds.iter().enumerate() {
            assert!(nats(kind).unwrap().login != LoginSource::Url, "{kind:?}");
            let with_file = [kind, &[("NATS_URL_FILE", "/url")][..]].concat();
            assert_eq!(
                nats(&with_file).unwrap().login,
                nats(kind).unwrap().login,
                "it has precedence over a URL"
            );
            for other in &kinds[index + 1..] {
                let fault = nats(&[*kind, *other].concat()).unwrap_err();
                assert!(
                    fault.contains("only one login") && !fault.contains("s3cret"),
                    "{fault}"
                );
            }
        }
        assert!(matches!(
            nats(&[("NATS_URL_FILE", "/url")]).unwrap().login,
            LoginSource::UrlFile(_)
        ));
    }

    #[test]
    fn half_a_login_or_certificate_is_refused() {
        for (variable, expected) in [
            (USER, "needs NATS_PASSWORD or NATS_PASSWORD_FILE"),
            ("NATS_PASSWORD_FILE", "needs NATS_USER"),
            (CERT, "needs NATS_KEY_FILE"),
            (KEY, "needs NATS_CERT_FILE"),
        ] {
            let fault = nats(&[(variable, "/file")]).unwrap_err();
            assert!(
                fault.contains(variable) && fault.contains(expected),
                "{fault}"
            );
        }
        let files = nats(&[(CA, "/ca"), (CERT, "/cert"), (KEY, "/key")]).unwrap();
        let certificate = NatsCertificate {
            certificate: "/cert".into(),
            key: "/key".into(),
        };
        assert_eq!(
            (files.ca, files.certificate),
            (Some("/ca".into()), Some(certificate))
        );
    }
}
