"""The official SDK of OpenAI, unmodified, as a second witness: it has the same conversations as the service.

witness_openai.py <address of the service> <address of the provider> <folder of cases>

Both of its interfaces: Responses, and Chat Completions, which other servers speak as well. See witness.py for what is
compared. RESPONSES and CHAT list the differences between the requests.
"""

import json
import sys

import openai

import contract
import witness
from witness import added_to, results_of, system_of

RESPONSES, CHAT = {}, {}


@added_to(RESPONSES)
def messages_have_their_type(request):
    """As those of the existing service; the SDK leaves out the default."""
    for item in request["body"]["input"]:
        if "type" not in item:
            item["type"] = "message"


@added_to(RESPONSES)
def requests_have_a_cache_key(request):
    """The id of the execution: requests with the same key reach the same cache."""
    request["body"]["prompt_cache_key"] = "execution-1"


@added_to(CHAT)
def arguments_are_compact(request):
    """As the client got them; the SDK returns the spaces of the model."""
    for message in request["body"]["messages"]:
        for call in message.get("tool_calls", []):
            function = call["function"]
            function["arguments"] = json.dumps(json.loads(function["arguments"]), separators=(",", ":"))


@added_to(CHAT)
def functions_are_not_strict(request):
    """The default of this interface, which the service sends as a word."""
    for tool in request["body"]["tools"]:
        tool["function"]["strict"] = False


class Responses(witness.Witness):
    """Nothing is stored at the provider: the items of an answer go back, and reasoning is encrypted in them."""

    CASES, TABLE = ["openai_responses"], RESPONSES
    HEADERS = ["authorization", "content-type"]

    def __init__(self, case, provider):
        self.client = client_of(case, provider)
        self.items, self.calls = [], []

    def send(self, request):
        if results := results_of(request):
            for message, call in zip(results, self.calls, strict=True):
                output = {"type": "function_call_output", "call_id": call.call_id, "output": message["content"]}
                self.items.append(output)
        else:
            self.items = [{"role": "system", "content": system_of(request)}, request["messages"][-1]]
        stream = self.client.responses.create(
            model=request["llm_config"]["model"],
            input=self.items,
            max_output_tokens=request["max_output_tokens"],
            reasoning={"effort": request["thinking"]["level"], "summary": "auto"},
            include=["reasoning.encrypted_content"],
            store=False,
            stream=True,
            tools=[{"type": "function", **function_of(tool), "strict": False} for tool in request["tools"]],
        )
        answer = [event.response for event in stream if event.type == "response.completed"][-1]
        self.items += [item.model_dump(exclude_none=True) for item in answer.output]
        self.calls = [item for item in answer.output if item.type == "function_call"]
        return self.found_in(answer)

    @staticmethod
    def found_in(answer):
        parts, usage = [], answer.usage
        for item in answer.output:
            if item.type == "reasoning":
                parts += [["thinking", summary.text] for summary in item.summary]
            elif item.type == "message":
                parts += [["text", content.text] for content in item.content]
            elif item.type == "function_call":
                parts.append(["call", item.name.replace("__", "."), json.loads(item.arguments), item.call_id])
        tokens = [usage.input_tokens, usage.output_tokens, usage.output_tokens_details.reasoning_tokens]
        return {"parts": witness.joined(parts), "reason": answer.status, "tokens": tokens}


class Chat(witness.Witness):
    """The older interface."""

    CASES, TABLE = ["openai_chat"], CHAT
    HEADERS = ["authorization", "content-type"]

    def __init__(self, case, provider):
        self.client = client_of(case, provider)
        self.messages, self.calls = [], []

    def send(self, request):
        if results := results_of(request):
            for message, call in zip(results, self.calls, strict=True):
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": message["content"]})
        else:
            self.messages = [message for message in request["messages"]]
        chunks = list(self.client.chat.completions.create(
            model=request["llm_config"]["model"],
            messages=self.messages,
            max_tokens=request["max_output_tokens"],
            stream=True,
            stream_options={"include_usage": True},
            tools=[{"type": "function", "function": function_of(tool)} for tool in request["tools"]],
        ))
        text, self.calls = "", []
        for delta in (choice.delta for chunk in chunks for choice in chunk.choices):
            text += delta.content or ""
            for piece in delta.tool_calls or []:
                self.add(piece)
        answer = {"role": "assistant", "content": text}
        self.messages.append(answer | ({"tool_calls": self.calls} if self.calls else {}))
        return self.found_in(chunks, text)

    def add(self, piece):
        """Adds a piece of a call."""
        if piece.id:
            function = {"name": piece.function.name, "arguments": ""}
            self.calls.append({"id": piece.id, "type": "function", "function": function})
        self.calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""

    def found_in(self, chunks, text):
        parts = [["text", text]]
        for call in self.calls:
            function = call["function"]
            parts.append(["call", function["name"].replace("__", "."), json.loads(function["arguments"]), call["id"]])
        reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
        usage = [chunk.usage for chunk in chunks if chunk.usage][-1]
        return {"parts": parts, "reason": reasons[-1], "tokens": [usage.prompt_tokens, usage.completion_tokens, 0]}


def client_of(case, provider):
    return openai.OpenAI(api_key=case.name, base_url=f"{provider.url}/v1", max_retries=0)


def function_of(tool):
    name, parameters = contract.provider_name(tool["name"]), json.loads(tool["parameters_schema"])
    return {"name": name, "description": tool["description"], "parameters": parameters}


if __name__ == "__main__":
    sys.exit(max(witness.main(each, *sys.argv[1:]) for each in (Responses, Chat)))
