"""The intended differences between this service and the existing one, each with a name.

A difference is a function that turns the recording of a case into what this service sends. It looks at the kind of the
case (what the provider answers, what the request has), never at its name, and changes nothing where it does not apply.
Whatever no difference explains is a fault.
"""

import json

import cases
import contract
import others
from answers import grounding_of, ids_of, joined, last_step, numbered
from cases import Message
from failures import attempts_of, error_of, failure_of, is_own, sent_by

EXISTING, WORKER = "existing", "worker"
SENTINEL = "skip_thought_signature_validator"
END = {"usage", "is_final"}
TABLE = {}


def difference(function):
    """Adds a difference to the table. They apply in the order of this file."""
    TABLE[function.__name__] = function
    return function


def rewritten(case, client, recording):
    """What this service has to send for a case, and the names of the differences that changed it."""
    expected, names = cases.copied(recording), []
    for name, change in (TABLE | (others.TABLE if case.backend in others.BACKENDS else {})).items():
        before = cases.copied(expected)
        change(case, client, expected)
        if (before.calls, before.http) != (expected.calls, expected.http):
            names.append(name)
    return expected, names


def gemini(change):
    """A difference of the backend google-native only."""
    def changed(case, client, expected):
        if case.backend == "google-native":
            change(case, client, expected)
    changed.__name__, changed.__doc__ = change.__name__, change.__doc__
    return changed


# ---------------------------------------------------------------- which requests are refused


@difference
def the_backends_have_other_names(case, client, expected):
    """`langchain` is also called `genai`, and `scripted` plays recordings."""
    for error in (response["error"] for response in responses(expected, "error")):
        start, found, _ = error["message"].partition("Available backends: ")
        if found:
            error["message"] = Message(start + found, "genai, google-native, langchain, scripted")


@difference
@gemini
def results_of_tools_may_be_any_json(case, client, expected):
    """The existing service fails when a result is an array, a number or a string."""
    for number, answer in enumerate(expected.calls):
        message = answer[-1].get("error", {}).get("message")
        if isinstance(message, str) and "validation error for FunctionResponse" in message:
            expected.calls[number] = contract.stream_of(case.steps[0])
            expected.http.insert(number, contract.request_of(case.requests[number]))


# ---------------------------------------------------------------- how a call ends


def ending(name, doc):
    """A difference in the calls where an answer of the provider is a failure of this kind."""
    def change(case, client, expected):
        attempts = attempts_of(case)
        failures = [[failure_of(case, step) for step in tried] for tried in attempts]
        here = [any(each and each.kind == name for each in found) for found in failures]
        if not any(here) or any("error" in answer[-1] and is_own(answer[-1]["error"]) for answer in expected.calls):
            return
        requests = one_request_a_call(case, expected)
        expected.http = [request for request, tried in zip(requests, attempts) for _ in tried]
        for number in (number for number, is_here in enumerate(here) if is_here):
            last, failure = attempts[number][-1], failures[number][-1]
            sent = numbered(sent_by(case, last))
            error = failure and error_of(case, failure, attempts[number], client == WORKER)
            expected.calls[number] = [*sent, error] if failure else contract.stream_of(last)
    change.__name__, change.__doc__ = name, doc
    return difference(gemini(change))


def one_request_a_call(case, expected):
    """The recorded requests without their repetitions."""
    if len(case.requests) == 1:
        return expected.http[:1]
    if len(case.requests) == len(expected.http):
        return expected.http
    return [contract.request_of(request) for request in case.requests]


ending("rate_limits_are_retried", "After the delay that the provider asks for, if it comes before the deadline.")
ending("blocked_prompts_are_not_retried", "And say why.")
ending("empty_answers_say_why", "Only those that may come out otherwise are retried.")
ending("malformed_json_is_retried", "If nothing of the answer was sent; else the answer is broken.")
ending("an_answer_without_finish_reason_is_broken", "It was cut off.")
ending("a_lost_connection_is_not_final", "It is retried if nothing was sent; else the answer is broken.")
ending("the_deadline_of_the_caller_is_kept", "Nothing is tried after it.")
ending("signature_errors_have_a_code", "A worker can rebuild its history.")
ending("errors_say_what_a_caller_can_do", "Whether and when to try again; in words of the provider, not of Python.")


# ---------------------------------------------------------------- the fields of responses


@difference
def arguments_are_compact(case, client, expected):
    """JSON without spaces and escapes."""
    for response in responses(expected, "tool_call"):
        call = response["tool_call"]
        call["arguments"] = json.dumps(json.loads(call["arguments"]), ensure_ascii=False, separators=(",", ":"))


@difference
def calls_keep_the_ids_of_the_provider(case, client, expected):
    """The existing service makes up its own."""
    for number, answer in enumerate(expected.calls):
        own = iter(ids_of(case, number))
        for response in answer:
            if "tool_call" in response:
                response["tool_call"]["call_id"] = next(own, None) or response["tool_call"]["call_id"]


@difference
@gemini
def sources_that_are_no_pages_are_not_counted(case, client, expected):
    """The existing service leaves them out of the list, but not out of the numbers that refer to it."""
    for number, answer in enumerate(expected.calls):
        pages = [index for index, chunk in enumerate(grounding_of(case, number, "groundingChunks")) if "web" in chunk]
        for response in answer:
            supports = response.get("grounding", {}).get("grounding_supports", [])
            for support in supports:
                old = support.get("grounding_chunk_indices", [])
                support["grounding_chunk_indices"] = [pages.index(index) for index in old if index in pages]
            if supports:
                response["grounding"]["grounding_supports"] = [e for e in supports if e["grounding_chunk_indices"]]


@difference
@gemini
def supports_have_scores_and_parts(case, client, expected):
    """The part of the answer within which their bytes count, and a score for each source that is a page."""
    for number, answer in enumerate(expected.calls):
        chunks = grounding_of(case, number, "groundingChunks")
        sent = [
            support
            for support in grounding_of(case, number, "groundingSupports")
            if any("web" in chunks[index] for index in support.get("groundingChunkIndices", []))
        ]
        for response in answer:
            for support, raw in zip(response.get("grounding", {}).get("grounding_supports", []), sent):
                scores = zip(raw["groundingChunkIndices"], raw.get("confidenceScores", []))
                found = {
                    "confidence_scores": [score for index, score in scores if "web" in chunks[index]],
                    "part_index": raw.get("segment", {}).get("partIndex", 0),
                }
                support |= {key: value for key, value in found.items() if value}


@difference
@gemini
def pages_that_were_not_read_are_listed(case, client, expected):
    """With the provider's reason; alone only for a client that accepts that."""
    for number, answer in enumerate(expected.calls):
        step = last_step(case, number)
        pages = [
            {"url": page["retrievedUrl"], "status": page["urlRetrievalStatus"]}
            for candidate in (step.candidates if step else [])
            for page in candidate.get("urlContextMetadata", {}).get("urlMetadata", [])
        ]
        found = [response["grounding"] for response in answer if "grounding" in response]
        if pages and not found and client == WORKER:
            found = [{}]
            answer.insert(next(at for at, each in enumerate(answer) if set(each) & END), {"grounding": found[0]})
        if pages and found:
            found[0]["url_retrievals"] = pages


@difference
@gemini
def code_has_its_language_and_outcome(case, client, expected):
    """And the id that connects both, if there is one."""
    for number, answer in enumerate(expected.calls):
        step = last_step(case, number)
        parts = step.parts if step else []
        raw = [part[kind] for part in parts for kind in ("executableCode", "codeExecutionResult") if kind in part]
        found = [response["code_execution"] for response in answer if "code_execution" in response]
        for code, part in zip(found, raw):
            code |= {key: part[key] for key in ("language", "outcome", "id") if part.get(key)}


@difference
@gemini
def usage_counts_what_was_cached_and_what_tools_read(case, client, expected):
    """Both are left out by the existing service."""
    for number, answer in enumerate(expected.calls):
        step = last_step(case, number)
        usage = [event["usageMetadata"] for event in step.events if "usageMetadata" in event] if step else []
        names = {"cache_read_tokens": "cachedContentTokenCount", "tool_use_prompt_tokens": "toolUsePromptTokenCount"}
        for response in answer:
            if "usage" in response and usage:
                response["usage"] |= {name: usage[-1][key] for name, key in names.items() if usage[-1].get(key)}


# ---------------------------------------------------------------- the request to the provider


@difference
@gemini
def no_replica_keeps_a_conversation(case, client, expected):
    """The existing service replays its memory. Here the client returns the parts; without them they are rebuilt."""
    for number in range(1, min(len(case.requests), len(expected.http))):
        body = contract.request_of(case.requests[number])["body"]
        if client == WORKER:
            replay(case, number, body)
        expected.http[number]["body"] = body


def replay(case, number, body):
    """The model's contents of this request are those of the provider; text without a signature is joined."""
    answers = iter(attempts_of(case)[:number])
    contents = []
    for content in body["contents"]:
        tried = next(answers, None) if content["role"] == "model" else None
        step = tried and tried[-1]
        is_whole = step and failure_of(case, step) is None
        contents.append({"parts": joined(step.parts), "role": "model"} if is_whole else content)
    body["contents"] = contents


@difference
@gemini
def foreign_calls_have_the_documented_signature(case, client, expected):
    """The first call of each step of the current turn, if the provider's own signature is lost."""
    for request in expected.http:
        contents = request["body"]["contents"]
        turns = [index for index, each in enumerate(contents) if is_question(each)]
        for content in contents[turns[-1]:] if turns else []:
            calls = [part for part in content["parts"] if "functionCall" in part]
            if calls and not any("thoughtSignature" in part for part in content["parts"]):
                calls[0]["thoughtSignature"] = SENTINEL


def is_question(content):
    return content["role"] == "user" and any("text" in part for part in content["parts"])


@difference
@gemini
def results_are_under_documented_keys(case, client, expected):
    """`output` for what is no object; the existing service has `text` for text, and nothing for no result."""
    for request, sent in zip(case.requests, expected.http):
        results = [message for message in request["messages"] if message["role"] == "tool"]
        parts = [part for content in sent["body"]["contents"] for part in content["parts"]]
        for message, part in zip(results, (part for part in parts if "functionResponse" in part)):
            value = contract.parsed(message["content"], message["content"])
            if message.get("is_error"):
                part["functionResponse"]["response"] = {"error": value}
            elif not isinstance(value, dict):
                part["functionResponse"]["response"] = {"output": value}


@difference
@gemini
def results_are_in_the_order_of_their_calls(case, client, expected):
    """The existing service sends them in the order in which they came."""
    for request, sent in zip(case.requests, expected.http):
        order = [call["id"] for message in request["messages"] for call in message.get("tool_calls", [])]
        results = [message for message in request["messages"] if message["role"] == "tool"]
        contents = sent["body"]["contents"]
        places = [index for index, content in enumerate(contents) if is_result(content)]
        found = {message["tool_call_id"]: contents[place] for message, place in zip(results, places)}
        for place, call in zip(places, sorted(found, key=order.index)):
            contents[place] = found[call]


@difference
@gemini
def results_have_the_id_of_their_call(case, client, expected):
    """If the provider gave one."""
    for request in expected.http:
        ids = {}
        for content in request["body"]["contents"]:
            for part in content["parts"]:
                if "functionCall" in part and part["functionCall"].get("id"):
                    ids.setdefault(part["functionCall"]["name"], []).append(part["functionCall"]["id"])
                name = part.get("functionResponse", {}).get("name")
                if ids.get(name):
                    part["functionResponse"]["id"] = ids[name].pop(0)


@difference
@gemini
def results_of_a_step_are_one_content(case, client, expected):
    """As the provider documents it."""
    for request in expected.http:
        joined = []
        for content in request["body"]["contents"]:
            if joined and is_result(content) and is_result(joined[-1]):
                joined[-1]["parts"] = joined[-1]["parts"] + content["parts"]
            else:
                joined.append(content)
        request["body"]["contents"] = joined


def is_result(content):
    return all("functionResponse" in part for part in content["parts"])


@difference
@gemini
def functions_win_where_a_model_takes_only_one_kind(case, client, expected):
    """Gemini 2.5 refuses its own tools beside functions."""
    for request in expected.http:
        body = request["body"]
        if "2.5" in case.model and "toolConfig" in body:
            del body["toolConfig"]
            body["tools"] = [tool for tool in body["tools"] if "functionDeclarations" in tool]


@difference
@gemini
def models_that_do_not_think_are_not_asked_to(case, client, expected):
    """The existing service asks every unknown model for the level HIGH, which most of them refuse."""
    thinks = case.model.startswith(("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3", "gemini-4"))
    for request in expected.http:
        if case.model.startswith(("gemini-flash", "gemini-pro")):
            request["body"]["generationConfig"]["thinkingConfig"] = {"include_thoughts": True}
        elif not thinks or "image" in case.model:
            del request["body"]["generationConfig"]


@difference
@gemini
def fields_are_written_as_documented(case, client, expected):
    """In camel case; the existing service writes some of them in snake case."""
    for request in expected.http:
        body = request["body"]
        thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
        rename(thinking, "include_thoughts", "includeThoughts")
        rename(thinking, "thinking_level", "thinkingLevel")
        rename(thinking, "thinking_budget", "thinkingBudget")
        for tool in body.get("tools", []):
            for declaration in tool.get("functionDeclarations", []):
                rename(declaration, "parameters_json_schema", "parametersJsonSchema")


def rename(value, old, new):
    if old in value:
        value[new] = value.pop(old)


def responses(expected, kind):
    return [response for answer in expected.calls for response in answer if kind in response]
