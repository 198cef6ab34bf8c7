"""Faults of hops before the engine's queue: tokenizer, gateway, retrieval."""

from typing import Final

from tailburn.lab.faults.needs import hurried
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site


def _tokenizer(site: Site) -> Broken:
    """The slow tokenizer on one thread."""
    factor = site.by(15.0, 30.0, 40.0)
    return Broken(
        (site.turn("tokenizer_factor", factor), site.turn("tokenizer_threads", 1.0)),
        affected={"pool": site.pools},
    )


S21 = Scenario(
    id="S21",
    name="tokenizer-saturation",
    title="The engines' front ends fall back to a slow tokenizer on one thread",
    broken="tokenizer_threads 1 and tokenizer_factor 15, 30, 40 on all replicas (weak, medium, "
    "strong: 41, 81 and 108 ms for a prompt of 1,155 tokens)",
    expect="Client's and engine's first token late by the tokenizer's wait and work, which grow "
    "with the prompt's length; p99 far above p50 when the thread is near its cap. The scheduler's "
    "queue stays empty, TPOT is normal, GPUs wait. Scrapes are late by what "
    "waits for the same event loop.",
    why="One thread takes prompts one after another: work of 81 ms at 8 prompts a second is two "
    "thirds of it. Under a few requests a second only the work shows, not the wait.",
    confusable=(
        Confusable("S1", "a surge waits in the engine's scheduler; here that queue is empty and "
                   "the wait lies before it"),
        Confusable("S28", "there only structured requests wait, after tokenizing, and TPOT is up"),
    ),
    verdict="HOP tokenizer",
    step="hop",
    hop="tokenizer",
    cause="tokenizer",
    breaks=_tokenizer,
    busy=True,
)  # fmt: skip


def _buffering(site: Site) -> Broken:
    """One gateway holds answers back until its buffer is full."""
    gateway = site.fleet.gateways[0].name
    held = site.by(4_096.0, 16_384.0, 1e9)
    return Broken(
        (site.turn("gateway_buffer_bytes", held, gateway),), affected={"gateway": (gateway,)}
    )


S23 = Scenario(
    id="S23",
    name="gateway-buffering",
    title="A gateway buffers streamed answers",
    broken="gateway_buffer_bytes of gateway-1: 4 KiB, 16 KiB, all (weak, medium, strong); a token "
    "is a chunk of 250 bytes",
    expect="All its clients that stream see their first token when 17 or 66 tokens are made, or "
    "the whole answer; answers that are shorter come as one. Engine, router and the other gateway "
    "see nothing; the end of each answer is where it was.",
    why="A proxy that buffers passes nothing on until its buffer is full or the answer ends.",
    confusable=(
        Confusable("S34", "a client that does not stream shows the same, but alone; here all "
                   "clients of one gateway, which asked for streams"),
        Confusable("S27", "there one client is slow before its request even leaves"),
        Confusable("S24", "a stall lies before the upstream call; here the engine's first token is "
                   "in time and the gateway's is not"),
    ),
    verdict="HOP gateway",
    step="hop",
    hop="gateway",
    cause="gateway buffering",
    breaks=_buffering,
)  # fmt: skip


def _stall(site: Site) -> Broken:
    """Some requests of one gateway meet a name lookup that times out once."""
    gateway = site.fleet.gateways[0].name
    share, stall_s = site.by((0.05, 5.0), (0.2, 5.0), (0.45, 30.0))
    return Broken(
        (
            site.turn("gateway_stall_share", share, gateway),
            site.turn("gateway_stall_s", stall_s, gateway),
        ),
        affected={"gateway": (gateway,)},
    )


S24 = Scenario(
    id="S24",
    name="gateway-stall",
    title="Name lookups or authentication in a gateway stall for a fixed time",
    broken="5 % of gateway-1's requests stalled for 5 s, 20 % for 5 s, 45 % for 30 s (weak, "
    "medium, strong) before the upstream call; users leave after 18 s or so, seven in ten",
    expect="A second mode in the client's TTFT, exactly 5 or 30 s later, whatever the length; the "
    "rest as ever. Engine and router normal. Users hang up, which the gateway logs as 499: 3.5 % "
    "before, 4.7 % at medium, 18 % at strong, a third of gateway-1's.",
    why="A resolver or identity provider that does not answer costs its time-out, no more and no "
    "less, and only where nothing was cached.",
    confusable=(
        Confusable("S1", "waits in a queue spread out and grow with load; these are one constant"),
        Confusable("S23", "there the upstream call is in time and the answer is held"),
        Confusable("S31", "there the excess lies in the retrieval span, and on its route alone"),
    ),
    verdict="HOP gateway",
    step="hop",
    hop="gateway",
    cause="gateway stall",
    breaks=_stall,
    needs=(hurried,),
)  # fmt: skip


def _retrieval(site: Site) -> Broken:
    """The vector store is slower, its slowest lookups most."""
    all_, tail = site.by((1.3, 2.0), (1.7, 3.0), (4.0, 3.0))
    return Broken(
        (site.turn("retrieval_factor", all_), site.turn("retrieval_tail_factor", tail)),
        affected={"route": ("rag",)},
    )


S31 = Scenario(
    id="S31",
    name="slow-retrieval",
    title="The vector store behind RAG routes is slow",
    broken="retrieval takes 1.3, 1.7, 4 times as long, its slowest 5 % again 2, 3, 3 times (weak, "
    "medium, strong; medium: p99 x 5)",
    expect="TTFT of requests with retrieval up by the retrieval span, at p99 most; every other "
    "route, the engines and TPOT stay.",
    why="Retrieval comes before the upstream call. An index that no longer fits in memory is slow "
    "on its cold part.",
    confusable=(
        Confusable("S29", "a slow way hits all routes of a zone; this one route of all zones"),
        Confusable("N2", "longer prompts would show in the engine's prefill; that stays"),
        Confusable("S24", "a stall is one constant for any route; this is a spread on one"),
    ),
    verdict="HOP retrieval",
    step="hop",
    hop="retrieval",
    cause="slow retrieval",
    breaks=_retrieval,
)  # fmt: skip

HOPS: Final = (S21, S23, S24, S31)
