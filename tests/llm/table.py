"""Holds the table of differences against the project's own cases.

No recording is needed for that: what the existing service does with a case follows from its contract.
"""

import contract
import differences
from cases import Expected
from comparison import ADDED, unexpected
from differences import WORKER
from failures import attempts_of


def check(selected):
    """The table has to explain the project's own cases as well, and every difference has to be needed for one."""
    unused, places = set(differences.TABLE), []
    for case in selected:
        if case.is_beyond_contract:
            continue
        recording = recording_of(case)
        explained, names = differences.rewritten(case, WORKER, recording)
        unused -= set(names)
        whole = [[each for each in answer if not set(each) & ADDED] for answer in case.expected.calls]
        found = unexpected([explained.calls, explained.http], [whole, case.expected.http], "the table")
        places += [f"{case.name}: {place}" for place in found]
    return places + [f"the difference {name} changes no case" for name in sorted(unused)]


def recording_of(case):
    """What would be recorded from the existing service for a case of this project.

    The differences replace a call that ends with a failure, so that its end does not matter here.
    """
    calls, http = [], []
    for request, tried in zip(case.requests, attempts_of(case)):
        results = [contract.parsed(each["content"], {}) for each in request["messages"] if each["role"] == "tool"]
        if not tried:
            calls.append(refusal_of(request["llm_config"]))
            continue
        if any(result is not None and not isinstance(result, dict) for result in results):
            error = {"code": "invalid_request", "message": "1 validation error for FunctionResponse"}
            calls.append([{"error": error, "is_final": True}])
            continue
        calls.append(contract.stream_of(tried[-1]))
        http.append(contract.request_of(request))
    return Expected(calls, http)


def refusal_of(config):
    """The answer to a request that goes to no provider: here, none has another fault."""
    if config["backend"] != "google-native":
        text = f"No provider registered for backend '{config['backend']}'. Available backends: google-native, langchain"
        return [{"error": {"message": text, "code": "invalid_backend"}, "is_final": True}]
    text = f"Environment variable '{config['api_key_env']}' is not set"
    return [{"error": {"message": text, "code": "credentials"}, "is_final": True}]
