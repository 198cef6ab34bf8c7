"""The kinds of span of LiteLLM's first tracer and of FastAPI's own, with all attributes.

`litellm_request` has some sixty; most are empty or the same on every one.
"""

from typing import Final

from tailburn.lab.telemetry.spans.stacks.http import ROUTE
from tailburn.lab.telemetry.spans.template import INTERNAL, SERVER, Event, Kind, Of, Slot
from tailburn.lab.telemetry.spans.wire import Value

_FASTAPI: Final = ("0.165.0", "https://opentelemetry.io/schemas/1.44.0")
_FUNCTION: Final = ("code.function.name", "litellm.proxy.proxy_server.chat_completion")
_PROMPT: Final = "zzprompt quide teran ste ansoqui pra quide so dal"
_EXCEPTION: Final = Event(
    "raised",
    "exception",
    (
        ("exception.type", "litellm.exceptions.InternalServerError"),
        ("exception.message", "litellm.InternalServerError"),
        ("exception.stacktrace", "Traceback (most recent call last):"),
        ("exception.escaped", "False"),
    ),
)
_RAISED: Final = (
    ("error.code", Slot("code", Of.DECIMAL)),
    ("error.type", Slot("error", Of.TEXT)),
    ("error.message", Slot("message", Of.TEXT)),
)


def _fastapi(
    name: str, kind: int, *attributes: tuple[str, Value | Slot], function: bool = True
) -> Kind:
    head = (_FUNCTION,) if function else ()
    return Kind("fastapi", name, kind, (*head, *attributes), (), (), *_FASTAPI)


def _step(name: str, call_type: str, service: str) -> Kind:
    attributes = (("call_type", call_type), ("service", service))
    return Kind("litellm", name, INTERNAL, attributes)


WEB_SERVER: Final = _fastapi(
    f"POST {ROUTE}",
    SERVER,
    ("server.address", Slot("address", Of.TEXT)),
    ("server.port", Slot("port", Of.INT)),
    ("url.path", ROUTE),
    ("url.scheme", "http"),
    ("http.request.method", "POST"),
    ("network.protocol.version", "1.1"),
    ("http.route", ROUTE),
    ("http.response.status_code", Slot("http_status", Of.INT)),
    ("error.type", Slot("error", Of.DECIMAL)),
    function=False,
)
DEPENDENCIES: Final = _fastapi("fastapi.dependencies", INTERNAL)
ENDPOINT: Final = _fastapi("fastapi.endpoint", INTERNAL, ("error.type", Slot("error", Of.TEXT)))
SERIALIZATION: Final = _fastapi("fastapi.serialization", INTERNAL)
RECEIVED: Final = Kind(
    "litellm",
    "Received Proxy Server Request",
    SERVER,
    (
        ("url.path", ROUTE),
        ("http.route", ROUTE),
        ("http.response.status_code", Slot("http_status", Of.INT)),
        *_RAISED,
    ),
    events=(_EXCEPTION,),
)
FAILED: Final = Kind(
    "litellm",
    "Failed Proxy Server Request",
    INTERNAL,
    (("exception", "No deployments available"),),
)
AUTH: Final = _step("auth", ROUTE, "auth")
PRE_CALL: Final = _step("proxy_pre_call", "add_litellm_data_to_request", "proxy_pre_call")
ROUTER: Final = _step("router", "acompletion", "router")
SELF: Final = _step("self", "post <- track_llm_api_timing", "self")
GUARDRAIL: Final = Kind(
    "litellm",
    "guardrail",
    INTERNAL,
    (("guardrail_name", "policy"), ("guardrail_mode", "pre_call"), ("service", "guardrail")),
)


def _metadata() -> tuple[tuple[str, Value | Slot], ...]:
    given: dict[str, Value | Slot] = {
        "user_api_key_hash": "litellm_proxy_master_key",
        "user_api_key_alias": "",
        "user_api_key_spend": 0.0,
        "user_api_key_max_budget": "",
        "user_api_key_budget_reset_at": "",
        "user_api_key_user_spend": "",
        "user_api_key_user_max_budget": "",
        "user_api_key_team_spend": "",
        "user_api_key_team_max_budget": "",
        "user_api_key_team_id": "",
        "user_api_key_org_id": "",
        "user_api_key_org_alias": "",
        "user_api_key_project_id": "",
        "user_api_key_project_alias": "",
        "user_api_key_user_id": "default_user_id",
        "user_api_key_team_alias": "",
        "user_api_key_user_email": "",
        "user_api_key_end_user_id": "",
        "user_api_key_request_route": ROUTE,
        "spend_logs_metadata": "",
        "requester_ip_address": "127.0.0.1",
        "user_agent": "AsyncOpenAI/Python 3.57.0",
        "requester_metadata": Slot(
            "caller",
            Of.TRACE,
            before="{'trace_id': '",
            after="', 'headers': {'connection': 'keep-alive', 'accept': 'application/json', "
            "'content-type': 'application/json', 'user-agent': 'AsyncOpenAI/Python 3.57.0'}}",
        ),
        "prompt_management_metadata": "",
        "applied_guardrails": "[]",
        "mcp_tool_call_metadata": "",
        "vector_store_request_metadata": "",
        "routing_decision": "",
        "usage_object": "{'completion_tokens_details': None, 'prompt_tokens_details': None}",
        "requester_custom_headers": "{'x-stainless-lang': 'python', 'x-stainless-os': 'Linux'}",
        "cold_storage_object_key": "",
        "user_api_key_auth_metadata": "{}",
        "team_alias": "",
        "team_id": "",
        "used_client_oauth_token": False,
    }
    return tuple((f"metadata.{name}", value) for name, value in given.items())


_COSTS: Final = (
    "input_cost",
    "output_cost",
    "total_cost",
    "tool_usage_cost",
    "original_cost",
    "discount_percent",
    "discount_amount",
    "margin_percent",
    "margin_fixed_amount",
    "margin_total_amount",
)
REQUEST: Final = Kind(
    "litellm",
    "litellm_request",
    INTERNAL,
    (
        *_metadata(),
        ("hidden_params", '{"cache_key": null, "response_cost": 0.0}'),
        ("http.route", ROUTE),
        ("litellm.model_group", Slot("model", Of.TEXT)),
        ("litellm.provider.model", Slot("model", Of.TEXT, before="hosted_vllm/")),
        *((f"gen_ai.cost.{name}", Slot("cost", Of.DOUBLE)) for name in _COSTS),
        ("gen_ai.request.model", Slot("model", Of.TEXT)),
        ("llm.request.type", "acompletion"),
        ("gen_ai.system", "hosted_vllm"),
        ("gen_ai.request.max_tokens", Slot("max_tokens", Of.INT)),
        ("gen_ai.request.temperature", 0.8),
        ("gen_ai.request.top_p", 0.95),
        ("llm.is_streaming", Slot("streams", Of.TEXT)),
        ("gen_ai.response.id", Slot("response_id", Of.HEX16, before="chatcmpl-")),
        ("gen_ai.response.id", Slot("response_uuid", Of.UUID, before="chatcmpl-")),
        ("gen_ai.response.id", Slot("failed_id", Of.UUID)),
        ("litellm.call_id", Slot("call_id", Of.UUID)),
        ("gen_ai.response.model", Slot("response_model", Of.TEXT)),
        ("gen_ai.usage.total_tokens", Slot("total", Of.INT)),
        ("gen_ai.usage.output_tokens", Slot("output", Of.INT)),
        ("gen_ai.usage.input_tokens", Slot("input", Of.INT)),
        (
            "gen_ai.input.messages",
            f'[{{"role": "user", "parts": [{{"type": "text", "content": "{_PROMPT}"}}]}}]',
        ),
        ("gen_ai.operation.name", "acompletion"),
        ("gen_ai.output.messages", Slot("answer", Of.TEXT)),
        ("gen_ai.response.finish_reasons", Slot("finish", Of.TEXT)),
        ("error.code", Slot("code", Of.DECIMAL)),
        ("http.response.status_code", Slot("code", Of.INT)),
        *_RAISED[1:],
    ),
    events=(_EXCEPTION,),
)


def _raw(stream: bool, *more: tuple[str, Value | Slot]) -> Kind:
    p = "llm.hosted_vllm"
    return Kind(
        "litellm",
        "raw_gen_ai_request",
        INTERNAL,
        (
            (f"{p}.model", Slot("model", Of.TEXT)),
            (f"{p}.messages", f"[{{'role': 'user', 'content': '{_PROMPT}'}}]"),
            (f"{p}.temperature", 0.8),
            (f"{p}.top_p", 0.95),
            (f"{p}.stream", stream),
            *(((f"{p}.stream_options", "{'include_usage': True}"),) if stream else ()),
            (f"{p}.max_tokens", Slot("max_tokens", Of.INT)),
            (f"{p}.ignore_eos", True),
            *((f"{p}.{key}", value) for key, value in more),
        ),
    )


RAW_STREAM: Final = _raw(True, ("stringified_raw_response", "first stream response received"))
RAW_WHOLE: Final = _raw(
    False,
    ("id", Slot("response_id", Of.HEX16, before="chatcmpl-")),
    ("object", "chat.completion"),
    ("created", Slot("created", Of.INT)),
    ("choices", "[{'index': 0, 'message': {'role': 'assistant', 'content': ' zzanswer kalo'}}]"),
    ("service_tier", ""),
    ("system_fingerprint", "vllm-0.32.0-c8df3ee8"),
    ("usage", "{'prompt_tokens_details': None}"),
    ("prompt_logprobs", ""),
    ("prompt_token_ids", ""),
    ("prompt_text", ""),
    ("kv_transfer_params", ""),
    ("ec_transfer_params", ""),
    ("metrics", ""),
)
