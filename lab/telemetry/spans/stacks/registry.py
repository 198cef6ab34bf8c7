"""Every stack by hop and name, and what is told beside them."""

from typing import Final

from tailburn.lab.telemetry.spans.flow import Stack
from tailburn.lab.telemetry.spans.stacks import (
    beside,
    client,
    dynamo,
    envoy,
    fastapi,
    litellm,
    routers,
    sglang,
    triton,
    vllm,
)

STACKS: Final[dict[str, dict[str, Stack]]] = {
    "client": {
        "openai": client.openai,
        "app": client.app,
        "openinference": client.openinference,
    },
    "gateway": {
        "fastapi": fastapi.gateway,
        "litellm": litellm.gateway,
        "envoy-ai-gateway": envoy.gateway,
        "dynamo": dynamo.gateway,
    },
    "router": {
        "production-stack": routers.production_stack,
        "smg": routers.smg,
        "sglang-router": routers.sglang_router,
        "vllm-router": routers.vllm_router,
        "dynamo": dynamo.router,
    },
    "engine": {
        "vllm": vllm.vllm,
        "trtllm": vllm.trtllm,
        "sglang": sglang.sglang,
        "triton": triton.triton,
        "dynamo": dynamo.worker,
        "dynamo-vllm": dynamo.worker_with_vllm,
    },
}
"""A place whose stack is not here tells nothing of itself."""

AFTER: Final[tuple[Stack, ...]] = (beside.lmcache, beside.boot)
"""What is told of all attempts, whatever their stacks: in traces of their own."""
