//! Finds the user that runs the child process of an MCP server.

use std::path::PathBuf;

use anyhow::Context as _;

use tarsy_mcp::{Account, User};

const ACCOUNTS: &str = "/etc/passwd";

/// The user of this name in the accounts of the machine, or of this number: `uid` or `uid:gid`.
///
/// # Errors
/// When there is no such user, or the accounts cannot be read.
pub(super) fn find(user: &str) -> anyhow::Result<User> {
    if let Some(numbered) = numbered(user) {
        return Ok(numbered);
    }
    let accounts = std::fs::read_to_string(ACCOUNTS)
        .with_context(|| format!("user: {ACCOUNTS} cannot be read"))?;
    of_accounts(&accounts, user)
        .with_context(|| format!("user: there is no user {user:?} in {ACCOUNTS}"))
}

/// A group that is left out has the number of the user.
fn numbered(user: &str) -> Option<User> {
    let (uid, gid) = user.split_once(':').unwrap_or((user, user));
    Some(User {
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        account: None,
    })
}

fn of_accounts(accounts: &str, name: &str) -> Option<User> {
    let mut accounts = accounts
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let account = accounts.find(|fields| fields.first() == Some(&name))?;
    let [_, _, uid, gid, _, home, ..] = account.as_slice() else {
        return None;
    };
    Some(User {
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        account: Some(Account {
            name: name.to_owned(),
            home: PathBuf::from(home),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_or_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\ntools:x:990:991::/var/lib/tools:/usr/sbin/nologin\nbad:x:1\n";
        let tools = Account {
            name: "tools".to_owned(),
            home: PathBuf::from("/var/lib/tools"),
        };
        assert_eq!(
            of_accounts(accounts, "tools"),
            Some(User {
                uid: 990,
                gid: 991,
                account: Some(tools)
            })
        );
        assert_eq!(of_accounts(accounts, "tool"), None);
        assert_eq!(of_accounts(accounts, "bad"), None);
        assert_eq!(
            find("7").unwrap(),
            User {
                uid: 7,
                gid: 7,
                account: None
            }
        );
        assert_eq!(
            find("7:8").unwrap(),
            User {
                uid: 7,
                gid: 8,
                account: None
            }
        );
        assert!(
            find("no such user")
                .unwrap_err()
                .to_string()
                .contains("no such user")
        );
    }
}
