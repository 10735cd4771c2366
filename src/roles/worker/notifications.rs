//! Starts the tasks that send notifications: one for each route, and one for the backlog of all. Without routes no
//! task is started, and none queries the database.

use std::sync::Arc;

use tarsy_config::Config;
use tarsy_engine::worker::background::Background;
use tarsy_engine::worker::notifications::{BacklogWatch, RouteSender, SenderRoute};
use tarsy_mask::Mask;
use tarsy_notifications::{Buttons, Routes};
use tarsy_store::Store;

/// Starts the tasks of the routes that are configured.
pub(super) fn start(background: &Background, config: &Config, store: &Arc<Store>, mask: &Mask) {
    metrics::gauge!("tarsy_notifications_oldest_seconds").set(0.0);
    let routes = config.notification_routes();
    if routes.is_empty() {
        return;
    }
    // A button without a process that receives its clicks would do nothing.
    let buttons = if config.receive.slack.is_some() {
        Buttons::Offered
    } else {
        Buttons::LinksOnly
    };
    let notifier = Routes::new(routes.clone(), mask.clone()).with_buttons(buttons);
    let notifier = Arc::new(notifier);
    for (name, route) in &routes {
        let sender = RouteSender {
            store: Arc::clone(store),
            notifier: Arc::clone(&notifier),
            route: SenderRoute {
                name: name.clone(),
                kind: route.kind.as_str(),
                timeout: route.timeout,
                filter: route.filter.clone(),
                template: route.template.clone(),
                started_template: route.started_template.clone(),
            },
            public_url: config.web.public_url.clone(),
        };
        background.spawn("notifications", |end| sender.run(end));
    }
    let watch = BacklogWatch {
        store: Arc::clone(store),
        routes: routes.into_keys().collect(),
    };
    background.spawn("backlog of notifications", |end| watch.run(end));
}
