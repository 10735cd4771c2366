//! The names of tools in everything that a model gets: each is one that it can call.

use std::sync::Arc;

use crate::execution::absorb::absorb;
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::{
    Answer, Entry, LoadedSkills, RefusedTool, Role, SentCall, Summary, ToolCall, ToolResult,
};
use crate::execution::event_refs::RecordedEntry;
use crate::execution::recovery::{LostCall, Recovery, owed};
use crate::execution::results::{ToolOutput, answered};
use crate::execution::state::State;
use crate::execution::summaries::{LongResult, request};
use crate::follow_up::prompts as question_prompts;
use crate::ids::ExecutionId;
use crate::missing_tools::without_tools;
use crate::plan::{
    AgentPlan, Limits, ProviderPlan, ResultForm, Strategy, SubAgent, SummaryPlan, ToolNames,
    ToolSpec,
};
use crate::prompt::{Briefing, PromptOptions, Prompts, ServerAbout, prompts, sub_agent, system};
use crate::read_result::{self, Request, StoredResult, Timeline};
use crate::readable::presentation::{Presentation, present};
use crate::sub_agents;
use crate::testing::{agent_plan, alert, changing_tool, read_only_tool, thread};
use crate::tool_names::shown;

const NATIVE: Strategy = Strategy::NativeThinking;
const REACT: Strategy = Strategy::React;

fn tools() -> Vec<ToolSpec> {
    vec![
        read_only_tool("db.get"),
        read_only_tool("k8s.get"),
        read_only_tool("k8s.logs"),
        read_only_tool("k8s.logs.old"),
        changing_tool("k8s.restart"),
        read_result::thread_spec(),
    ]
}

fn with_prompts<'a>(
    strategy: Strategy,
    tools: &'a [ToolSpec],
    abouts: &'a [ServerAbout],
) -> Briefing<'a> {
    Briefing {
        agent: "sre",
        strategy,
        tools,
        instructions: "Restart what hangs.",
        max_iterations: 9,
        runbooks: &[],
        fetched: None,
        options: PromptOptions {
            abouts,
            has_example: true,
            has_several_actions: true,
            ..PromptOptions::default()
        },
        skills: "",
    }
}

fn plan(strategy: Strategy) -> AgentPlan {
    let tools = tools();
    let abouts = [ServerAbout {
        server: "k8s".to_owned(),
        about: "the cluster".to_owned(),
    }];
    let texts = prompts(&with_prompts(strategy, &tools, &abouts), &alert("Http5xx"));
    let left_out = shown("k8s.top", strategy).into_owned();
    let base = agent_plan(strategy, tools);
    AgentPlan {
        system_prompt: without_tools(texts.system, &[left_out]),
        user_prompt: texts.user,
        conclusion_prompt: texts.conclusion,
        limits: Limits {
            max_tool_result_tokens: 100,
            ..Limits::default()
        },
        summaries: Some(SummaryPlan {
            provider: ProviderPlan::default(),
            over_tokens: [("k8s".to_owned(), 1)].into(),
        }),
        result_form: ResultForm::Indented,
        tool_names: ToolNames::AsCalled,
        several_actions: true,
        ..base
    }
}

/// An execution whose tools answer with a long log.
struct Script {
    state: State,
    event: u32,
}

impl Script {
    fn new(strategy: Strategy) -> Self {
        let state = State::replay(Arc::new(plan(strategy)), None, Vec::<Entry>::new());
        Self { state, event: 0 }
    }

    fn append(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.event += 1;
            let event = entry.result().map(|_| self.event);
            self.state.apply(RecordedEntry {
                entry,
                event,
                at: None,
            });
        }
    }

    /// An answer with this call, and its result or its refusal.
    fn calls(&mut self, tool: &str) {
        let strategy = self.state.plan().strategy;
        let answer = if strategy.writes_calls() {
            Answer {
                text: format!(
                    "Thought: look\nAction: {tool}\nAction Input: {{\"n\": {}}}",
                    self.event
                ),
                ..Answer::default()
            }
        } else {
            let call = ToolCall {
                id: String::new(),
                tool: tool.replace("__", "."),
                arguments: format!("{{\"n\": {}}}", self.event),
                read_only: false,
            };
            Answer {
                calls: vec![call],
                ..Answer::default()
            }
        };
        self.append(absorb(&self.state, answer));
        self.settle();
    }

    /// Runs until the next call of a model.
    fn settle(&mut self) {
        loop {
            match decide(&self.state) {
                Decision::Append(entries) => self.append(entries),
                Decision::RunTools(calls) => {
                    let results = calls.iter().map(|call| self.result(call)).collect();
                    self.append(results);
                }
                Decision::Summarise(long) => {
                    let summaries = long.iter().map(|long| {
                        Entry::Summarised(Summary {
                            call_id: long.call_id.clone(),
                            content: "short".to_owned(),
                            ..Summary::default()
                        })
                    });
                    let summaries = summaries.collect();
                    self.append(summaries);
                }
                Decision::CallModel(_)
                | Decision::Await(_)
                | Decision::Wait(_)
                | Decision::Done(_) => return,
            }
        }
    }

    fn result(&self, call: &ToolCall) -> Entry {
        let plan = self.state.plan();
        let log: String = (0..60)
            .map(|minute| {
                format!("2026-11-27T03:{minute:02}:00Z took {minute} ms and did what it should\n")
            })
            .collect();
        let read_back = read_result::read_back(plan);
        let presentation = if call.tool == "k8s.logs" {
            Presentation::ALL
        } else {
            Presentation::default()
        };
        let presented = present(&log, presentation, read_back).cut(100, read_back);
        let output = ToolOutput {
            content: presented.text,
            whole_bytes: 1,
            is_error: false,
            facts: presented.facts,
        };
        answered(plan.strategy, call, output)
    }

    /// The texts of the conversation that are not the model's own.
    fn texts(&self) -> Vec<String> {
        let messages = self.state.messages();
        let theirs = messages
            .into_iter()
            .filter(|message| message.role != Role::Assistant);
        theirs.map(|message| message.content).collect()
    }
}

/// Everything that the built-in tool answers.
fn read_back_texts(plan: &AgentPlan) -> Vec<String> {
    let request = Request::parse(r#"{"event": 7}"#, Timeline::Own).unwrap();
    let stored = |tool: &str, text: Option<&str>| StoredResult {
        tool: tool.to_owned(),
        text: text.map(str::to_owned),
    };
    let results = [
        None,
        Some(stored("k8s.logs.old", Some("a\nb"))),
        Some(stored(read_result::TOOL, Some("a"))),
        Some(stored("k8s.get", None)),
    ];
    let answers = results
        .iter()
        .map(|stored| read_result::answer(&request, stored.as_ref(), plan, &|| true));
    answers
        .map(|answer| answer.unwrap_or_else(|error| error))
        .chain(Request::parse("{}", Timeline::Own).err())
        .collect()
}

/// The words after a loss of commits.
fn after_a_loss(state: &State) -> Vec<String> {
    let execution = ExecutionId(uuid::Uuid::nil());
    let call = SentCall {
        tool: "k8s.restart".to_owned(),
        identity: "x".to_owned(),
    };
    let recovery = Recovery {
        number: 9,
        calls: vec![LostCall {
            execution_id: execution,
            call,
        }],
    };
    let entries = owed(state, execution, &[recovery]);
    let texts = entries.into_iter().filter_map(|entry| {
        if let Entry::Feedback { content, .. } = entry {
            Some(content)
        } else {
            None
        }
    });
    texts.collect()
}

/// The texts about sub-agents, for their parent and for one of them.
fn texts_of_sub_agents(briefing: &Briefing<'_>) -> Vec<String> {
    let agents = [SubAgent {
        name: "logs".to_owned(),
        description: "Finds what a log shows".to_owned(),
        plan: Arc::default(),
    }];
    let Prompts {
        system,
        user,
        conclusion,
    } = sub_agent(briefing, &alert("Http5xx"));
    vec![
        sub_agents::section(&agents, 2, briefing.strategy),
        sub_agents::spec(&agents).description,
        system,
        sub_agents::with_task(&user, "look"),
        conclusion,
    ]
}

/// The texts of a whole investigation and of a question about it.
fn all_texts(strategy: Strategy) -> Vec<String> {
    let mut script = Script::new(strategy);
    script.settle();
    for tool in [
        "db.get",
        "k8s.get",
        "k8s.logs",
        "k8s__logs",
        "logs.old",
        "k8s.nothing",
        "get",
        "k8s.restart",
    ] {
        script.calls(tool);
    }
    let refused = RefusedTool {
        tool: "db.get".to_owned(),
        reason: "bad".to_owned(),
    };
    script.append(vec![Entry::Answer(Answer {
        refused_tools: vec![refused],
        ..Answer::default()
    })]);
    let mut texts = script.texts();
    texts.extend(after_a_loss(&script.state));
    let last = u32::try_from(script.state.entries().len()).unwrap();
    script.append(vec![Entry::Elided {
        up_to: last,
        skills: LoadedSkills::Blanked,
    }]);
    texts.extend(script.texts());
    let plan = script.state.plan();
    texts.extend(read_back_texts(plan));
    let long = LongResult {
        call_id: String::new(),
        tool: "k8s.get".to_owned(),
        event: 3,
        bytes: 9,
        max_tokens: 9,
    };
    let asked = request::messages(plan, script.state.entries(), &long, "log");
    texts.extend(asked.into_iter().map(|message| message.content));
    let briefing = with_prompts(strategy, &plan.tools, &[]);
    let Prompts {
        system: question_system,
        user,
        conclusion,
    } = question_prompts(&briefing, &thread(), "Why?");
    texts.extend([question_system, user, conclusion, system(&briefing)]);
    texts.extend([plan.conclusion_prompt.clone()]);
    texts.extend(texts_of_sub_agents(&briefing));
    texts.extend(plan.tools.iter().map(|tool| tool.description.clone()));
    texts.extend(plan.tools.iter().map(|tool| tool.parameters_schema.clone()));
    texts
}

#[test]
fn no_text_names_a_tool_as_it_cannot_be_called() {
    for strategy in [NATIVE, REACT] {
        let texts = all_texts(strategy);
        let servers = ["db", "k8s", "tarsy"];
        let wrong = if strategy == NATIVE { "." } else { "__" };
        for text in &texts {
            // A model that is asked back gets its own words.
            let text = text.replace("Unknown tool 'k8s__", "");
            for server in servers {
                assert!(
                    !text.contains(&format!("{server}{wrong}")),
                    "{strategy:?}: {server}{wrong} in {text}"
                );
            }
        }
        let all = texts.join("\n");
        for said in [
            "restart",
            "logs",
            "read_result",
            "describe_pod",
            "top",
            "dispatch_agent",
        ] {
            let right = if strategy == NATIVE { "__" } else { "." };
            assert!(
                all.contains(&format!("{right}{said}")),
                "{strategy:?}: {said}"
            );
        }
        assert!(all.contains("left out here"), "{all}");
        assert!(all.contains("removed to save space"), "{all}");
        assert!(all.contains("shows the whole result"), "{all}");
        let several = format!(
            "{}, {}",
            shown("db.get", strategy),
            shown("k8s.get", strategy)
        );
        assert!(all.contains(&several), "{all}");
    }
}

#[test]
fn a_call_by_another_name_is_stored_with_the_name_of_its_tool() {
    for strategy in [NATIVE, REACT] {
        let mut script = Script::new(strategy);
        script.settle();
        for tool in [
            "k8s__get",
            "functions.k8s.get",
            "default_api.logs",
            "logs.old",
        ] {
            script.calls(tool);
        }
        let answers = script.state.entries().iter().filter_map(Entry::answer);
        let called: Vec<(String, bool)> = answers
            .flat_map(|answer| &answer.calls)
            .map(|call| (call.tool.clone(), call.read_only))
            .collect();
        let names = ["k8s.get", "k8s.get", "k8s.logs", "k8s.logs.old"];
        assert_eq!(called, names.map(|name| (name.to_owned(), true)));
        let results = script.state.entries().iter().filter_map(Entry::result);
        assert!(
            results
                .into_iter()
                .all(|result: &ToolResult| !result.is_error)
        );
    }
}

#[test]
fn a_plan_of_an_older_version_shows_the_full_names_as_before() {
    let plan = AgentPlan {
        tool_names: ToolNames::Full,
        ..plan(NATIVE)
    };
    assert_eq!(plan.shown("k8s.get"), "k8s.get");
    let stored = serde_json::to_value(&plan).unwrap();
    assert_eq!(stored.get("tool_names"), None);
    let older: AgentPlan = serde_json::from_value(stored).unwrap();
    assert_eq!(older.tool_names, ToolNames::Full);
}
