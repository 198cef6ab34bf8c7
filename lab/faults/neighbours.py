"""Faults of a batch: requests that slow down those beside them."""

from typing import Final

from tailburn.lab.faults.needs import roomy, with_spare
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.faults.traffics import long_prompts


def _long(site: Site) -> Broken:
    """Some prompts are as long as a book."""
    tokens, share = site.by((32_768, 0.005), (65_536, 0.01), (65_536, 0.02))
    return Broken(changes=(site.change("long_tokens", tokens), site.change("long_share", share)))


S5 = Scenario(
    id="S5",
    name="long-prefill",
    title="A few very long prompts hold up everyone's decode",
    broken="0.5 % of prompts of 32k tokens, 1 % of 64k, 2 % of 64k (weak, medium, strong)",
    expect="Others' longest gaps from a step's 12 ms to 0.6 to 0.9 s, in trains of one per chunk, "
    "x 1.6 to 2.4 at p99 of what prompts of every day make; TPOT p99 x 4.5 at medium, p50 x "
    "1.1; TTFT p99 x 15 for those behind, and its own 5 s, p50 as ever. Prompt tokens per "
    "step at the budget, KV below 0.8, no preemptions; steps are what their batch with its "
    "prompt predicts. 1 % of 64k on the usual fleet, twice as busy, would lift p50 fourfold "
    "and queue.",
    why="A step carries a chunk of the prompt beside the decodes, up to the token budget of 8,192, "
    "and lasts as long as that chunk: all streams of the replica get a token per chunk.",
    confusable=(
        Confusable("S13", "preempted requests have gaps too, but KV is full and preemptions count; "
                   "here neither"),
        Confusable("S22", "gaps of compilation fall on steps without a long prompt"),
        Confusable("S11", "pauses come by the clock; these come with a long prompt"),
        Confusable("S6", "a neighbour's context slows every step a little; these slow a few much"),
    ),
    verdict="THROUGHPUT (prefill share)",
    step="throughput",
    hop="decode",
    cause="long prompts",
    breaks=_long,
    base=roomy,
    traffic=long_prompts,
)  # fmt: skip

NEIGHBOUR: Final = "client:neighbour"
STAY_S: Final = 240.0
"""An answer of 8,192 tokens among such neighbours takes so long, or more."""


def _neighbour(site: Site) -> Broken:
    """A tenant comes with long contexts and long answers."""
    rate = site.by(4, 6, 8) * len(site.replicas()) / STAY_S
    return Broken(
        changes=(
            site.change("added_rate", rate, NEIGHBOUR),
            site.change("prompt_floor", 30_000.0, NEIGHBOUR),
            site.change("output_factor", 150.0, NEIGHBOUR),
        ),
        affected={"tenant": ("neighbour",)},
    )


S6 = Scenario(
    id="S6",
    name="batch-neighbour",
    title="A tenant's long contexts in the batch slow every step",
    broken="the tenant `neighbour` asks with contexts of 30,000 tokens for answers of 8,192, so "
    "that each replica holds 4, 6, 8 of them and more (weak, medium, strong)",
    expect="TPOT p50 x 1.3, 1.5, 1.9 within the hour (weak, medium, strong) for all, smoothly, as "
    "the neighbour's sequences gather; medium is at x 1.4 after ten minutes. TTFT p99 x 3 "
    "behind its prefills, no preemptions. KV in use many times what it was, steps as long "
    "as their batch predicts. 40 such sequences a replica would fill KV and end in "
    "preemption, so fewer are set.",
    why="Attention reads the context of every sequence in every step. The batch is longer in "
    "tokens, not in sequences, and all in it wait for the longest.",
    confusable=(
        Confusable("S8", "slow memory makes steps longer than their batch predicts; here the batch "
                   "holds more tokens and predicts it"),
        Confusable("S18", "slow collectives too make steps longer than predicted"),
        Confusable("N3", "longer answers of everybody; here one tenant's contexts"),
        Confusable("S33", "there more sequences run at once, above the old cap"),
    ),
    verdict="THROUGHPUT (batch composition)",
    step="throughput",
    hop="decode",
    cause="long contexts of a tenant",
    breaks=_neighbour,
    needs=(with_spare,),
    traffic=long_prompts,
)  # fmt: skip

NEIGHBOURS: Final = (S5, S6)
