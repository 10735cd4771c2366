//! The line about people on every page: how many requests are open, and whether changes are frozen.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::roles::web::backend::Backend;
use tarsy_reports::{ApprovalFilter, Requests};
use tarsy_web::ports::{MAX_COUNTED, Notice};

/// Pages that are open at the same time share one read.
const NOTICE_AGE: Duration = Duration::from_secs(3);
/// A page does not wait for its line about people.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) type Running = Shared<BoxFuture<'static, Notice>>;

/// The last line about people, or the read that runs now.
#[derive(Debug, Default)]
pub(super) struct RecentNotice(Mutex<Option<(Instant, Running)>>);

impl RecentNotice {
    /// The next page reads again.
    pub(super) fn forget(&self) {
        *self.0.lock() = None;
    }
}

impl Backend {
    /// The line about people, which pages that are open at the same time read once.
    pub(super) fn recent_notice(&self) -> Running {
        let mut recent = self.deciders.notice.0.lock();
        match &*recent {
            Some((at, running)) if at.elapsed() < NOTICE_AGE => running.clone(),
            Some(_) | None => {
                let running = self.read_notice();
                *recent = Some((Instant::now(), running.clone()));
                running
            }
        }
    }

    /// The line about people, from two small statements for all pages of some seconds.
    fn read_notice(&self) -> Running {
        let store = Arc::clone(&self.store);
        let is_used = self.deciders.is_used();
        let read = async move {
            let open = ApprovalFilter {
                limit: MAX_COUNTED,
                requests: Requests::Open,
                ..ApprovalFilter::default()
            };
            let both = async { tokio::join!(store.approvals(open), store.approval_freeze()) };
            match tokio::time::timeout(NOTICE_TIMEOUT, both).await {
                Ok((Ok(open), Ok(freeze))) => Notice {
                    open: Some(open.len()).filter(|open| is_used || *open > 0 || freeze.is_some()),
                    freeze,
                },
                // The link to the requests stays.
                Ok((Err(_), _) | (_, Err(_))) | Err(_) => Notice {
                    open: is_used.then_some(0),
                    freeze: None,
                },
            }
        };
        read.boxed().shared()
    }
}
