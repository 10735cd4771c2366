"""Cases: the requests to the service, what the provider answers, and what both sides have to see.

A case is `<name>.case.json` in a folder of its kind. `requests` are in the JSON of the protocol, `http` lists the
answers of the provider (fake.py); `path` is the path of its requests, if that is not Gemini's, and `$PROVIDER/v1` in
a request is its address. The expected side is in the same file, as `expected`: then it is what this service
sends. Or it is `<name>.expected.json`, recorded from the existing service: then differences.py changes it first. A case
of which only an SDK is a witness has none.
"""

import base64
import copy
import dataclasses
import json
import pathlib

REQUEST_DEFAULTS = {"session_id": "session-1", "execution_id": "execution-1"}
CONFIG_DEFAULTS = {"provider": "google", "model": "gemini-3-flash-preview", "backend": "google-native"}


class Message:
    """A text that begins with `start` and contains `part`."""

    def __init__(self, start, part=""):
        self.start, self.part = start, part

    def matches(self, text):
        if isinstance(text, Message):
            return text.start.startswith(self.start) or self.start.startswith(text.start)
        return isinstance(text, str) and text.startswith(self.start) and self.part in text

    def __eq__(self, other):
        return isinstance(other, Message) and vars(self) == vars(other)

    def __repr__(self):
        return f"{self.start!r}…" + (f" with {self.part!r}" if self.part else "")


@dataclasses.dataclass
class Expected:
    """The responses of each call, and the requests that the provider gets."""

    calls: list
    http: list


@dataclasses.dataclass
class Step:
    """One answer of the provider."""

    status: int
    error: dict | None  # the object `error`, wherever in the answer it is
    events: list
    malformed: bool
    raw: dict  # as in the file

    @property
    def candidates(self):
        return [candidate for event in self.events for candidate in event.get("candidates", [])]

    @property
    def parts(self):
        return [part for each in self.candidates for part in each.get("content", {}).get("parts", [])]

    @property
    def finish_reason(self):
        reasons = [each["finishReason"] for each in self.candidates if "finishReason" in each]
        return reasons[-1] if reasons else None

    @property
    def block_reason(self):
        return next((e["promptFeedback"].get("blockReason") for e in self.events if "promptFeedback" in e), None)


@dataclasses.dataclass
class Case:
    name: str
    note: str
    requests: list
    steps: list
    expected: Expected
    is_recorded: bool
    is_beyond_contract: bool  # contract.py says nothing of it
    timeout_s: float | None  # of the caller

    @property
    def backend(self):
        return self.requests[0]["llm_config"]["backend"]

    @property
    def provider(self):
        return self.requests[0]["llm_config"]["provider"]

    @property
    def model(self):
        return self.requests[0]["llm_config"]["model"]


def load(folder):
    """The cases of a folder by name."""
    folder = pathlib.Path(folder)
    files = sorted(folder.glob("*.case.json"))
    return {case.name: case for case in (read_case(file) for file in files)}


def read_case(file):
    name = file.name.removesuffix(".case.json")
    text = json.loads(file.read_text("utf-8"))
    recording = file.with_name(f"{name}.expected.json")
    is_recorded = recording.exists()
    nothing = {"calls": [], "http_requests": []}
    expected = json.loads(recording.read_text("utf-8")) if is_recorded else text.get("expected", nothing)
    requests = text["requests"] if is_recorded else [with_defaults(request, name) for request in text["requests"]]
    calls = [call["responses"] if isinstance(call, dict) else with_patterns(call) for call in expected["calls"]]
    http = expected["http_requests"]
    return Case(
        name=name,
        note=text.get("note", ""),
        requests=requests,
        steps=[read_step(step, file.parent) for step in text["http"]],
        expected=Expected(calls, http if is_recorded else [http_defaults(each, text, requests) for each in http]),
        is_recorded=is_recorded,
        is_beyond_contract=text.get("is_beyond_contract", False),
        timeout_s=text.get("timeout_s"),
    )


def with_patterns(answer):
    """A message may be given by its beginning: the rest comes from the system."""
    for response in answer:
        message = response.get("error", {}).get("message")
        if isinstance(message, dict):
            response["error"]["message"] = Message(message["starts_with"])
    return answer


def with_defaults(request, name):
    """The data of a provider is readable in the project's own cases."""
    for message in request["messages"]:
        if isinstance(message.get("provider_data", {}).get("payload"), list):
            payload = json.dumps(message["provider_data"]["payload"], ensure_ascii=False).encode()
            message["provider_data"]["payload"] = base64.b64encode(payload).decode()
    config = CONFIG_DEFAULTS | {"api_key_env": f"CASE_KEY_{name}"} | request.get("llm_config", {})
    return REQUEST_DEFAULTS | request | {"llm_config": config}


def http_defaults(body, case, requests):
    """In the project's own cases a request is its body: for Gemini the rest follows from the model."""
    if "path" in case:
        return {"method": "POST", "path": case["path"], "query": "", "body": body}
    model = requests[0]["llm_config"]["model"]
    return {"method": "POST", "path": f"/v1beta/models/{model}:streamGenerateContent", "query": "alt=sse", "body": body}


def read_step(step, folder):
    raw = step["raw"] if "raw" in step else (folder / step["body"]).read_text("utf-8") if "body" in step else None
    events, malformed = (step.get("events", []), False) if raw is None else parse(raw)
    bodies = [*events, *listed(step.get("json", {}))]
    error = next((body["error"] for body in bodies if "error" in body), None)
    events = [event for event in events if "error" not in event]
    if (cut := step.get("drop_after", step.get("stall_after"))) is not None:
        events = events[:cut]
    return Step(step.get("status", 200), error, events, malformed, step)


def parse(raw):
    """The objects of a stream, also of one without frames; whether some text was no JSON."""
    events, malformed = [], False
    for block in raw.replace("\r\n", "\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith((":", "event:"))]
        text = "\n".join(line.removeprefix("data:").strip() for line in lines)
        if text and text != "[DONE]":
            try:
                events += listed(json.loads(text))
            except ValueError:
                malformed = True
    return events, malformed


def listed(value):
    """Google's front sometimes puts an error into a list."""
    return value if isinstance(value, list) else [value]


def copied(expected):
    return copy.deepcopy(expected)
