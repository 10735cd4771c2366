"""Lets an official SDK, unmodified, have the same conversations as the service, as a second witness.

What both send has to be the same request, up to the differences in a table, and both have to find the same parts,
tokens and reason in each answer.
"""

import copy
import json

import cases
from comparison import unexpected
from differences import WORKER
from differential import Run
from service import Provider, Service


class Witness:
    """The conversations of an SDK. A class below it knows the SDK."""

    CASES = []
    HEADERS = ["content-type"]
    # Differences by name: each takes the request of the SDK and writes it as the service does.
    TABLE = {}

    def __init__(self, case, provider):
        """Begins the conversation of a case."""
        raise NotImplementedError

    def send(self, request):
        """Sends the last messages of a request: a question, or the results of calls. Returns what it finds."""
        raise NotImplementedError


def added_to(table):
    """A decorator that adds a difference."""
    def add(function):
        table[function.__name__] = function
        return function
    return add


def results_of(request):
    """The results of the calls of the last answer."""
    return [message for message in request["messages"] if message["role"] == "tool"]


def system_of(request):
    return next(message["content"] for message in request["messages"] if message["role"] == "system")


def found_by_service(answer):
    """The parts, the tokens and the reason of an answer."""
    parts, reason, tokens = [], None, []
    for response in answer:
        if "tool_call" in response:
            call = response["tool_call"]
            name = "an id" if is_made_up(call["call_id"]) else call["call_id"]
            parts.append(["call", call["name"], json.loads(call["arguments"]), name])
        elif "code_execution" in response:
            code = response["code_execution"]
            is_code = "code" in code
            word = code.get("language") if is_code else code.get("outcome")
            text = code.get("code" if is_code else "result", "")
            parts.append(["code" if is_code else "result", text, word])
        elif "text" in response or "thinking" in response:
            parts += [[kind, each["content"]] for kind, each in response.items()]
        elif "finish" in response:
            reason = response["finish"]["provider_reason"]
        elif "usage" in response:
            tokens = [response["usage"].get(f"{kind}_tokens", 0) for kind in ("input", "output", "thinking")]
    return {"parts": joined(parts), "reason": reason, "tokens": tokens}


def is_made_up(call_id):
    """Whether the id is one of this service: `call_` and 32 hexadecimal digits."""
    return call_id.startswith("call_") and len(call_id) == 37


def joined(parts):
    """Some SDKs give the text of an answer in one piece."""
    found = []
    for part in parts:
        if found and part[0] == found[-1][0] and part[0] in ("text", "thinking"):
            found[-1] = [part[0], found[-1][1] + part[1]]
        else:
            found.append(part)
    return found


def witnessed(witness, case, provider):
    """The requests of the SDK, and what it finds in the answers."""
    provider.reset(case.name)
    conversation = witness(case, provider)
    found = [conversation.send(request) for request in case.requests]
    return provider.requests(case.name), found


def sent(request, witness):
    found = {name: request[name] for name in ("method", "path", "query")}
    headers = {name: request["headers"].get(name) for name in witness.HEADERS}
    return found | {"body": copy.deepcopy(request["body"]), "headers": headers}


def rewritten(request, witness, used):
    request = sent(request, witness)
    for name, change in witness.TABLE.items():
        before = json.dumps(request)
        change(request)
        if json.dumps(request) != before:
            used.add(name)
    return request


def main(witness, service, provider, folder):
    service, provider, found = Service(service), Provider(provider), cases.load(folder)
    faults, used = [], set()
    for name in witness.CASES:
        requests, parts = witnessed(witness, found[name], provider)
        expected = [rewritten(each, witness, used) for each in requests]
        run = Run(found[name], WORKER)
        run.send(service, provider)
        places = unexpected(expected, [sent(each, witness) for each in run.http], "request")
        places += unexpected(parts, [found_by_service(answer) for answer in run.answers], "answer")
        print(f"{'FAILED' if places else 'ok'}  {name}: {len(expected)} requests")
        faults += [f"{name}: {place}" for place in places]
    faults += [f"the difference {name} changes no request" for name in witness.TABLE if name not in used]
    for fault in faults:
        print(f"  {fault}")
    return 1 if faults else 0
