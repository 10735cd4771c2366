//! What a role does before anything else, so that its own memory and environment stay its own.

/// Makes the process one that cannot be dumped: no core file, and no other process of its user, a tool server among them,
/// reads its memory or its environment in `/proc` (prctl(2), `PR_SET_DUMPABLE`). Programs that it starts are as
/// any other. Nothing on systems other than Linux.
///
/// # Errors
/// When the system refuses.
pub fn guard_process() -> anyhow::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use anyhow::Context as _;
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        set_dumpable_behavior(DumpableBehavior::NotDumpable).context("make the process one that cannot be dumped")?;
    }
    Ok(())
}
