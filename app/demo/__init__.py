"""What `make run` shows: a simulated fleet that breaks, and a real capture, shipped.

`vllm-0.32.0.tar.gz` is vLLM 0.32.0 behind a FastAPI gateway, at rest and overloaded. It holds
what a client, the gateway and vLLM sent in ten minutes, byte for byte: 14,691 spans of 126
requests and of the engine's start, in 54 bodies.
"""
