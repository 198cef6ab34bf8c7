"""A real capture, shipped: vLLM 0.32.0 behind a FastAPI gateway, at rest and overloaded.

`vllm-0.32.0.tar.gz` holds what a client, the gateway and vLLM sent in ten minutes, byte for
byte: 14,691 spans of 126 requests and of the engine's start, in 54 bodies.
"""
