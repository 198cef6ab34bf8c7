"""Every stack by hop and name, and what is told beside them."""

from typing import Final

from tailburn.lab.telemetry.spans.flow import Stack
from tailburn.lab.telemetry.spans.stacks import client, fastapi, vllm

STACKS: Final[dict[str, dict[str, Stack]]] = {
    "client": {
        "openai": client.openai,
        "app": client.app,
        "openinference": client.openinference,
    },
    "gateway": {"fastapi": fastapi.gateway},
    "router": {},
    "engine": {"vllm": vllm.vllm, "trtllm": vllm.trtllm},
}
"""A place whose stack is not here tells nothing of itself."""

AFTER: Final[tuple[Stack, ...]] = ()
"""What is told of all attempts, whatever their stacks: in traces of their own."""
