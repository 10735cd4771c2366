//! The pages in Debian's Chromium, as people have them. Without the browser these tests do nothing, which `./dev test`
//! says.

mod process;
mod driver;
mod forms;
mod lists;
mod states;
mod session;
mod live;
mod queue;
mod interrupted;
mod reading;
mod hostile;
mod accessible;
mod budgets;
mod pictures;
mod drills;

use super::Web;
use crate::support::system::TestSystem;

/// By how many pixels a page is wider than its window.
const OVERFLOW: &str =
    "document.documentElement.scrollWidth - document.documentElement.clientWidth";

async fn web_of(system: &TestSystem) -> (Web, String) {
    let web = Web::start(system, &[]).await;
    let base = format!("http://{}", web.address);
    (web, base)
}
