"""Where to look next when a hop owns the slow requests' excess."""

from typing import Final

REMEDIES: Final = {
    "client": "the caller itself: its connection pool, its event loop, its own retries",
    "client>gateway": "the way in: TLS and connect time, the load balancer, a gateway too busy to "
    "accept (its CPU, its accept queue, one event loop for all streams)",
    "gateway": "the gateway: its CPU and event loop, buffering of the stream, work per token "
    "(middleware, logging, a span per message)",
    "guardrail": "the policy checks: their own latency, whether they can run beside the request",
    "gateway>router": "the network between gateway and router: zones, connection reuse, TLS",
    "router": "the router: its queue, its CPU, how it picks a replica",
    "router>engine": "the way from router to engine: zones, connection reuse, an engine's front "
    "end too busy to accept",
    "gateway>engine": "the way from gateway to engine: connection pool and keep-alive of the "
    "gateway's HTTP client, zones, an engine's front end too busy to accept",
    "client>engine": "the way in: TLS and connect time, an engine's front end too busy to accept",
    "retrieval": "retrieval: the vector store's own latency and what it fetches",
    "tokenizer": "tokenisation: CPU of the front end, very long prompts, fast tokenizers",
    "engine": "the engine's front end: CPU of its API process, tokenisation, its own event loop",
    "queue": "the engine's queue: running requests against their cap, arrival against service "
    "rate; more replicas, or a better spread over them",
    "prefill": "prefill: uncached prompt tokens, prefix hit rate, chunked prefill, batch mix",
    "decode": "decode: batch size, KV cache use and preemptions, long prompts that interfere",
    "kv_transfer": "the hand-off between prefill and decode workers: interconnect and its load",
    "kv_load": "loading KV from the offload tier: its bandwidth, its hit rate",
    "model_load": "model loading: replicas that start cold, scale-out that comes too late",
    "lora_load": "adapter loading: how many adapters, how many slots",
    "detokenizer": "detokenisation: CPU of the engine's front end",
    "retry": "failed attempts: what failed first, and the back-off between the tries",
}
