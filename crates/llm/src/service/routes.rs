//! Routes the calls of several gRPC services on one port by their path.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

/// Calls of the service `H` go to `H`, all others to `L`, which answers UNIMPLEMENTED to an unknown method.
#[derive(Clone, Debug)]
pub struct Routes<L, H> {
    llm: L,
    health: H,
}

impl<L, H> Routes<L, H> {
    pub fn new(llm: L, health: H) -> Self {
        Self { llm, health }
    }
}

impl<L, H> Service<http::Request<Body>> for Routes<L, H>
where
    L: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    H: Service<
            http::Request<Body>,
            Response = http::Response<Body>,
            Error = Infallible,
            Future = L::Future,
        > + NamedService,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = L::Future;

    /// Generated services are always ready.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = request
            .uri()
            .path()
            .trim_start_matches('/')
            .split('/')
            .next();
        if service == Some(H::NAME) {
            self.health.call(request)
        } else {
            self.llm.call(request)
        }
    }
}
