//! The Helm chart in `deploy/helm/tarsy`: what it renders for every values file in `ci/`, what it refuses, and that the
//! binary understands it. The library of Helm 4 renders, in Python; `./dev test` installs it.

mod library;
mod helm;
mod schemas;
mod pods;
mod binary;
mod values;
mod refusals;
mod references;
mod rollout;
mod workloads;
mod policy;
mod processes;
mod cluster;
