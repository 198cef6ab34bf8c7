"""One span for every shipped rule, as its stack writes it."""

from collections.abc import Mapping
from dataclasses import replace

from tests.collector.hops.batches import Plain, Span

INTERNAL, SERVER, CLIENT = 1, 2, 3
CHAT = "/v1/chat/completions"


def span(
    name: str, kind: int = INTERNAL, scope: str = "", service: str = "app", **attributes: Plain
) -> Span:
    """A span; `__` in a keyword stands for a dot."""
    dotted = {key.replace("__", "."): value for key, value in attributes.items()}
    return Span(name, scope, kind, attributes=dotted, resource={"service.name": service})


def _with(example: Span, **attributes: Plain) -> Span:
    dotted = {key.replace("__", "."): value for key, value in attributes.items()}
    return replace(example, attributes={**example.attributes, **dotted})


def _sglang(name: str) -> Span:
    return span(name, scope="sglang server", service="sglang")


def _tgi(name: str) -> Span:
    return span(name, service="text-generation-inference.router")


def _dynamo(name: str, kind: int = INTERNAL, **attributes: Plain) -> Span:
    module: dict[str, Plain] = {"code__module__name": "dynamo_runtime::logging"}
    return span(name, kind, "dynamo-worker", "dynamo-worker", **module, **attributes)


def _litellm(name: str, kind: int = INTERNAL, **attributes: Plain) -> Span:
    return span(name, kind, "litellm", "proxy-1", **attributes)


def _envoy(name: str, kind: int, **attributes: Plain) -> Span:
    return span(name, kind, "envoy", "mesh", component="proxy", **attributes)


def _http(name: str, kind: int, path: str, service: str = "app", scope: str = "web") -> Span:
    return span(name, kind, scope, service, http__request__method="POST", url__path=path)


EXAMPLES: Mapping[str, Span] = {
    "vllm/llm_request": span("llm_request", SERVER, "vllm.llm_engine", "vllm"),
    "vllm/boot": span("Load weights", scope="vllm.model_executor.loader", service="vllm"),
    "vllm/boot-other": span("New step", scope="vllm.v1.engine", code__function="step"),
    "tensorrt-llm/llm_request": span("llm_request", SERVER, "trt.llm"),
    "tensorrt-llm/disaggregated-proxy": span("openai_chat", SERVER, "trt.llm"),
    "sglang/request": _with(_sglang(" Req 9f8e7d6c"), rid="9f8e7d6c00000000"),
    "sglang/tokenize": _sglang("tokenize"),
    "sglang/queue": _sglang("prefill_waiting"),
    "sglang/prefill": _sglang("prefill_forward"),
    "sglang/decode": _sglang("decode_loop"),
    "sglang/kv-transfer": _sglang("mooncake_worker_send"),
    "sglang/inner": _sglang("Scheduler [TP 0] (host:0a1b2c3d | pid:1001)"),
    "triton/request": span("InferRequest", SERVER, "triton-server"),
    "triton/model-whole": replace(
        span("llama", SERVER, "triton-server", triton__model_name="llama"),
        events=[("QUEUE_START", 1_000_000_000), ("COMPUTE_START", 1_100_000_000)],
    ),
    "triton/model": span("llama", SERVER, "triton-server", triton__model_name="llama"),
    "triton/compute": span("compute", INTERNAL, "triton-server"),
    "tgi/request": _with(_tgi("generate_stream"), time_per_token="45.2ms"),
    "tgi/validate": _tgi("validate"),
    "tgi/queue": _tgi("queued"),
    "tgi/detokenize": _tgi("send_generation"),
    "tgi/request-unfinished": _tgi("chat_completions"),
    "tgi/inner": _tgi("infer"),
    "dynamo/http-request": _dynamo("http-request", uri=CHAT, request_id="6b31fa3b-6ca1"),
    "dynamo/http-other": _dynamo("http-request", uri="/health", request_id="6b31fa3b-6ca1"),
    "dynamo/prefill-call": _dynamo("kv_router.route_request", CLIENT, phase="Prefill"),
    "dynamo/call": _dynamo("router.route_request", CLIENT, phase="Decode"),
    "dynamo/router-queue": _dynamo("kv_router.schedule"),
    "dynamo/router": _dynamo("kv_router.select_worker"),
    "dynamo/router-inner": _dynamo("kv_router.find_matches"),
    "dynamo/lora": _dynamo("handle_payload", SERVER, endpoint="load_lora"),
    "dynamo/worker-upkeep": _dynamo("handle_payload", SERVER, endpoint="worker_kv_query_1"),
    "dynamo/prefill-worker": _dynamo(
        "handle_payload", SERVER, component="prefill", endpoint="generate"
    ),
    "dynamo/worker": _dynamo("handle_payload", SERVER, component="backend", endpoint="generate"),
    "dynamo/engine": _dynamo("engine.generate", output_tokens="17"),
    "dynamo/inner": _dynamo("routed_engine.generate"),
    "litellm/server": _litellm("Received Proxy Server Request", SERVER, http__route=CHAT),
    "litellm/server-other": _litellm("Received Proxy Server Request", SERVER, http__route="/keys"),
    "litellm/try": _litellm("litellm_request", gen_ai__operation__name="acompletion"),
    "litellm/call-v2": _litellm("chat small", CLIENT, gen_ai__operation__name="chat"),
    "litellm/guardrail": _litellm("execute_guardrail pii"),
    "litellm/server-v2": _litellm(f"POST {CHAT}", SERVER, http__route=CHAT),
    "litellm/sent": _litellm("self", call_type="post <- track_llm_api_timing"),
    "litellm/inner": _litellm("router", call_type="acompletion"),
    "litellm/web-server": _http(f"POST {CHAT}", SERVER, CHAT, "litellm-proxy", "fastapi"),
    "envoy-ai-gateway/request": span("ChatCompletion", scope="envoyproxy/ai-gateway"),
    "envoy/ingress": _envoy("ingress", SERVER, http__url=f"https://llm.example{CHAT}"),
    "envoy/egress": _envoy("egress llm", CLIENT, http__url=f"https://llm.example{CHAT}?a=b"),
    "envoy/upstream": _envoy("router llm egress", CLIENT, upstream_cluster="llm"),
    "envoy/other": _envoy("ingress", SERVER, http__url="https://shop.example/cart"),
    "kong/request": span("kong", SERVER, "kong-internal", "kong", http__route=CHAT),
    "kong/request-no-route": span("kong", SERVER, "kong-internal", "kong"),
    "kong/other": span("kong", SERVER, "kong-internal", "kong", http__route="/cart"),
    "kong/balancer": span("kong.balancer", CLIENT, "kong-internal", "kong"),
    "kong/guardrail": span("kong.access.plugin.ai-prompt-guard", scope="kong-internal"),
    "kong/inner": span("kong.router", scope="kong-internal"),
    "nginx/request": span(CHAT, SERVER, "nginx", "edge", http__target=CHAT),
    "nginx/other": span("/", SERVER, "nginx", "edge", http__target="/"),
    "production-stack/request": span(
        f"router {CHAT}", SERVER, "vllm-router", "vllm-router", vllm__request_id="da3274c28d794191"
    ),
    "production-stack/try": span("process_request", CLIENT, "vllm-router", "vllm-router"),
    "vllm-router/request": _http(f"POST {CHAT}", SERVER, CHAT, "vllm-router", "vllm-router"),
    "vllm-router/try": span(
        f"POST {CHAT}", CLIENT, "vllm-router", "vllm-router", url__full=f"http://a:1{CHAT}"
    ),
    "vllm-router/other": _http("GET /health", SERVER, "/health", "vllm-router", "vllm-router"),
    "sglang-router/smg-request": span("http_request", scope="smg", service="smg", path=CHAT),
    "sglang-router/request": span("http_request", scope="smg", service="smg", uri=CHAT),
    "sglang-router/other": span("http_request", scope="smg", service="smg", uri="/v1/models"),
    "llm-d/request": span("gateway.request", SERVER, "llm-d-inference-scheduler"),
    "llm-d/sidecar": span("llm_d.pd_proxy.request", scope="llm-d-pd-proxy"),
    "llm-d/sidecar-prefill": span("llm_d.pd_proxy.prefill", scope="llm-d-pd-proxy"),
    "llm-d/sidecar-decode": span("llm_d.pd_proxy.decode", scope="llm-d-pd-proxy"),
    "llm-d/inner": span("gateway.request_orchestration", SERVER, "llm-d-inference-scheduler"),
    "lmcache/load": span("mp.retrieve", scope="lmcache_mp.server"),
    "lmcache/request": span("request", scope="lmcache_mp.server", session_id="chatcmpl-0123456789"),
    "lmcache/inner": span("transfer.staging", scope="lmcache_mp.transfer"),
    "openinference/call": span("ChatCompletion", openinference__span__kind="LLM"),
    "openinference/retrieval": span("retrieve", openinference__span__kind="RETRIEVER"),
    "openinference/guardrail": span("guard", openinference__span__kind="GUARDRAIL"),
    "openinference/other": span("chain", openinference__span__kind="CHAIN"),
    "genai/agent": span("execute_tool search", gen_ai__operation__name="execute_tool"),
    "genai/retrieval": span("retrieval docs", CLIENT, gen_ai__operation__name="retrieval"),
    "genai/server": span("chat llama", SERVER, gen_ai__operation__name="chat"),
    "genai/call": span("chat llama", CLIENT, gen_ai__operation__name="chat"),
    "openllmetry/call": span("openai.chat", CLIENT, llm__request__type="chat"),
    "openllmetry/workflow": span("answer.workflow", traceloop__span__kind="workflow"),
    "openllmetry/call-old": span(
        "openai.chat", CLIENT, gen_ai__system="OpenAI", gen_ai__request__model="gpt-4o"
    ),
    "databases/write": span("chroma.add", db__system="chroma", db__operation="add"),
    "databases/write-new": span(
        "upsert docs", db__system__name="qdrant", db__operation__name="upsert"
    ),
    "databases/retrieval": span("chroma.query", db__system="chroma", db__operation="query"),
    "databases/retrieval-new": span("search docs", db__system__name="qdrant"),
    "databases/other": span("SELECT users", CLIENT, db__system="postgresql"),
    "databases/other-new": span("GET", CLIENT, db__system__name="redis"),
    "http/token": span(f"POST {CHAT} http send", asgi__event__type="http.response.body"),
    "http/asgi": span(f"POST {CHAT} http send", asgi__event__type="http.response.start"),
    "http/fastapi": span("fastapi.endpoint", scope="fastapi"),
    "http/router": _http(f"POST {CHAT}", SERVER, CHAT, "our-vllm-router"),
    "http/gateway": _http(f"POST {CHAT}", SERVER, CHAT, "llm-gateway"),
    "http/engine": _http(f"POST {CHAT}", SERVER, CHAT, "vllm-7b"),
    "http/server": _http(f"POST {CHAT}", SERVER, CHAT),
    "http/call-to-last-byte": _http(
        "HTTP POST", CLIENT, CHAT, "web", "go.opentelemetry.io/contrib/instrumentation/net/http"
    ),
    "http/call": span(
        "POST", CLIENT, "opentelemetry.instrumentation.httpx", http__url=f"http://a:1{CHAT}"
    ),
    "http/grpc-server": span("infer", SERVER, rpc__service="inference.GRPCInferenceService"),
    "http/grpc-call": span("infer", CLIENT, rpc__service="inference.GRPCInferenceService"),
    "http/grpc-other": span(
        "Check", SERVER, rpc__system="grpc", rpc__service="grpc.health.v1.Health"
    ),
    "http/other": _http("GET /metrics", SERVER, "/metrics"),
}
