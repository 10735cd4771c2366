"""The official SDK of Anthropic, unmodified, as a second witness: it has the same conversations as the service.

witness_anthropic.py <address of the service> <address of the provider> <folder of cases>

See witness.py for what is compared. TABLE lists the differences between the requests.
"""

import json
import sys

import anthropic

import contract
import witness
from witness import added_to, results_of, system_of

TABLE = {}


@added_to(TABLE)
def the_key_is_in_its_older_header(request):
    """`x-api-key`: the SDK says `authorization` now; the provider takes both."""
    bearer = request["headers"]["authorization"]
    request["headers"] |= {"authorization": None, "x-api-key": bearer.removeprefix("Bearer ")}


@added_to(TABLE)
def the_version_is_the_older_one(request):
    """`2023-06-01`: everything that the service sends is part of it."""
    request["headers"]["anthropic-version"] = "2023-06-01"


@added_to(TABLE)
def the_cache_of_prompts_is_used(request):
    """Marks on the system message, which covers the tools, and on the last two of the user; the SDK sets none itself."""
    mark, body = {"cache_control": {"type": "ephemeral"}}, request["body"]
    body["system"] = [{"type": "text", "text": body["system"], **mark}]
    for said in [message for message in body["messages"] if message["role"] == "user"][-2:]:
        if isinstance(said["content"], str):
            said["content"] = [{"type": "text", "text": said["content"]}]
        said["content"][-1] |= mark


class Anthropic(witness.Witness):
    """Messages of the SDK. Its answers go back as the SDK gives them."""

    CASES, TABLE = ["anthropic"], TABLE
    HEADERS = ["x-api-key", "authorization", "anthropic-version", "content-type"]

    def __init__(self, case, provider):
        self.client = anthropic.Anthropic(api_key=case.name, base_url=provider.url, max_retries=0)
        self.messages, self.calls = [], []

    def send(self, request):
        said = request["messages"][-1]["content"]
        if results := results_of(request):
            said = [result_of(*each) for each in zip(results, self.calls, strict=True)]
        self.messages.append({"role": "user", "content": said})
        with self.client.messages.stream(
            model=request["llm_config"]["model"],
            max_tokens=request["max_output_tokens"],
            system=system_of(request),
            messages=self.messages,
            thinking={"type": "enabled", "budget_tokens": request["thinking"]["budget"]},
            tools=[tool_of(tool) for tool in request["tools"]],
        ) as stream:
            answer = stream.get_final_message()
        self.messages.append({"role": "assistant", "content": answer.content})
        self.calls = [block for block in answer.content if block.type == "tool_use"]
        return found_in(answer)


def result_of(message, call):
    return {"type": "tool_result", "tool_use_id": call.id, "content": message["content"]}


def tool_of(tool):
    name, schema = contract.provider_name(tool["name"]), json.loads(tool["parameters_schema"])
    return {"name": name, "description": tool["description"], "input_schema": schema}


def found_in(answer):
    """The parts, the tokens and the reason of an answer. Tokens of the cache are part of the input."""
    parts, usage = [], answer.usage
    for block in answer.content:
        if block.type == "thinking":
            parts.append(["thinking", block.thinking])
        elif block.type == "text":
            parts.append(["text", block.text])
        elif block.type == "tool_use":
            parts.append(["call", block.name.replace("__", "."), block.input, block.id])
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    tokens = [usage.input_tokens + cached, usage.output_tokens, 0]
    return {"parts": witness.joined(parts), "reason": answer.stop_reason, "tokens": tokens}


if __name__ == "__main__":
    sys.exit(witness.main(Anthropic, *sys.argv[1:]))
