//! What a server offers, remembered for as long as its connection lives.
//!
//! A server may be busy with a call, and many serve one request at a time: an alert must not wait for the list of tools
//! then. So the list is asked once a connection, again after the server says that it has changed, and after some minutes
//! beside the alerts. It is asked in a task of its own: an alert waits for a short while, a server that starts slowly has
//! its time all the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::connection::Connection;
use super::offer::offer;
use super::server::Server;
use super::{Surroundings, masked};
use crate::investigation::plan::ToolSpec;
use crate::mcp::Error;

/// A list that is older is asked again, unless the server is busy.
const FRESH: Duration = Duration::from_secs(300);
/// A server that gave no list is not asked again for this time.
const PAUSE: Duration = Duration::from_secs(5);
/// How long an alert waits for a list.
const PATIENCE: Duration = Duration::from_secs(10);

type Tools = Arc<[ToolSpec]>;

/// What is known of one server's tools.
#[derive(Debug, Default)]
pub(super) struct Offers {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last: Option<Last>,
    /// When it last gave no list, and why.
    failed: Option<(Instant, String)>,
    /// Holds whether the question that is on its way is answered.
    asked: Option<watch::Receiver<bool>>,
}

/// The last list.
#[derive(Clone, Debug)]
struct Last {
    tools: Tools,
    connection: Weak<Connection>,
    at: Instant,
}

/// What is to be done about a question for the list.
enum Next {
    Take(Tools),
    Refuse(String),
    Wait(watch::Receiver<bool>),
}

impl Offers {
    /// What the server offers, sorted by name; why it offers nothing now. Takes ten seconds at most.
    pub(super) async fn of(&self, server: &Arc<Server>, surroundings: &Arc<Surroundings>) -> Result<Tools, String> {
        let mut answered = match self.next(server, surroundings) {
            Next::Take(tools) => return Ok(tools),
            Next::Refuse(why) => return Err(why),
            Next::Wait(answered) => answered,
        };
        // A question that was broken off is answered, too: with nothing.
        let waited = tokio::time::timeout(PATIENCE, answered.wait_for(|answered| *answered)).await;
        let known = self.known();
        if let Some(last) = known.last.as_ref().filter(|last| last.lives().is_some()) {
            return Ok(Arc::clone(&last.tools));
        }
        Err(match (&known.failed, waited) {
            (_, Err(_)) => format!("mcp server {:?} gave no list of its tools within {PATIENCE:?}", server.config.name),
            (Some((_, why)), Ok(_)) => why.clone(),
            (None, Ok(_)) => format!("mcp server {:?} is being stopped", server.config.name),
        })
    }

    fn next(&self, server: &Arc<Server>, surroundings: &Arc<Surroundings>) -> Next {
        let mut known = self.known();
        let live = known.last.as_ref().and_then(|last| Some((last.clone(), last.lives()?)));
        if let Some((last, connection)) = &live {
            let is_due = last.at.elapsed() >= FRESH && !connection.is_busy();
            if !connection.has_changed() {
                if is_due && !known.is_asking() && !known.failed_just_now() {
                    known.asked = Some(ask(server, surroundings));
                }
                return Next::Take(Arc::clone(&last.tools));
            }
        }
        if known.is_asking()
            && let Some(asked) = &known.asked
        {
            return Next::Wait(asked.clone());
        }
        match (&known.failed, live) {
            (Some((at, _)), Some((last, _))) if at.elapsed() < PAUSE => Next::Take(last.tools),
            (Some((at, why)), None) if at.elapsed() < PAUSE => Next::Refuse(why.clone()),
            (Some(_) | None, _) => Next::Wait(known.asked.insert(ask(server, surroundings)).clone()),
        }
    }

    fn note(&self, found: Result<(Tools, &Arc<Connection>), String>) {
        let mut known = self.known();
        match found {
            Ok((tools, connection)) => {
                known.last = Some(Last { tools, connection: Arc::downgrade(connection), at: Instant::now() });
                known.failed = None;
            }
            Err(why) => known.failed = Some((Instant::now(), why)),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_asking(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.has_changed().is_ok())
    }

    fn failed_just_now(&self) -> bool {
        self.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < PAUSE)
    }
}

impl Last {
    /// The connection that it came over, if it is still there.
    fn lives(&self) -> Option<Arc<Connection>> {
        self.connection.upgrade().filter(|connection| connection.is_open())
    }
}

/// Asks in a task of its own, which ends with the surroundings. The sender goes with it: a closed channel is the end of
/// the question.
fn ask(server: &Arc<Server>, surroundings: &Arc<Surroundings>) -> watch::Receiver<bool> {
    let (answered, asked) = watch::channel(false);
    let (server, surroundings) = (Arc::clone(server), Arc::clone(surroundings));
    surroundings.tasks.clone().spawn(async move {
        let listing = surroundings.shutdown.run_until_cancelled(list(&server, &surroundings));
        let Some(listed) = listing.await else { return };
        match &listed {
            Ok((tools, connection)) => server.offers.note(Ok((Arc::clone(tools), connection))),
            Err(error) => {
                let error = masked(&surroundings, &error.to_string());
                tracing::warn!(server = server.config.name, error, "mcp server gave no list of its tools");
                server.offers.note(Err(error));
            }
        }
        answered.send_replace(true);
    });
    asked
}

async fn list(server: &Server, surroundings: &Surroundings) -> Result<(Tools, Arc<Connection>), Error> {
    let connection = server.connection(surroundings).await?;
    // Before the question: a change that comes after it makes the answer an old one.
    connection.forget_changes();
    let tools = connection.tools(&server.config.name).await.inspect_err(|_| server.forget(&connection))?;
    Ok((offer(&server.config, tools, &surroundings.mask).into(), connection))
}
