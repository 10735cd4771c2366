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
    let all = config.notification_routes();
    let kind = all.get(&name).map_or("", |route| route.kind.as_str());
    let fix = if config.destinations.contains_key(&name) {
        format!("docs/destinations.md, then: tarsy destinations check {name}")
    } else {
        format!("docs/operations/notifications.md, then: tarsy notify test {name}")
    };
    let routes = Routes::new(all, mask);
    routes
        .check(&name)
        .await
        .map_err(|reason| failed(format!("{kind}: {reason}")).fix(fix))?;
    let detail = match config.web.public_url {
        Some(_) => format!("{kind}, reachable"),
        None => {
            format!("{kind}, reachable; without web.public_url its messages have no link")
        }
    };
    Ok(vec![Check::new(check, Verdict::Ok, detail)])
}
