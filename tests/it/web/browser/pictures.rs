//! Pictures of the pages: `TARSY_WEB_PICTURES=docs` makes the one of the README,
//! `TARSY_WEB_SCREENSHOTS=<folder>` one of each page in each width and theme.

use std::path::Path;

use super::driver::Browser;
use super::states::States;
use super::web_of;

const LOOKS: [(u32, &str); 4] = [
    (390, "light"),
    (390, "dark"),
    (1280, "light"),
    (1280, "dark"),
];

/// Pictures of the page as it is now, if they are asked for.
pub(super) async fn of_state(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var("TARSY_WEB_SCREENSHOTS")
        .ok()
        .filter(|folder| !folder.is_empty())
    else {
        return;
    };
    for (width, theme) in LOOKS {
        browser.looks(width, theme).await;
        browser
            .screenshot(
                &Path::new(&folder).join(format!("{name}-{width}-{theme}.png")),
                6_000.0,
                1.0,
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_are_made_on_request() {
    let folder = |name: &str| std::env::var(name).ok().filter(|folder| !folder.is_empty());
    let (readme, all) = (
        folder("TARSY_WEB_PICTURES"),
        folder("TARSY_WEB_SCREENSHOTS"),
    );
    if readme.is_none() && all.is_none() {
        return;
    }
    let Some(mut browser) = Browser::start().await else {
        return;
    };
    let states = States::make().await;
    let (_web, base) = web_of(&states.system).await;
    if let Some(folder) = &readme {
        browser.looks(1280, "light").await;
        browser
            .open(&format!("{base}/sessions/{}", states.session))
            .await;
        browser
            .screenshot(&Path::new(folder).join("web.png"), 1_000.0, 0.7)
            .await;
    }
    let Some(folder) = &all else { return };
    let pages = states
        .pages
        .iter()
        .map(|(name, path)| (*name, path.clone()));
    let others = [
        ("list", "/".to_owned()),
        ("empty", "/?q=nothing-like-this".to_owned()),
        ("queue", "/queue".to_owned()),
        ("unseen", format!("/sessions/{}", uuid::Uuid::now_v7())),
    ];
    for (name, path) in pages.chain(others) {
        for (width, theme) in LOOKS {
            browser.looks(width, theme).await;
            browser.open(&format!("{base}{path}")).await;
            browser
                .screenshot(
                    &Path::new(folder).join(format!("{name}-{width}-{theme}.png")),
                    6_000.0,
                    1.0,
                )
                .await;
        }
    }
}
