"""A model and a chat for the test of the tutorial, with Python's own library.

The model speaks the API of OpenAI: it calls `git_status` once, then answers with a cause that cites the event of the result.
The chat takes messages as an incoming webhook of Slack does, and writes each into a file. Arguments: a file for the
addresses of both, and the file for the messages.
"""

import http.server
import json
import re
import sys
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what `answer` makes of a request."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, text = self.answer(body)
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def events(parts, reason):
    """A stream of chat completions."""
    shared = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    choices = [{"index": 0, "delta": part, "finish_reason": None} for part in parts]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    lines = [json.dumps({**shared, "choices": [choice]}) for choice in choices]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    lines.append(json.dumps({**shared, "choices": [], "usage": usage}))
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


def chosen(request):
    """A call of a tool that the request offers, or an answer that cites the last result."""
    results = [message for message in request["messages"] if message["role"] == "tool"]
    tools = [tool["function"] for tool in request.get("tools", [])]
    call = next((tool for tool in tools if tool["name"].endswith("git_status")), None)
    if not results and call:
        arguments = {name: "." for name in call["parameters"].get("required", [])}
        function = {"name": call["name"], "arguments": json.dumps(arguments)}
        return events([{"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}], "tool_calls")
    found = re.findall(r"\[event (\d+)\]", json.dumps(results))
    number = found[-1] if found else "0"
    answer = (
        f"Cause: the last deployment changed the price of checkout [{number}]\n"
        "Sure: likely, the working tree shows the change\nNow: it still fails\n"
        f"Evidence:\n- the repository has a change that is not committed [{number}]\n"
        "Do next: `git revert HEAD`\nNot seen: the logs of checkout"
    )
    return events([{"role": "assistant", "content": answer}], "stop")


def serve(answer):
    handler = type("Answering", (Handler,), {"answer": staticmethod(answer)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever).start()
    return f"http://127.0.0.1:{server.server_port}"


def main():
    addresses, messages = sys.argv[1:]

    def keep(message):
        with open(messages, "a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
        return "text/plain", b"ok"

    model = serve(lambda request: ("text/event-stream", chosen(request)))
    chat = serve(keep)
    with open(addresses, "w", encoding="utf-8") as file:
        file.write(f"MODEL_URL={model}/v1 SLACK_URL={chat}/services/T/B/x\n")


main()
