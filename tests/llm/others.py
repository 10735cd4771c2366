"""The intended differences of the providers other than Gemini: OpenAI and Anthropic by the backend `langchain`.

As in differences.py, each is a function that turns a recording into what this service sends. They apply after those
that all backends share.
"""

from answers import blocks_of, last_step
from failures import attempts_of, error_of, failure_of

BACKENDS = ("genai", "langchain")
WORKER = "worker"
CACHED = {"cache_control": {"type": "ephemeral"}}
TABLE = {}


def difference(function):
    TABLE[function.__name__] = function
    return function


def provider(name):
    """A decorator: the difference is one of this provider only."""
    def only(change):
        def changed(case, client, expected):
            if case.provider == name:
                change(case, client, expected)
        changed.__name__, changed.__doc__ = change.__name__, change.__doc__
        return difference(changed)
    return only


@difference
def failures_say_what_a_caller_can_do(case, client, expected):
    """The service itself repeats a request, as the SDK in the existing one does, and says whether and when to go on."""
    for number, tried in enumerate(attempts_of(case)):
        if failure := failure_of(case, tried[-1]):
            expected.calls[number] = [error_of(case, failure, tried, client == WORKER)]


@difference
def usage_counts_what_was_cached_and_thought(case, client, expected):
    """The existing service adds only some of the events of Anthropic, so that the input is missing."""
    for number, answer in enumerate(expected.calls):
        step = last_step(case, number)
        for response in answer:
            if "usage" in response:
                usage = anthropic_usage(step) if blocks_of(step) else openai_usage(step)
                response["usage"] = {name: tokens for name, tokens in usage.items() if tokens}


def anthropic_usage(step):
    """What was cached is part of the input, as at the other providers."""
    first = next(event["message"]["usage"] for event in step.events if event["type"] == "message_start")
    last = [event["usage"] for event in step.events if event["type"] == "message_delta"][-1]
    written, read = first["cache_creation_input_tokens"], first["cache_read_input_tokens"]
    tokens, output = first["input_tokens"] + written + read, last["output_tokens"]
    names = {"input_tokens": tokens, "output_tokens": output, "total_tokens": tokens + output}
    return names | {"cache_creation_tokens": written, "cache_read_tokens": read}


def openai_usage(step):
    usage = [event["response"]["usage"] for event in step.events if event["type"] == "response.completed"][-1]
    names = {name: usage[name] for name in ("input_tokens", "output_tokens", "total_tokens")}
    names["thinking_tokens"] = usage["output_tokens_details"]["reasoning_tokens"]
    return names | {"cache_read_tokens": usage["input_tokens_details"]["cached_tokens"]}


# ---------------------------------------------------------------- the request to the provider


@difference
def schemas_are_those_of_objects(case, client, expected):
    """Providers refuse a schema without a type."""
    for request in expected.http:
        for tool in request["body"].get("tools", []):
            schema = tool["input_schema" if "input_schema" in tool else "parameters"]
            schema.setdefault("type", "object")
            schema.setdefault("properties", {})


@provider("anthropic")
def only_failed_results_say_so(case, client, expected):
    """`false` is the default."""
    for result in blocks_sent(expected, "tool_result"):
        if not result["is_error"]:
            del result["is_error"]


@provider("anthropic")
def thoughts_go_back_before_their_calls(case, client, expected):
    """With their signatures, if the client has them; without, Anthropic refuses calls while it is asked to think."""
    for number in range(1, len(expected.http)):
        answers = [message for message in case.requests[number]["messages"] if message["role"] == "assistant"]
        sent = [message for message in expected.http[number]["body"]["messages"] if message["role"] == "assistant"]
        if client != WORKER:
            del expected.http[number]["body"]["thinking"]
            continue
        for earlier, (said, message) in enumerate(zip(answers, sent, strict=True)):
            known = [call["id"] for call in said.get("tool_calls", [])]
            blocks = blocks_of(last_step(case, earlier))
            message["content"] = [each for each in blocks if each["type"] != "tool_use" or each["id"] in known]


@provider("anthropic")
def the_cache_of_prompts_is_used(case, client, expected):
    """Marks on the system message, which covers the tools, and on the last two of the user."""
    for request in expected.http:
        body = request["body"]
        body["system"] = [{"type": "text", "text": body["system"], **CACHED}]
        for said in [message for message in body["messages"] if message["role"] == "user"][-2:]:
            if isinstance(said["content"], str):
                said["content"] = [{"type": "text", "text": said["content"]}]
            said["content"][-1] |= CACHED


@provider("openai")
def nothing_is_stored_at_the_provider(case, client, expected):
    """The thoughts return encrypted instead."""
    for request in expected.http:
        request["body"] |= {"store": False, "include": ["reasoning.encrypted_content"]}


@provider("openai")
def each_request_has_a_limit_and_a_cache_key(case, client, expected):
    """The limit of the model's family, and the id of the execution or the session."""
    for sent, request in zip(expected.http, requests_of(case, expected)):
        key = request.get("execution_id") or request["session_id"]
        sent["body"] |= {"max_output_tokens": 128_000, "prompt_cache_key": key}


@provider("openai")
def optional_arguments_stay_optional(case, client, expected):
    """Without the word, OpenAI makes all arguments required where it can."""
    for request in expected.http:
        for tool in request["body"].get("tools", []):
            tool["strict"] = False


def requests_of(case, expected):
    """The request of the client for each request to the provider: one is repeated, or each is sent once."""
    return case.requests if len(case.requests) == len(expected.http) else case.requests[:1] * len(expected.http)


def blocks_sent(expected, kind):
    contents = [message["content"] for each in expected.http for message in each["body"]["messages"]]
    return [block for content in contents if isinstance(content, list) for block in content if block["type"] == kind]
