"""The backend for OpenAI-compatible servers against one that others wrote: the proxy of LiteLLM.

openai_compatible.py <address of the service> <address of the fake Gemini> <address of LiteLLM>

LiteLLM answers one model itself. For the others it translates the interface of OpenAI for a Gemini, which is the fake
one: so calls, usage and failures arrive as LiteLLM writes them.
"""

import sys

from service import Provider, Service

TOOLS = [
    {"name": "logs.search", "description": "Searches logs.", "parameters_schema": '{"type":"object","properties":{"service":{"type":"string"},"limit":{"type":"integer"}}}'},
    {"name": "clock.now", "description": "Tells the time.", "parameters_schema": '{"type":"object"}'},
]
ACCEPT = ["finish", "provider_data", "codes.v2"]


def request(address, model, key="LITELLM_KEY", **fields):
    return {
        "messages": [
            {"role": "system", "content": "You investigate alerts."},
            {"role": "user", "content": "Why is checkout slow?"},
        ],
        "llm_config": {
            "backend": "genai", "provider": "litellm", "model": model, "api_key_env": key,
            "base_url": f"http://{address}/v1",
        },
        "accept": ACCEPT,
        **fields,
    }


def joined(responses, kind):
    return "".join(each[kind]["content"] for each in responses if kind in each)


def only(responses, kind):
    found = [each[kind] for each in responses if kind in each]
    assert len(found) == 1, (kind, responses)
    return found[0]


def ends_once(responses):
    assert [each.get("is_final", False) for each in responses].count(True) == 1, responses
    assert responses[-1].get("is_final"), responses


def text(service, address):
    """Text in pieces, with its usage and its end."""
    responses = service.generate(request(address, "recorded"))
    ends_once(responses)
    assert joined(responses, "text") == "The limit of the container is too low.", responses
    assert sum("text" in each for each in responses) > 1, responses
    assert only(responses, "finish")["reason"] == "stop", responses
    assert only(responses, "usage")["output_tokens"] > 0, responses


def calls(service, address, gemini):
    """Calls with their ids and arguments; then an answer after their results."""
    first = request(address, "calls", tools=TOOLS)
    responses = service.generate(first)
    ends_once(responses)
    found = [each["tool_call"] for each in responses if "tool_call" in each]
    assert [each["name"] for each in found] == ["logs.search", "clock.now"], responses
    assert found[0]["arguments"] == '{"service":"checkout","limit":5}', responses
    assert found[1].get("arguments", "{}") == "{}", responses
    ids = [each["call_id"] for each in found]
    assert len(set(ids)) == 2 and all(ids), responses
    assert joined(responses, "text") == "I look.", responses
    assert joined(responses, "thinking") == "Look at both.", responses
    assert only(responses, "finish")["reason"] == "tool_calls", responses
    usage = only(responses, "usage")
    assert (usage["input_tokens"], usage["total_tokens"]) == (80, 130), usage
    answer = {"role": "assistant", "content": "I look.", "tool_calls": [
        {"id": each["call_id"], "name": each["name"], "arguments": each["arguments"]} for each in found
    ]}
    data = [each["provider_data"] for each in responses if "provider_data" in each]
    if data:
        answer["provider_data"] = data[0]
    results = [
        {"role": "tool", "tool_call_id": each["call_id"], "tool_name": each["name"], "content": f"result {number}"}
        for number, each in enumerate(found)
    ]
    second = {**first, "messages": [*first["messages"], answer, *results]}
    responses = service.generate(second)
    ends_once(responses)
    assert joined(responses, "text") == "Cause: the index is missing — née.", responses
    assert only(responses, "finish")["reason"] == "stop", responses
    # What LiteLLM understood of the second request: the calls with their arguments, and a result for each.
    contents = gemini.requests("calls")[-1]["body"]["contents"]
    parts = [part for content in contents for part in content["parts"]]
    sent = [part["function_call"]["name"] for part in parts if "function_call" in part]
    returned = [part["function_response"]["name"] for part in parts if "function_response" in part]
    assert sent == ["logs__search", "clock__now"] and returned == sent, contents
    assert "result 0" in str(contents) and "result 1" in str(contents), contents


def failures(service, address):
    """A wrong key, an unknown model, a quota and a broken answer: each has its code, and no text has the key."""
    for model, key, codes in [
        ("recorded", "WRONG_KEY", ["credentials", "invalid_request"]),
        ("unknown", "LITELLM_KEY", ["model_not_found", "invalid_request"]),
        ("limited", "LITELLM_KEY", ["rate_limited"]),
        ("cut", "LITELLM_KEY", ["partial_stream_error", "unavailable"]),
    ]:
        responses = service.generate(request(address, model, key), timeout=20)
        ends_once(responses)
        error = responses[-1]["error"]
        print(f"{model} {key}: {error['code']}: {error['message'][:160]}")
        assert error["code"] in codes, responses
        assert "sk-" not in str(responses), responses


def main(service, gemini, address):
    service, gemini = Service(service), Provider(gemini)
    gemini.reset("calls")
    text(service, address)
    calls(service, address, gemini)
    failures(service, address)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
