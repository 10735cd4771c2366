"""A provider of models that answers as the files of a folder say: Gemini, OpenAI and Anthropic over HTTP/1.1.

fake.py <folder> [<folder> …]

The API key of a request selects `<key>.case.json`; `http` of that file lists the answers of the key, in order, and the
last one repeats. An answer has `status`, `headers`, and one of

    json            an object
    text            a string
    events          a list of objects, sent as server-sent events; named after their `type` if they have one
    raw             the bytes of the stream as a string
    body            the name of a file with the bytes of the stream

and these faults: `delay_ms` before the headers, `event_delay_ms` between events, `chunk` bytes a write, `stall_after`
and `drop_after` that many events, `drop_before_headers`. A line `ready <address>` says where it listens.

GET /__log?key=K lists the requests of a key, POST /__reset?key=K forgets them and begins again with the first answer.
"""

import asyncio
import json
import pathlib
import sys
import urllib.parse

KEY_IS_WRONG = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    }
}


class Provider:
    """The answers of every key, and the requests that it sent."""

    def __init__(self, folders):
        self.folders = [pathlib.Path(folder) for folder in folders]
        self.requests = {}

    def answer(self, key):
        """The next answer of a key and its folder; `None` when there is no such key."""
        number = len(self.requests[key]) - 1
        for folder in self.folders:
            file = folder / f"{key}.case.json"
            if "/" not in key and file.exists():
                answers = json.loads(file.read_text("utf-8"))["http"]
                return folder, answers[min(number, len(answers) - 1)]
        return None

    async def serve(self, reader, writer):
        """All requests of one connection."""
        try:
            while (request := await read_request(reader)) is not None:
                await self.respond(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def respond(self, request, writer):
        url = urllib.parse.urlsplit(request["target"])
        query = urllib.parse.parse_qs(url.query)
        if url.path == "/__log":
            return await write_whole(writer, 200, {}, json.dumps(self.requests.get(query["key"][0], [])))
        if url.path == "/__reset":
            self.requests.pop(query["key"][0], None)
            return await write_whole(writer, 200, {}, "{}")
        headers = request["headers"]
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        key = headers.get("x-goog-api-key") or headers.get("x-api-key") or bearer or query.get("key", [""])[0]
        self.requests.setdefault(key, []).append({
            "method": request["method"],
            "path": url.path,
            "query": url.query,
            "headers": headers,
            "text": request["body"].decode("utf-8", "replace"),
        })
        found = self.answer(key)
        if found is None:
            return await write_whole(writer, 400, {}, json.dumps(KEY_IS_WRONG))
        return await send_answer(writer, *found)


async def read_request(reader):
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := (await reader.readline()).decode("latin-1").strip()) != "":
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    while headers.get("transfer-encoding", "") == "chunked":
        size = int(await reader.readline(), 16)
        body += await reader.readexactly(size)
        await reader.readline()
        if size == 0:
            break
    return {"method": method, "target": target, "headers": headers, "body": body}


async def send_answer(writer, folder, answer):
    await asyncio.sleep(answer.get("delay_ms", 0) / 1000)
    if answer.get("drop_before_headers"):
        writer.transport.abort()
        raise ConnectionResetError
    status, headers = answer.get("status", 200), answer.get("headers", {})
    if "json" in answer or "text" in answer:
        text = json.dumps(answer["json"]) if "json" in answer else answer["text"]
        return await write_whole(writer, status, headers, text)
    write_head(writer, status, {"content-type": "text/event-stream", "transfer-encoding": "chunked", **headers})
    await writer.drain()
    pieces = pieces_of(answer, bytes_of(answer, folder))
    for number in range(len(pieces) + 1):
        if answer.get("stall_after") == number:
            await asyncio.sleep(3600)
        if answer.get("drop_after") == number:
            # The client has to have what was sent before.
            await asyncio.sleep(0.05)
            writer.transport.abort()
            raise ConnectionResetError
        if number < len(pieces):
            writer.write(b"%x\r\n%b\r\n" % (len(pieces[number]), pieces[number]))
            await writer.drain()
            await asyncio.sleep(answer.get("event_delay_ms", 1) / 1000 if "chunk" not in answer else 0)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def bytes_of(answer, folder):
    if "events" in answer:
        return "".join(framed(event) for event in answer["events"]).encode()
    return answer["raw"].encode() if "raw" in answer else (folder / answer["body"]).read_bytes()


def framed(event):
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False, separators=(',', ':'))}\n\n"


def pieces_of(answer, data):
    """What is written at once: one event, or `chunk` bytes."""
    if size := answer.get("chunk"):
        return [data[at:at + size] for at in range(0, len(data), size)]
    end = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    events = data.split(end)
    return [event + end for event in events[:-1]] + [event for event in events[-1:] if event]


def write_head(writer, status, headers):
    writer.write(f"HTTP/1.1 {status} Status\r\n".encode())
    for name, value in headers.items():
        writer.write(f"{name}: {value}\r\n".encode())
    writer.write(b"\r\n")


async def write_whole(writer, status, headers, text):
    body = text.encode()
    write_head(writer, status, {"content-type": "application/json", "content-length": len(body), **headers})
    writer.write(body)
    await writer.drain()


async def main(folders):
    provider = Provider(folders)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, limit=1 << 20)
    print("ready %s:%d" % server.sockets[0].getsockname()[:2], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
