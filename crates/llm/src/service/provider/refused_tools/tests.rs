//! The words of real refusals, with names of tools of our own.

use proptest::prelude::*;

use super::*;

/// The tools of every request here: five with names, then `srv__t5` to `srv__t39`.
fn tools() -> Vec<String> {
    let named = [
        "k8s__pods_list",
        "k8s__logs",
        "prom__query_range",
        "search",
        "get-room",
    ]
    .map(str::to_owned);
    named
        .into_iter()
        .chain((5..40).map(|number| format!("srv__t{number}")))
        .collect()
}

fn found_in(text: &str, layout: Layout) -> Vec<usize> {
    let tools = tools();
    let names: Vec<&str> = tools.iter().map(String::as_str).collect();
    refused_tools(
        text,
        Sent {
            names: &names,
            layout,
        },
    )
    .into_iter()
    .collect()
}

const CORPUS: &str = include_str!("corpus.txt");

#[test]
fn the_refused_tools_are_found_in_the_words_of_every_provider() {
    let rows = CORPUS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.splitn(4, " | ").collect::<Vec<_>>());
    let mut providers = BTreeSet::new();
    for row in rows {
        let [layout, provider, places, text] = *row.as_slice() else {
            panic!("{row:?}")
        };
        let layout = if layout == "list" {
            Layout::List
        } else {
            Layout::Declarations
        };
        let expected: Vec<usize> = places
            .split(' ')
            .map(|place| place.parse().unwrap())
            .collect();
        assert_eq!(
            found_in(&text.replace(r"\n", "\n"), layout),
            expected,
            "{provider}: {text}"
        );
        providers.insert(provider);
    }
    assert!(providers.len() >= 12, "{providers:?}");
}

#[test]
fn a_refusal_that_names_no_tool_for_certain_stands() {
    for text in [
        // About all tools.
        "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.search': type is not defined>",
        "Failed to initialize samplers: failed to parse grammar",
        "Invalid request content: Invalid function schema.",
        "JSON Schema not supported: could not understand the instance `{'description': 'any'}`",
        "'tools' : maximum number of items is 128",
        "tools: Tool names must be unique.",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 214 instead.",
        "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1",
        "`tool calling` is not supported with this model",
        // About the conversation, or about a call.
        "messages.4.content.1: unexpected `tool_use_id` found in tool `k8s__logs`, its schema is unknown",
        "Invalid value for \"tool_choice\": no function named \"k8s__logs\" was specified in the \"tools\" parameter.",
        "tool call validation failed: parameters for tool k8s__logs did not match schema: errors: [`/a`: expected string]",
        "GenerateContentRequest.contents[33].parts[0].data: required oneof field 'data' must have one initialized field",
        "Invalid parameter: messages[2].tools[1] is not a schema",
        // A property with the name of a tool, a plain word, a place that the request does not have.
        "Invalid schema for function 'other': In context=('properties', 'k8s__logs'), array schema missing items.",
        "Invalid schema: the tool search feature has no parameters",
        "tools.77.custom.input_schema: JSON schema is invalid.",
        "available_tools[3] has no schema, toolset.tools3.x",
        "tools.30000.custom.input_schema: JSON schema is invalid.",
        // Cut.
        "tools.1",
        "tools.1…",
        "* GenerateContentRequest.tools[0].function_declarations[1",
        "Invalid schema for function k8s__logs",
        // Each function may be an item of its own there, or not.
        "GenerateContentRequest.tools[4].function_declarations[0].parameters: bad schema",
    ] {
        assert_eq!(found_in(text, Layout::List), Vec::<usize>::new(), "{text}");
    }
    assert_eq!(
        found_in(
            "tools.1.custom.input_schema: JSON schema is invalid.",
            Layout::Declarations
        ),
        Vec::<usize>::new()
    );
}

fn refusal(code: ErrorCode, text: &str) -> ProviderError {
    ProviderError {
        full_text: format!("{text}\n"),
        ..ProviderError::new(code, text).with_status("400 x")
    }
}

fn learn(
    left_out: &mut LeftOut,
    refused: &ProviderError,
    names: &[&str],
    choice: &str,
) -> Option<Vec<usize>> {
    let request = GenerateRequest {
        tool_choice: choice.to_owned(),
        ..GenerateRequest::default()
    };
    let found = left_out.learn(
        refused,
        &request,
        Sent {
            names,
            layout: Layout::List,
        },
    );
    found.map(|places| places.into_iter().collect())
}

#[test]
fn tools_are_left_out_a_few_times_and_never_all_of_them() {
    let names = ["k8s__a", "k8s__b"];
    let second = refusal(
        ErrorCode::InvalidRequest,
        "tools.1.custom.input_schema:  is\n bad",
    );
    let mut left_out = LeftOut::default();
    assert_eq!(learn(&mut left_out, &second, &names, "auto"), Some(vec![1]));
    let expected = RefusedTool {
        name: "k8s.b".to_owned(),
        reason: "tools.1.custom.input_schema: is bad".to_owned(),
    };
    assert_eq!(left_out.tools(None), [expected]);
    for _ in 1..MAX_CORRECTIONS {
        assert_eq!(learn(&mut left_out, &second, &names, ""), Some(vec![1]));
    }
    assert_eq!(
        learn(&mut left_out, &second, &names, ""),
        None,
        "there are only so many corrections"
    );

    let stands = |code, text: &str, names: &[&str], choice: &str| {
        assert_eq!(
            learn(&mut LeftOut::default(), &refusal(code, text), names, choice),
            None,
            "{text}"
        );
    };
    let first = "tools.0.name: bad";
    let schema = "Invalid schema for function 'k8s__a': bad";
    stands(ErrorCode::InvalidRequest, first, &["k8s__a"], "");
    stands(ErrorCode::InvalidRequest, schema, &["k8s__a"], "");
    stands(
        ErrorCode::InvalidRequest,
        "tools.0.name: bad, tools.1.name: bad",
        &names,
        "",
    );
    stands(ErrorCode::InvalidRequest, first, &names, "k8s.a");
    stands(ErrorCode::Credentials, first, &names, "");
    stands(ErrorCode::ContextWindowExceeded, schema, &names, "");
    let long = "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024";
    let long = refusal(ErrorCode::ContextWindowExceeded, long);
    assert_eq!(
        learn(&mut LeftOut::default(), &long, &names, ""),
        Some(vec![0])
    );
}

#[test]
fn a_reason_is_short_and_has_no_part_of_the_conversation() {
    let long = refusal(
        ErrorCode::InvalidRequest,
        &format!("tools.0.name: {}", "é".repeat(900)),
    );
    let mut left_out = LeftOut::default();
    learn(&mut left_out, &long, &["a__b", "c__d"], "").unwrap();
    let reason = left_out.tools(None).remove(0).reason;
    assert!(
        reason.starts_with("tools.0.name: éé") && reason.chars().count() == MAX_REASON_CHARS + 1,
        "{reason}"
    );
}

/// Wordings with one gap for a name, and with one for a place.
const OF_NAMES: [&str; 4] = [
    "Invalid schema for function '{}': bad",
    "Unable to submit request because `{}` functionDeclaration `parameters.x` schema is bad",
    "Invalid JSON schema for tool \"{}\"",
    "Duplicate function declaration found: {}\n",
];
const OF_PLACES: [&str; 5] = [
    "tools.{}.custom.input_schema: bad",
    "Invalid 'tools[{}].function.name': bad",
    "The value at toolConfig.tools.{}.toolSpec.inputSchema.json is bad",
    "#/toolConfig/tools/{}/toolSpec: bad",
    "* GenerateContentRequest.tools[0].function_declarations[{}].parameters: bad",
];
const NOISE: [&str; 12] = [
    "tools",
    "function",
    "'",
    "k8s__logs",
    "srv__t7",
    ".3.",
    "[12]",
    " -> ",
    "schema",
    "parameters",
    "messages.",
    "search",
];

proptest! {
    #[test]
    fn a_wording_names_its_tool_and_no_other(tool in 0_usize..40, wording in 0_usize..9) {
        let named = OF_NAMES.get(wording).map(|text| text.replace("{}", &tools()[tool]));
        // A plain word counts only in quotation marks.
        prop_assume!(!(wording == 3 && tool == 3));
        let text = named.unwrap_or_else(|| OF_PLACES[wording - OF_NAMES.len()].replace("{}", &tool.to_string()));
        prop_assert_eq!(found_in(&text, Layout::List), [tool], "{}", text);
        prop_assert_eq!(found_in(&text.to_uppercase().to_lowercase(), Layout::List), found_in(&text.to_lowercase(), Layout::List));
    }

    #[test]
    fn no_tool_is_found_that_the_text_does_not_name(
        parts in prop::collection::vec(prop_oneof![(0_usize..12).prop_map(|at| NOISE[at].to_owned()), "[ a-z0-9.,:'\\[\\]/_-]{0,9}", ".{0,4}"], 0..14),
        layout in prop_oneof![Just(Layout::List), Just(Layout::Declarations)],
    ) {
        let text = parts.concat();
        for place in found_in(&text, layout) {
            let name = &tools()[place];
            let numbers = [place, place + 1].map(|number| number.to_string());
            let has_place = numbers.iter().any(|number| text.contains(number.as_str()));
            prop_assert!(text.contains(name.as_str()) || text.contains(&from_wire(name)) || has_place, "{place} in {text}");
        }
    }
}
