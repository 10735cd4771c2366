//! The checks before people are asked, as far as they need more than the journal, and the rows of the requests.

use std::collections::BTreeMap;

use super::Judged;
use crate::ports::{AskedApproval, Fit, RequestCounts, StoreError, Tools as _, WaitingCalls as _};
use crate::run::control::{Interrupted, STORE_BOUND};
use crate::run::execution::Execution;
use crate::run::performed::Performed;
use crate::world::World;
use tarsy_core::approvals::{CallHash, Channel, is_readable};
use tarsy_core::execution::approvals::{RequestLimits, asking, origins};
use tarsy_core::execution::entry::{ApprovalRequested, AskFault, Entry, ToolCall};

/// The arguments of calls as they will be sent, by call.
type Sent = BTreeMap<String, String>;

impl<W: World> Execution<W> {
    /// Appends what the journal has decided. A call that people would be asked about, and that the engine knows a fault
    /// of, is not asked about.
    pub(in crate::run::execution) async fn append_decided(
        &mut self,
        entries: Vec<Entry>,
    ) -> Result<(), Interrupted> {
        if !entries.iter().any(|entry| requested(entry).is_some()) {
            return self.append(entries).await;
        }
        let Some(counts) = self.request_counts().await? else {
            return Ok(());
        };
        let mut limits = RequestLimits {
            of_session: counts.of_session,
            age: counts.age,
            open: counts.open,
            max_open: self.max_open,
        };
        let mut sent = Sent::new();
        let mut faults = BTreeMap::new();
        for requested in entries.iter().filter_map(requested) {
            let call_id = requested.call_id.clone();
            let judged = Judged::new(&self.state, &call_id)?;
            let fault = match self.ports.tools.fit(&judged.call, &judged.tool).await {
                Fit::Unfit(faults) => Some(AskFault::Unfit(faults)),
                // Another reading may have what the text of the model has not.
                Fit::Arguments(arguments) if !is_readable(&arguments) => Some(AskFault::Unreadable),
                Fit::Arguments(arguments) => {
                    sent.insert(call_id.clone(), arguments);
                    limits.add()
                }
            };
            faults.extend(fault.map(|fault| (call_id, fault)));
        }
        let mut performed = Performed {
            entries: asking(&self.state, &faults),
            ..Performed::default()
        };
        for entry in &mut performed.entries {
            if let Entry::ApprovalRequested(requested) = entry {
                let asked = self.asked(requested, &sent)?;
                // People see what is sent, which may be another reading of what the model wrote.
                requested.call_sha256 = asked.call_sha256;
                performed.asked.push(asked);
            }
        }
        self.commit(performed).await
    }

    /// The row of a request.
    fn asked(
        &self,
        requested: &ApprovalRequested,
        sent: &Sent,
    ) -> Result<AskedApproval, Interrupted> {
        let judged = Judged::new(&self.state, &requested.call_id)?;
        let call = ToolCall {
            arguments: sent
                .get(&requested.call_id)
                .cloned()
                .unwrap_or_else(|| judged.call.arguments.clone()),
            ..judged.call.clone()
        };
        let rule = &judged.rule;
        Ok(AskedApproval {
            call_id: call.id.clone(),
            tool: judged.tool.name.clone(),
            policy: rule.policy.clone(),
            call_sha256: CallHash::new(&judged.tool, &call.arguments),
            schema_sha256: judged.schema_sha256(),
            why: requested.why.clone(),
            evidence: requested.evidence.clone(),
            origins: origins(&self.state, &call),
            quorum: rule.quorum,
            timeout: rule.timeout(),
            valid_for: rule.valid_for(),
            on_resolved: rule.on_resolved,
            other_person: rule.other_person,
            channels: rule
                .channels
                .iter()
                .map(|channel: &Channel| channel.as_str())
                .collect(),
            arguments: call.arguments,
        })
    }

    /// The numbers of requests. While the store is unavailable it is asked again. `None`: the run has to stop.
    async fn request_counts(&self) -> Result<Option<RequestCounts>, Interrupted> {
        loop {
            let read = self
                .ports
                .journal
                .request_counts(self.lease.session_id, self.max_open);
            match self.control.within(STORE_BOUND, read).await {
                Ok(counts) => return Ok(Some(counts)),
                Err(StoreError::Unavailable(error) | StoreError::TimedOut(error)) => {
                    if !self.may_read_again(&error).await? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn requested(entry: &Entry) -> Option<&ApprovalRequested> {
    if let Entry::ApprovalRequested(requested) = entry {
        Some(requested)
    } else {
        None
    }
}
