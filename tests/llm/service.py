"""Calls of the service over gRPC, with stubs that are generated from the protocol's own file."""

import importlib
import json
import pathlib
import re
import sys
import tempfile
import urllib.request

import grpc
from google.protobuf import json_format

STUBS = tempfile.TemporaryDirectory()
PROTO = pathlib.Path(__file__).parents[2] / "proto"
CALL_TIMEOUT_S = 60
SHORT_ID = re.compile(r"\[[0-9a-f]{8}\]")
# What this project adds to the messages of the existing service.
ACCEPTED = ["finish", "provider_data", "codes.v2", "retry", "url_retrievals"]


def stubs():
    """The modules of the messages and of the service."""
    from grpc_tools import protoc

    included = pathlib.Path(protoc.__file__).parent / "_proto"
    arguments = [f"-I{PROTO}", f"-I{included}", f"--python_out={STUBS.name}", f"--grpc_python_out={STUBS.name}"]
    if protoc.main(["protoc", *arguments, "llm/v1/llm_service.proto"]) != 0:
        raise SystemExit("the protocol does not compile")
    sys.path.insert(0, STUBS.name)
    return importlib.import_module("llm.v1.llm_service_pb2"), importlib.import_module("llm.v1.llm_service_pb2_grpc")


MESSAGES, SERVICES = stubs()


class Service:
    """One process of the service."""

    def __init__(self, address):
        self.stub = SERVICES.LLMServiceStub(grpc.insecure_channel(address))

    def generate(self, request, timeout=CALL_TIMEOUT_S):
        """The stream of responses as JSON, default values left out. A status of gRPC is its last element."""
        responses = []
        message = json_format.ParseDict(request, MESSAGES.GenerateRequest())
        try:
            for response in self.stub.Generate(message, timeout=timeout):
                responses.append(json_format.MessageToDict(response, preserving_proto_field_name=True))
        except grpc.RpcError as error:
            responses.append({"status": error.code().name, "details": error.details()})
        return responses


class Provider:
    """The fake provider (fake.py)."""

    def __init__(self, address):
        self.url = f"http://{address}"

    def reset(self, key):
        self.ask("POST", f"/__reset?key={key}")

    def requests(self, key):
        """The requests of a key, each with its body as JSON."""
        logged = self.ask("GET", f"/__log?key={key}")
        return [each | {"body": json.loads(each["text"]) if each["text"] else None} for each in logged]

    def ask(self, method, target):
        request = urllib.request.Request(self.url + target, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)


def without_short_ids(text):
    """The ids of requests in messages are random."""
    return SHORT_ID.sub("[$REQ]", text)


def call_ids(responses):
    return [response["tool_call"]["call_id"] for response in responses if "tool_call" in response]
