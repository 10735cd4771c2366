//! The state that the handlers of all requests share.

use std::sync::Arc;

use crate::hub::Hub;
use crate::ports::Backend;
use crate::rendering::Renderer;

/// The backend with what is made of it for each request.
pub(super) struct Web<B: Backend> {
    pub(super) backend: Arc<B>,
    pub(super) hub: Hub<B>,
    pub(super) renderer: Renderer,
}

/// The state of the router.
pub(super) type Shared<B> = Arc<Web<B>>;
