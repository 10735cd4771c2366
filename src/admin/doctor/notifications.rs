//! Checks one route of notifications: its secrets and its address. No message is sent.

use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::process::secrets;
use tarsy_config::Config;
use tarsy_notifications::Routes;

pub(super) async fn check(name: String, config: Arc<Config>) -> Checked {
    let check = format!("notify {name}");
    let failed = |reason: String| Check::new(check.as_str(), Verdict::Fail, reason);
    let mask = secrets::mask(&config, None).map_err(|error| failed(error.to_string()))?;
    let kind = config
        .notifications
        .get(&name)
        .map_or("", |route| route.kind.as_str());
    let routes = Routes::new(config.notifications.clone(), mask);
    routes.check(&name).await.map_err(|reason| {
        failed(format!("{kind}: {reason}")).fix(format!(
            "docs/operations/notifications.md, then: tarsy notify test {name}"
        ))
    })?;
    let detail = match config.web.public_url {
        Some(_) => format!("{kind}, reachable"),
        None => {
            format!("{kind}, reachable; without web.public_url its messages have no link")
        }
    };
    Ok(vec![Check::new(check, Verdict::Ok, detail)])
}
