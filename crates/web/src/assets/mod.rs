//! The three files that pages load. Each has a hash of its content in its name, so that a browser keeps it for ever.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

/// A file of the program.
#[derive(Debug)]
pub(super) struct Asset {
    path: String,
    content_type: &'static str,
    bytes: &'static [u8],
}

impl Asset {
    fn new(name: &str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        let hash = Sha256::digest(bytes);
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let hash: String = hash
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            path: format!("/assets/{stem}-{hash}.{ending}"),
            content_type,
            bytes,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &'static [u8] {
        self.bytes
    }
}

pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "style.css",
        "text/css; charset=utf-8",
        include_bytes!("style.css"),
    )
});
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "script.js",
        "text/javascript; charset=utf-8",
        include_bytes!("script.js"),
    )
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_bytes!("icon.svg")));

/// The file with this path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    let assets: [&'static Asset; 3] = [&STYLE, &SCRIPT, &ICON];
    assets.into_iter().find(|asset| asset.path == path)
}

impl IntoResponse for &'static Asset {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, self.content_type),
            (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        ];
        (headers, self.bytes).into_response()
    }
}
