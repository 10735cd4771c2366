//! Tests of `mcp_servers`.

use super::env;
use crate::*;

#[test]
fn an_empty_list_of_tools_differs_from_no_list() {
    let server = |keys: &str| {
        let text = format!("mcp_servers: {{a: {{command: c{keys}}}}}");
        let server = Config::parse("f", &text, &env).unwrap().mcp_servers["a"].clone();
        (server.tools, server.deny, server.trust_hints)
    };
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(server(""), (None, vec![], true));
    assert_eq!(server(", tools: []"), (Some(vec![]), vec![], true));
    let expected = (Some(names(&["get", "top"])), names(&["exec"]), false);
    assert_eq!(
        server(", tools: [get, top], deny: [exec], trust_hints: false"),
        expected
    );
}

#[test]
fn the_scope_of_a_server_is_the_worker_or_the_session_with_a_hint_about_its_cost() {
    let read = |keys: &str| {
        let text = format!("worker: {{slots: 7}}\nmcp_servers: {{a: {{{keys}}}}}");
        Config::parse("f", &text, &env).map_err(|faults| faults.to_string())
    };
    let found = |keys: &str| {
        read(keys).map(|config| {
            let mut hints = hints(&config);
            hints.retain(|hint| hint.starts_with("mcp_servers"));
            (config.mcp_servers["a"].scope, hints)
        })
    };
    assert_eq!(found("command: c"), Ok((ServerScope::Worker, vec![])));
    assert_eq!(
        found("command: c, scope: worker"),
        Ok((ServerScope::Worker, vec![]))
    );
    for (keys, what) in [
        ("command: c", "programs"),
        ("url: 'http://h/mcp'", "sessions at the server"),
    ] {
        let hint = format!(
            "mcp_servers.a.scope: session makes up to 8 {what} for each worker: one for each of its 7 slots \
             (worker.slots), and one that lists the tools"
        );
        assert_eq!(
            found(&format!("{keys}, scope: session")),
            Ok((ServerScope::Session, vec![hint]))
        );
    }
    let shown = show(&read("command: c, scope: session").unwrap());
    assert!(shown.contains("scope: session"), "{shown}");
    let fault = read("command: c, scope: alert").unwrap_err();
    assert!(
        fault.contains("mcp_servers.a.scope") && fault.contains("worker, session"),
        "{fault}"
    );
}

#[test]
fn the_longest_time_of_a_call_is_at_least_the_time_without_progress() {
    let limits = |keys: &str| {
        let text = format!("mcp_servers: {{a: {{command: c{keys}}}}}");
        let config = Config::parse("f", &text, &env).map_err(|faults| faults.to_string())?;
        let server = config.mcp_servers["a"].clone();
        let seconds = |time: Duration| time.as_secs();
        Ok((
            seconds(server.tool_timeout),
            seconds(server.max_tool_timeout),
            server.max_concurrent_calls,
        ))
    };
    assert_eq!(limits(""), Ok((60, 600, 32)));
    assert_eq!(limits(", tool_timeout: 20m"), Ok((1_200, 1_200, 32)));
    assert_eq!(
        limits(", tool_timeout: 5s, max_tool_timeout: 5s, max_concurrent_calls: 1"),
        Ok((5, 5, 1))
    );
    let faults: Result<_, String> = limits(", max_tool_timeout: 59s, max_concurrent_calls: 0");
    let faults = faults.unwrap_err();
    let words =
        "less than tool_timeout; accepted: the same or more, because progress extends a call";
    assert!(
        faults.contains(words) && faults.contains("mcp_servers.a.max_concurrent_calls"),
        "{faults}"
    );
}

#[test]
fn a_server_is_reached_by_a_program_or_an_address() {
    let text = "mcp_servers:\n  a: {command: c, user: tools, directory: /srv, max_memory: 512MiB, max_open_files: 64}\n  \
                b: {url: 'https://h/mcp', headers: {X-Team: '${K8S_TOKEN:-}'}, token_file: /t, ca_file: /c, proxy: 'http://p:1', \
                not_run_on: [429, 503]}\n  \
                c: {type: http, url: 'http://h:1/mcp', token_env: K8S_TOKEN}\n  d: {type: stdio, command: c}\n";
    let config = Config::parse("f", text, &env).unwrap();
    let program = config.mcp_servers["a"].transport.program().unwrap();
    assert_eq!(
        (program.user.as_deref(), program.max_memory),
        (Some("tools"), Some(512 << 20))
    );
    assert_eq!(
        (program.directory.as_deref(), program.max_open_files),
        (Some("/srv"), Some(64))
    );
    let address = config.mcp_servers["b"].transport.address().unwrap();
    assert_eq!(
        (address.url.as_str(), address.token_file.as_deref()),
        ("https://h/mcp", Some("/t"))
    );
    assert_eq!(address.not_run_on, [429, 503]);
    assert_eq!(
        config.mcp_servers["c"]
            .transport
            .address()
            .unwrap()
            .token_env
            .as_deref(),
        Some("K8S_TOKEN")
    );
    let shown = show(&config);
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!(Config::parse("shown", &shown, &env), Ok(config), "{shown}");
}

#[test]
fn a_fault_in_an_address_names_its_fix_and_no_secret() {
    for (keys, expected) in [
        (
            "type: sse, url: 'http://h/sse'",
            "use `type: http` with the address",
        ),
        (
            "url: 'http://h/mcp', command: c",
            "a server has either `command` or `url`",
        ),
        (
            "url: 'http://h/mcp', env: {A: b}",
            "not for a server with `url`",
        ),
        (
            "command: c, token_file: /t",
            "not for a server with `command`",
        ),
        ("type: http", "mcp_servers.a.url"),
        ("url: 'http://u:s3cret@h/mcp'", "leave them out"),
        (
            "url: 'http://h/mcp', headers: {Accept: s3cret}",
            "the protocol sets this header",
        ),
        (
            "url: 'http://h/mcp', headers: {'a b': s3cret}",
            "not the name of a header",
        ),
        (
            "url: 'http://h/mcp', headers: {A: \"s3cret\\n\"}",
            "not the value of a header",
        ),
        (
            "url: 'http://h/mcp', token_env: s3cret-token",
            "not the name of an environment variable",
        ),
        (
            "url: 'http://h/mcp', token_env: A, token_file: /t",
            "either token_env or token_file",
        ),
        (
            "url: 'http://h/mcp', proxy: 's3cret@p'",
            "accepted: http://… or https://…",
        ),
        (
            "url: 'http://h/mcp', not_run_on: [429, 200]",
            "mcp_servers.a.not_run_on[1]",
        ),
        (
            "command: c, not_run_on: [429]",
            "not for a server with `command`",
        ),
    ] {
        let fault = super::faults(&format!("mcp_servers: {{a: {{{keys}}}}}"));
        assert!(
            fault.contains(expected) && !fault.contains("s3cret"),
            "{keys}: {fault}"
        );
    }
}

#[test]
fn a_header_names_the_session_only_where_a_connection_belongs_to_one() {
    let read = |value: &str, keys: &str| {
        let text = format!(
            "mcp_servers: {{a: {{url: 'http://h/mcp', headers: {{X-Session-ID: '{value}'}}{keys}}}}}"
        );
        Config::parse("f", &text, &env).map_err(|faults| faults.to_string())
    };
    for value in [
        "{{session}}",
        "box-{{session}}-{{session}}",
        "${K8S_TOKEN}{{session}}",
    ] {
        let config = read(value, ", scope: session").unwrap();
        assert_eq!(
            Config::parse("shown", &show(&config), &env),
            Ok(config),
            "{value}"
        );
        for keys in ["", ", scope: worker"] {
            let fault = read(value, keys).unwrap_err();
            assert!(
                fault.contains("mcp_servers.a.headers.X-Session-ID")
                    && fault.contains("needs `scope: session`"),
                "{fault}"
            );
        }
    }
    for value in [
        "{{alert}}",
        "{{ session }}",
        "{{}}",
        "{{session}} {{Session}}",
    ] {
        for keys in ["", ", scope: session"] {
            let fault = read(value, keys).unwrap_err();
            assert!(fault.contains("accepted: {{session}}"), "{value}: {fault}");
        }
    }
    for value in ["{session}", "{{session", "session}}", r#"{"a": {"b": 1}}"#] {
        assert!(read(value, "").is_ok(), "{value} is plain text");
    }
}

#[test]
fn the_words_about_a_server_are_one_short_line() {
    let about = |words: &str| {
        let text = format!("mcp_servers: {{a: {{command: c, about: {words}}}}}");
        let config = Config::parse("f", &text, &env).map_err(|faults| faults.to_string())?;
        Ok::<_, String>(config.mcp_servers["a"].about.clone())
    };
    assert_eq!(
        about("Kubernetes of prod"),
        Ok("Kubernetes of prod".to_owned())
    );
    assert!(about(&"é".repeat(200)).is_ok());
    let long = about(&"é".repeat(201)).unwrap_err();
    assert!(
        long.contains("mcp_servers.a.about") && long.contains("more than 200 characters"),
        "{long}"
    );
    let lines = about(r#""a\nb""#).unwrap_err();
    assert!(lines.contains("must be one line"), "{lines}");
}
