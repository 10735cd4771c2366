//! Protects the memory and the environment of a role from other processes.

/// Makes the process non-dumpable: the system writes no core file, and no other process of the same user, such as a
/// tool server, can read its memory or its environment in `/proc` (prctl(2), `PR_SET_DUMPABLE`). Child processes are
/// not affected. Does nothing on systems other than Linux.
///
/// # Errors
/// When the system refuses.
pub fn guard_process() -> anyhow::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use anyhow::Context as _;
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .context("cannot make the process non-dumpable")?;
    }
    Ok(())
}
