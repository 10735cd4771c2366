//! The router: every route, and the middleware that a request passes before its handler.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;

use super::fault::Fault;
use super::ports::Backend;
use super::{Shared, access, api, assets, compress, headers, metrics, pages};

/// The beginning of the paths of the API.
pub(super) const API: &str = "/api/v1";

/// A form has a question at most.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The router of the server. The first layer is the innermost.
pub(super) fn router<B: Backend>(web: Shared<B>) -> Router {
    let routes = Router::new()
        .merge(pages::routes::<B>())
        .merge(access::login::routes::<B>())
        .merge(assets::routes());
    let routes = routes
        .nest(API, api::routes::<B>())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method);
    let routes = routes.layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    let guarded = routes.layer(from_fn_with_state(web.clone(), access::admit::<B>));
    guarded
        .layer(from_fn(compress::compress))
        .layer(from_fn(headers::secure))
        .layer(from_fn(metrics::count))
        .with_state(web)
}

async fn unknown() -> Response {
    Fault::NotFound("there is nothing at this address".to_owned()).page()
}

async fn wrong_method() -> Response {
    Fault::Method.page()
}
