"""Sends every case to the service and compares its responses, and what the provider got, with what is expected.

differential.py <address of the service> <address of the provider> <folder of cases> [<names of cases> …]

A case is sent twice: as the existing client sends it, and as a worker of this project does, which accepts added
messages and returns the provider's data with the conversation. One line a run says which differences were intended;
whatever else differs is listed at the end, and the exit code is then 1. With the project's own cases, the table of
differences is checked as well (table.py).
"""

import concurrent.futures
import copy
import sys

import cases
import contract
import differences
import others
import table
from answers import added, ids_of
from comparison import ADDED, unexpected
from differences import EXISTING, WORKER
from service import ACCEPTED, Provider, Service, call_ids, without_short_ids

CASES_AT_ONCE = 24
# Of a caller that does not wait for the provider. The service reserves a part of it for its last message. On a busy
# machine that can be too little for this client, which then asks again and waits longer.
DEADLINES_S = (5, 10, 20, 40)


class Run:
    """A case, sent by one kind of client."""

    def __init__(self, case, client):
        self.case, self.client = case, client
        self.answers = []  # as they arrived
        self.http = []

    def send(self, service, provider):
        if not self.case.timeout_s:
            self.send_within(service, provider)
            return
        for deadline in DEADLINES_S:
            self.send_within(service, provider, timeout=deadline)
            if not any(each.get("status") == "DEADLINE_EXCEEDED" for answer in self.answers for each in answer):
                break

    def send_within(self, service, provider, **timeout):
        key = self.case.requests[0]["llm_config"]["api_key_env"].removeprefix("CASE_KEY_")
        provider.reset(key)
        self.answers = []
        for request in replaced(self.case.requests, "$PROVIDER/v1", f"{provider.url}/v1"):
            self.answers.append(service.generate(self.continued(request), **timeout))
        self.http = provider.requests(key)

    def continued(self, request):
        """The request with what earlier answers gave."""
        request = copy.deepcopy(request)
        if self.client == EXISTING:
            ids = [each for answer in self.answers for each in call_ids(answer)]
            return replaced(request, "$CALL", ids[-1] if ids else "$CALL")
        request["accept"] = ACCEPTED
        said = [message for message in request["messages"] if message["role"] == "assistant"]
        for message, answer in zip(said, self.answers):
            continue_message(request, message, answer)
        return request

    def responses(self):
        """Without what is random, and without the added messages that no recording has."""
        answers = copy.deepcopy(self.answers)
        if self.client == WORKER and self.case.is_recorded:
            answers = [[each for each in answer if not set(each) & ADDED] for answer in answers]
        return [normalised(answer, own) for answer, own in zip(answers, self.own_ids())]

    def own_ids(self):
        """The ids that the provider gave to the calls of each answer."""
        return [ids_of(self.case, number) for number in range(len(self.answers))]


def continue_message(request, message, answer):
    """What a worker stored with the answer: the calls with their ids, and the provider's data."""
    calls = [response["tool_call"] for response in answer if "tool_call" in response]
    new_ids = {}
    for recorded, call in zip(message.get("tool_calls", []), calls):
        new_ids[recorded["id"]] = call["call_id"]
        recorded |= {"id": call["call_id"], "arguments": call["arguments"]}
    for result in request["messages"]:
        if result.get("tool_call_id") in new_ids:
            result["tool_call_id"] = new_ids[result["tool_call_id"]]
    for response in answer:
        if "provider_data" in response:
            message["provider_data"] = response["provider_data"]


def replaced(value, old, new):
    if isinstance(value, dict):
        return {key: replaced(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, old, new) for each in value]
    return new if value == old else value


def normalised(answer, own_ids):
    """With what is random replaced, and without the opaque part of added messages."""
    number = 0
    for response in answer:
        if "tool_call" in response:
            number += 1
            if response["tool_call"].get("call_id") not in own_ids:
                response["tool_call"]["call_id"] = f"$CALL_{number}"
        if "error" in response:
            response["error"]["message"] = without_short_ids(response["error"].get("message", ""))
        if "retry" in response:
            response["retry"] = {key: response["retry"].get(key) for key in ("attempt", "code")}
        if "provider_data" in response:
            response["provider_data"].pop("payload")
    return answer


def compare(run):
    """The names of the intended differences, and the places that differ beside them."""
    case, names = run.case, []
    expected = case.expected
    if case.is_recorded or run.client == EXISTING:
        recording = case.expected if case.is_recorded else table.recording_of(case)
        expected, names = differences.rewritten(case, run.client, recording)
    sent = [{key: each[key] for key in ("method", "path", "query", "body")} for each in run.http]
    places = unexpected(expected.calls, run.responses(), "responses")
    places += unexpected(expected.http, sent, "http")
    if case.is_recorded and run.client == WORKER:
        places += unexpected(added(case, expected), added_messages(run), "added")
    return names, places


def added_messages(run):
    """The codes of retries, the reason of the end, and the format of the provider's data, for each answer."""
    fields = {"retry": "code", "finish": "reason", "provider_data": "format"}
    return [
        {name: [each[name].get(field) for each in answer if name in each] for name, field in fields.items()}
        for answer in run.answers
    ]


def main(service, provider, folder, names):
    service, provider = Service(service), Provider(provider)
    found = cases.load(folder)
    selected = [case for name, case in found.items() if name in names or not names]
    faults = contract.check(found)

    def send(case):
        runs = [Run(case, client) for client in ([WORKER] if case.is_beyond_contract else [EXISTING, WORKER])]
        for run in runs:
            run.send(service, provider)
        return runs

    used = set()
    with concurrent.futures.ThreadPoolExecutor(CASES_AT_ONCE) as pool:
        for runs in pool.map(send, selected):
            for run in runs:
                names_of_run, places = compare(run)
                used |= set(names_of_run)
                outcome = "FAILED" if places else "ok"
                print(f"{outcome}  {run.case.name} ({run.client}): {', '.join(names_of_run) or 'as it is'}")
                faults += [f"{run.case.name} ({run.client}): {place}" for place in places]
    if not names and not any(case.is_recorded for case in selected):
        faults += table.check(selected)
    elif not names:
        faults += [f"the difference {name} changes no case" for name in others.TABLE if name not in used]
    for fault in faults:
        print(f"  {fault}")
    print(f"{len(selected)} cases, {len(faults)} unexpected differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], sys.argv[4:]))
