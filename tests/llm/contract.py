"""What the existing service does with a Gemini answer and with a conversation, from its recordings.

The table of differences (differences.py) starts from here where the recording of a case ends with a failure that this
service avoids. `check` compares both functions with the recordings, so they are not a second opinion of their own.
"""

import copy
import json


def stream_of(step):
    """The responses to one whole answer of Gemini."""
    content = [response for part in step.parts for response in responses_of(part)]
    numbers = (f"$CALL_{number}" for number in range(1, len(content) + 1))
    for response in content:
        if "tool_call" in response:
            response["tool_call"]["call_id"] = next(numbers)
    grounding, usage = grounding_of(step), usage_of(step)
    return [*content, *grounding, *usage, {"is_final": True}]


def responses_of(part):
    if "functionCall" in part:
        call = part["functionCall"]
        name, arguments = call["name"].replace("__", "."), json.dumps(call.get("args") or {})
        return [{"tool_call": {"call_id": "", "name": name, "arguments": arguments}}]
    if "executableCode" in part:
        return [{"code_execution": {"code": part["executableCode"]["code"]}}]
    if "codeExecutionResult" in part:
        output = part["codeExecutionResult"].get("output")
        return [{"code_execution": {"result": output} if output else {}}]
    if part.get("text"):
        return [{"thinking" if part.get("thought") else "text": {"content": part["text"]}}]
    return []


def grounding_of(step):
    """At most one message, with the sources of the web and the pages that were read."""
    found = {}
    for candidate in step.candidates:
        if metadata := candidate.get("groundingMetadata"):
            found = {
                "web_search_queries": metadata.get("webSearchQueries", []),
                "grounding_chunks": [
                    {key: each["web"][key] for key in ("uri", "title") if each["web"].get(key)}
                    for each in metadata.get("groundingChunks", []) if "web" in each
                ],
                "grounding_supports": [support_of(each) for each in metadata.get("groundingSupports", [])],
                "search_entry_point_html": metadata.get("searchEntryPoint", {}).get("renderedContent", ""),
            }
    for candidate in step.candidates:
        for page in candidate.get("urlContextMetadata", {}).get("urlMetadata", []):
            url, chunks = page["retrievedUrl"], found.setdefault("grounding_chunks", [])
            if page.get("urlRetrievalStatus", "").endswith("_SUCCESS") and url not in [each["uri"] for each in chunks]:
                chunks.append({"uri": url, "title": url})
    found = {key: value for key, value in found.items() if value}
    return [{"grounding": found}] if found else []


def support_of(support):
    segment = support.get("segment", {})
    found = {
        "start_index": segment.get("startIndex", 0),
        "end_index": segment.get("endIndex", 0),
        "text": segment.get("text", ""),
        "grounding_chunk_indices": support.get("groundingChunkIndices", []),
    }
    return {key: value for key, value in found.items() if value}


def usage_of(step):
    """The last one counts."""
    metadata = [event["usageMetadata"] for event in step.events if "usageMetadata" in event]
    if not metadata:
        return []
    names = {
        "input_tokens": "promptTokenCount",
        "output_tokens": "candidatesTokenCount",
        "total_tokens": "totalTokenCount",
        "thinking_tokens": "thoughtsTokenCount",
    }
    return [{"usage": {name: metadata[-1][field] for name, field in names.items() if metadata[-1].get(field)}}]


def request_of(request):
    """The request to Gemini for a conversation that the service has not seen before."""
    config = request["llm_config"]
    body = {"contents": [], "generationConfig": {"thinkingConfig": thinking_of(config["model"])}}
    for message in request["messages"]:
        if message["role"] == "system":
            body["systemInstruction"] = {"parts": [{"text": message["content"]}], "role": "user"}
        else:
            body["contents"].append(content_of(message))
    if tools := tools_of(request):
        body["tools"] = tools
    if len(tools) > 1 and "functionDeclarations" in tools[-1]:
        body["toolConfig"] = {"includeServerSideToolInvocations": True}
    return {
        "method": "POST",
        "path": f"/v1beta/models/{config['model']}:streamGenerateContent",
        "query": "alt=sse",
        "body": body,
    }


def thinking_of(model):
    budgets = {"gemini-2.5-pro": 32768, "gemini-2.5-flash": 24576}
    budget = next((budget for name, budget in budgets.items() if model.startswith(name)), None)
    return {"include_thoughts": True} | ({"thinking_budget": budget} if budget else {"thinking_level": "HIGH"})


def content_of(message):
    if message["role"] == "tool":
        response = {"name": provider_name(message["tool_name"])} | result_of(message["content"])
        return {"parts": [{"functionResponse": response}], "role": "user"}
    parts = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls", []):
        parts.append({"functionCall": {"args": parsed(call["arguments"], {}), "name": provider_name(call["name"])}})
    return {"parts": parts, "role": "model" if message["role"] == "assistant" else "user"}


def result_of(text):
    """Text that is no JSON is wrapped; `null` is no response at all."""
    if not text:
        return {"response": {}}
    value = parsed(text, {"text": text})
    return {} if value is None else {"response": value}


def parsed(text, otherwise):
    try:
        return json.loads(text)
    except ValueError:
        return copy.deepcopy(otherwise)


def provider_name(name):
    return name.replace(".", "__")


def tools_of(request):
    native = request["llm_config"].get("native_tools", {})
    names = {"google_search": "googleSearch", "code_execution": "codeExecution", "url_context": "urlContext"}
    tools = [{field: {}} for name, field in names.items() if native.get(name)]
    declarations = []
    for tool in request.get("tools", []):
        declaration = {"description": tool["description"], "name": provider_name(tool["name"])}
        if tool.get("parameters_schema"):
            declaration["parameters_json_schema"] = json.loads(tool["parameters_schema"])
        declarations.append(declaration)
    return tools + ([{"functionDeclarations": declarations}] if declarations else [])


def check(cases):
    """The differences between both functions and the recordings of whole answers, as text."""
    found = []
    for case in cases.values():
        if case.backend != "google-native" or not case.is_recorded:
            continue
        for number, (request, expected, sent) in enumerate(zip(case.requests, case.expected.calls, case.expected.http)):
            if "error" in expected[-1]:
                continue
            step = case.steps[min(number, len(case.steps) - 1)]
            if stream_of(step) != expected:
                found.append(f"{case.name}: stream {number}: {stream_of(step)} is not {expected}")
            # A later request replays what the service keeps of earlier answers.
            if number == 0 and request_of(request) != sent:
                found.append(f"{case.name}: request {number}: {request_of(request)} is not {sent}")
    return found
