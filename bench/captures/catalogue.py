"""Every capture there is a judge for, by name."""

from typing import Final

from bench.captures import dynamo, litellm, routers, vllm, vllm_edge
from bench.captures.case import Case

CASES: Final[tuple[Case, ...]] = (
    vllm.RUN1,
    vllm_edge.RUN3,
    litellm.V1,
    litellm.V2,
    dynamo.RUN1,
    dynamo.RUN2,
    dynamo.RUN3,
    routers.SGLANG_RUN1,
    routers.SGLANG_RUN2,
    routers.SMG,
    routers.PRODUCTION_STACK,
    routers.VLLM_ROUTER,
)
