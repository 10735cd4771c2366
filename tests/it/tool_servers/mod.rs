//! MCP servers that others wrote, as `./dev test` installs them from npm and `PyPI`: every kind of content, files,
//! repositories and a cluster.

mod programs;
mod investigation;
mod cluster;
mod examples;
mod content;
mod progress;
mod http;
mod kubernetes;
mod secrets;
