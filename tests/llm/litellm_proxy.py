"""Starts LiteLLM's proxy with litellm.yaml, on the port that the first argument names."""

import pathlib
import sys

from litellm import run_server

sys.argv = [
    "litellm", "--config", str(pathlib.Path(__file__).parent / "litellm.yaml"), "--host", "127.0.0.1", "--port", sys.argv[1],
]
run_server()
