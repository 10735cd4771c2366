//! Any text is an answer that can be read: nothing panics, and what was understood holds together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use tarsy_core::plan::ToolSpec;
use tarsy_core::react::{QuoteContext, UntrustedHeaders, Reply, ReplyKind, conclude, read, read_within};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    holds(&read(&text, None));
    holds(&read(&text, Some(&tools())));
    conclude(&text, &UntrustedHeaders::default());
    let mut untrusted = UntrustedHeaders::default();
    untrusted.add(&text);
    let quoted = read_within(&text, &tools(), QuoteContext { untrusted: &untrusted, was_rejected_as_quotation: false });
    holds(&quoted);
    assert!(matches!(quoted.kind, ReplyKind::Malformed | ReplyKind::UnknownTool), "nothing but a quotation");
});

fn tools() -> [ToolSpec; 2] {
    ["host.df", "db.top.tables"].map(|name| ToolSpec {
        original_name: None,
        name: name.to_owned(),
        description: "Looks.".to_owned(),
        parameters_schema: "{}".to_owned(),
        read_only: true,
    })
}

fn holds(reply: &Reply) {
    assert_eq!(reply.kind == ReplyKind::Final, reply.final_answer.is_some());
    assert_eq!(matches!(reply.kind, ReplyKind::Final | ReplyKind::Action), reply.feedback.is_none());
    assert_eq!(matches!(reply.kind, ReplyKind::Action | ReplyKind::UnknownTool), reply.arguments.is_some());
    if let Some(sent) = &reply.arguments_text {
        let sent: Map<String, Value> = serde_json::from_str(sent).expect("a JSON object is sent");
        assert_eq!(Some(&sent), reply.arguments.as_ref());
    }
}
