"""The official SDK of Gemini, unmodified, as a second witness: it has the same conversations as the service.

witness_gemini.py <address of the service> <address of the provider> <folder of cases>

See witness.py for what is compared. TABLE lists the differences between the requests.
"""

import json
import sys

from google import genai
from google.genai import types

import contract
import witness
from witness import added_to, results_of, system_of

CASES = [
    "text",
    "thoughts",
    "parallel_calls",
    "code_execution",
    "search",
    "url_context",
    "tools_combined",
    "signatures",
    "max_tokens",
    "safety_after_text",
    "continuation",
    "odd_events",
]
NATIVE_TOOLS = {
    "google_search": types.Tool(google_search=types.GoogleSearch()),
    "code_execution": types.Tool(code_execution=types.ToolCodeExecution()),
    "url_context": types.Tool(url_context=types.UrlContext()),
}
TABLE = {}


@added_to(TABLE)
def thinking_is_in_camel_case(request):
    """`generationConfig.thinkingConfig.*`: the provider takes both spellings."""
    config = request["body"]["generationConfig"]
    config["thinkingConfig"] = {camel_case(name): value for name, value in config["thinkingConfig"].items()}


@added_to(TABLE)
def schemas_are_in_camel_case(request):
    """`tools[].functionDeclarations[].parametersJsonSchema`."""
    for tool in request["body"].get("tools", []):
        for declaration in tool.get("functionDeclarations", []):
            for name in [name for name in declaration if "_" in name]:
                declaration[camel_case(name)] = declaration.pop(name)


@added_to(TABLE)
def server_tools_are_in_camel_case(request):
    """`contents[].parts[].toolCall.toolType` and that of `toolResponse`."""
    for part in (part for content in request["body"]["contents"] for part in content["parts"]):
        for name in ("toolCall", "toolResponse"):
            if name in part:
                part[name] = {camel_case(key): value for key, value in part[name].items()}


@added_to(TABLE)
def an_answer_is_one_content(request):
    """`contents[]`: the SDK replays a content for each event of the stream, so that the service has fewer of them."""
    joined = []
    for content in request["body"]["contents"]:
        if joined and content["role"] == joined[-1]["role"] == "model":
            joined[-1]["parts"] += content["parts"]
        else:
            joined.append(content)
    request["body"]["contents"] = joined


def camel_case(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class Gemini(witness.Witness):
    """A chat of the SDK. The SDK keeps the conversation itself."""

    CASES, TABLE = CASES, TABLE
    HEADERS = ["x-goog-api-key", "content-type"]

    def __init__(self, case, provider):
        # Its own default is `v1`, which has fewer fields than the service needs.
        options = types.HttpOptions(base_url=provider.url, api_version="v1beta")
        self.client = genai.Client(api_key=case.name, vertexai=False, http_options=options)
        request = case.requests[0]
        self.chat = self.client.chats.create(
            model=case.model,
            config=types.GenerateContentConfig(
                system_instruction=system_of(request),
                tools=tools_of(request) or None,
                tool_config=tool_config_of(request),
                thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH"),
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        self.calls = []

    def send(self, request):
        said = request["messages"][-1]["content"]
        if results := results_of(request):
            said = [self.result(*each) for each in zip(results, self.calls, strict=True)]
        answer = list(self.chat.send_message_stream(said))
        self.calls = [call for event in answer for call in event.function_calls or []]
        return found_in(answer)

    @staticmethod
    def result(message, call):
        response = contract.result_of(message["content"])["response"]
        if set(response) == {"text"}:
            response = {"output": response["text"]}
        return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))


def tools_of(request):
    native = request["llm_config"].get("native_tools", {})
    declarations = [
        types.FunctionDeclaration(
            name=contract.provider_name(tool["name"]),
            description=tool["description"],
            parameters_json_schema=json.loads(tool["parameters_schema"]) if tool["parameters_schema"] else None,
        )
        for tool in request.get("tools", [])
    ]
    functions = [types.Tool(function_declarations=declarations)] if declarations else []
    return [tool for name, tool in NATIVE_TOOLS.items() if native.get(name)] + functions


def tool_config_of(request):
    is_both = bool(request.get("tools")) and bool(request["llm_config"].get("native_tools"))
    return types.ToolConfig(include_server_side_tool_invocations=True) if is_both else None


def found_in(answer):
    """The parts, the tokens and the reason of an answer."""
    parts, reason, usage = [], None, None
    for event in answer:
        candidate = event.candidates[0] if event.candidates else None
        content = candidate.content if candidate else None
        parts += [found for part in (content and content.parts) or [] for found in found_in_part(part)]
        reason = candidate.finish_reason.value if candidate and candidate.finish_reason else reason
        usage = event.usage_metadata or usage
    tokens = usage and [usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count]
    return {"parts": witness.joined(parts), "reason": reason, "tokens": [count or 0 for count in tokens or []]}


def found_in_part(part):
    if part.function_call:
        call = part.function_call
        return [["call", call.name.replace("__", "."), call.args or {}, call.id or "an id"]]
    if part.executable_code:
        return [["code", part.executable_code.code, part.executable_code.language.value]]
    if part.code_execution_result:
        return [["result", part.code_execution_result.output or "", part.code_execution_result.outcome.value]]
    return [["thinking" if part.thought else "text", part.text]] if part.text else []


if __name__ == "__main__":
    sys.exit(witness.main(Gemini, *sys.argv[1:]))
