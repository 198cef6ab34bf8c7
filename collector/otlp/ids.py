"""Ids of requests, by which hops name the same request in different dress."""

from tailburn.collector.otlp.kernel.entries import hash_id


def id_hash(text: str) -> int:
    """64 bits of an id of a request, the same in every process; 0 for "".

    Without one prefix `chatcmpl-`, `cmpl-` or `resp_`. After the last two also without one
    suffix of `-` or `_` and one to three digits if at least eight characters stay: engines
    number the prompts of a request so. Other ids may end in a number of the caller's own.
    """
    return hash_id(text)
