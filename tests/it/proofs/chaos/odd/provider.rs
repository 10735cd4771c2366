//! The provider: chat completions whose answers have random shapes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::Said;
use super::shapes::{Shape, shape};
use super::streams::{Place, Response, response};
use crate::support::http::provider::read;

struct Provider {
    seed: u64,
    said: Arc<Mutex<Said>>,
    /// Earlier requests for the same place of a conversation.
    tries: Mutex<BTreeMap<(String, usize, bool), u32>>,
}

/// Starts the provider and returns its address.
pub(super) async fn start(seed: u64, said: Arc<Mutex<Said>>) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let provider = Arc::new(Provider {
        seed,
        said,
        tries: Mutex::default(),
    });
    let serving = async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&provider)));
        }
    };
    (url, AbortOnDropHandle::new(tokio::spawn(serving)))
}

async fn serve(mut stream: TcpStream, provider: Arc<Provider>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let request = read(&mut stream).await?;
    let (response, mut rng) = provider.answer(&serde_json::from_str(&request.body).ok()?);
    let mut rest = response.bytes.as_slice();
    // The pieces end anywhere, also within a character.
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rng.usize(1..400).min(rest.len()));
        stream.write_all(now).await.ok()?;
        tokio::task::yield_now().await;
        rest = later;
    }
    if response.stays_open {
        let _gone = stream.read(&mut [0; 1]).await;
    }
    stream.shutdown().await.ok()
}

impl Provider {
    fn answer(&self, request: &Value) -> (Response, Rng) {
        let (place, offers_tools) = place(request);
        let tries = {
            let mut tries = self.tries.lock().unwrap();
            let tries = tries
                .entry((place.about.clone(), place.turn, offers_tools))
                .or_default();
            *tries += 1;
            *tries - 1
        };
        let mut hash = DefaultHasher::new();
        (self.seed, &place.about, place.turn, offers_tools).hash(&mut hash);
        let mut rng = Rng::with_seed(hash.finish());
        let shape = shape(
            &mut rng,
            place.turn,
            tries,
            offers_tools || place.writes_calls,
        );
        let calls = place.calls(&mut rng);
        let mut said = self.said.lock().unwrap();
        *said.shapes.entry(shape.name()).or_default() += 1;
        if shape == Shape::Calls {
            said.calls.extend(calls.iter().cloned());
        }
        (response(shape, &place, &calls, &mut rng), rng)
    }
}

/// The place of the answer to a request, and whether the request offers tools.
fn place(request: &Value) -> (Place, bool) {
    let messages = request["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let of_role = |role: &'static str| {
        messages
            .iter()
            .filter(move |message| message["role"] == role)
    };
    let first = of_role("user")
        .next()
        .map(|message| message["content"].to_string())
        .unwrap_or_default();
    let words = first.split(|c: char| !c.is_ascii_hexdigit() && c != '-');
    let about = words
        .rev()
        .find(|word| Uuid::try_parse(word).is_ok() && word.len() == 36)
        .unwrap_or_default();
    let system = of_role("system")
        .next()
        .map(|message| message["content"].to_string())
        .unwrap_or_default();
    let (turn, writes_calls) = (
        of_role("assistant").count(),
        system.contains("Action Input"),
    );
    let offers_tools = request["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    (
        Place {
            about: about.to_owned(),
            turn,
            writes_calls,
        },
        offers_tools,
    )
}
