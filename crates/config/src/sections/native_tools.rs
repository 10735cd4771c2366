//! `native_tools`: the tools that a provider runs by itself. Part of a provider, and of every layer of settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::write::is_default;
use tarsy_core::plan::NativeTool;

/// One layer of switches; an absent one comes from the layer below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct NativeTools {
    /// Whether the model may search the web.
    #[serde(skip_serializing_if = "is_default")]
    pub google_search: Option<bool>,
    /// Whether the model may read the pages whose addresses the conversation contains.
    #[serde(skip_serializing_if = "is_default")]
    pub url_context: Option<bool>,
    /// Whether the provider runs programs that the model writes.
    #[serde(skip_serializing_if = "is_default")]
    pub code_execution: Option<bool>,
}

impl NativeTools {
    /// Merges this layer with the absent switches of a lower one.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        Self {
            google_search: self.google_search.or(lower.google_search),
            url_context: self.url_context.or(lower.url_context),
            code_execution: self.code_execution.or(lower.code_execution),
        }
    }

    /// The tools that are switched on.
    pub fn enabled(self) -> Vec<NativeTool> {
        let switches = [
            (self.google_search, NativeTool::GoogleSearch),
            (self.url_context, NativeTool::UrlContext),
            (self.code_execution, NativeTool::CodeExecution),
        ];
        switches
            .into_iter()
            .filter(|(switch, _)| *switch == Some(true))
            .map(|(_, tool)| tool)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_of_a_higher_layer_replaces_only_the_same_switch() {
        let lower = NativeTools {
            google_search: Some(true),
            code_execution: Some(true),
            ..NativeTools::default()
        };
        let upper = NativeTools {
            google_search: Some(false),
            url_context: Some(true),
            ..NativeTools::default()
        };
        assert_eq!(
            lower.enabled(),
            [NativeTool::GoogleSearch, NativeTool::CodeExecution]
        );
        assert_eq!(
            upper.over(lower).enabled(),
            [NativeTool::UrlContext, NativeTool::CodeExecution]
        );
        assert_eq!(NativeTools::default().over(lower), lower);
    }
}
