"""Where each number of a step model lies in its flat array of float64.

Two kinds. *Knobs* are what a fault turns, each at its cause and neutral in a healthy
engine; the world writes them at any instant, between two steps. *Coefficients* are
what one (model, GPU, layout, engine) costs; `layout.step_coefficients` fills them.
All times are nanoseconds.
"""

from typing import Final

# Knobs -----------------------------------------------------------------------------------
HBM_RATIO: Final = 0
"""Memory bandwidth over the healthy one, > 0 (0.8: 20 % lost)."""
SM_CLOCK_RATIO: Final = 1
"""SM clock over the healthy one, > 0 (0.7: throttled by 30 %)."""
ALLREDUCE_FACTOR: Final = 2
"""Time of each collective over the healthy one, >= 1."""
HOST_FACTOR: Final = 3
"""CPU time of a step over the healthy one, >= 1."""
SPEC_ACCEPTANCE: Final = 4
"""Chance that a drafted token is accepted, given that those before it were: 0 to 1."""
ALLREDUCE_EAGER: Final = 5
"""1 when collectives run eagerly instead of inside a CUDA graph, else 0."""
STRAGGLER_RATIO: Final = 6
"""Speed of the slowest rank over its peers' (its clocks and memory alike), 0 to 1."""
ALLTOALL_FACTOR: Final = 7
"""Time of the expert exchange over the healthy one, >= 1 (between hosts: the fabric)."""
EXPERT_SKEW: Final = 8
"""Load of the busiest expert rank over the mean, >= 1; a hot expert raises it."""
STAGE_LINK_FACTOR: Final = 9
"""Time of a hand-over between pipeline stages over the healthy one, >= 1."""
KNOBS: Final = 10

KNOB_INDEX: Final = {
    "hbm_ratio": HBM_RATIO,
    "sm_clock_ratio": SM_CLOCK_RATIO,
    "allreduce_factor": ALLREDUCE_FACTOR,
    "host_factor": HOST_FACTOR,
    "spec_acceptance": SPEC_ACCEPTANCE,
    "allreduce_eager": ALLREDUCE_EAGER,
    "straggler_ratio": STRAGGLER_RATIO,
    "alltoall_factor": ALLTOALL_FACTOR,
    "expert_skew": EXPERT_SKEW,
    "stage_link_factor": STAGE_LINK_FACTOR,
}
"""Index of each knob by its name; neutral values are in `NEUTRAL`."""

NEUTRAL: Final = {
    "hbm_ratio": 1.0,
    "sm_clock_ratio": 1.0,
    "allreduce_factor": 1.0,
    "host_factor": 1.0,
    "spec_acceptance": 0.0,
    "allreduce_eager": 0.0,
    "straggler_ratio": 1.0,
    "alltoall_factor": 1.0,
    "expert_skew": 1.0,
    "stage_link_factor": 1.0,
}

# Coefficients ----------------------------------------------------------------------------
LAYERS: Final = 10
"""Layers of the fullest pipeline stage."""
STAGES: Final = 11
"""Pipeline stages, >= 1."""
RANKS: Final = 12
"""Tensor-parallel ranks of a stage, >= 1."""
GEMM_FLOOR: Final = 13
"""Matrix products of a layer: ns that no size undercuts."""
GEMM_READ: Final = 14
"""Matrix products of a layer: ns to read their weights once."""
GEMM_TOKEN: Final = 15
"""Matrix products of a layer: ns of arithmetic a token."""
GEMM_BEND: Final = 16
"""Exponent that joins reading and arithmetic: (read^p + arithmetic^p)^(1/p)."""
HEAD_READ: Final = 17
"""The vocabulary's product: ns to read its weights."""
HEAD_TOKEN: Final = 18
"""The vocabulary's product: ns of arithmetic a sampled token."""
ATTENTION_FLOOR: Final = 19
"""Decode attention of a layer: ns that no size undercuts."""
ATTENTION_TOKEN: Final = 20
"""Decode attention of a layer: ns to read one token's keys and values."""
ATTENTION_BEND: Final = 21
"""Exponent that joins floor and reading."""
ATTENTION_PAIR: Final = 22
"""Prefill attention of a layer: ns of arithmetic a (query, key) pair."""
ALLREDUCES: Final = 23
"""All-reduces of a layer: 2, or 0 on one rank."""
ALLREDUCE_FLOOR: Final = 24
"""One all-reduce inside a graph: ns that no size undercuts."""
ALLREDUCE_TOKEN: Final = 25
"""One all-reduce: ns a token's hidden state."""
ALLREDUCE_BEND: Final = 26
"""Exponent that joins floor and transfer."""
ALLREDUCE_EAGER_FLOOR: Final = 27
"""One all-reduce outside a graph: ns that no size undercuts."""
ALLTOALLS: Final = 28
"""Expert exchanges of a layer: 2 (dispatch, combine), or 0 without expert ranks."""
ALLTOALL_FLOOR: Final = 29
"""One expert exchange: ns that no size undercuts."""
ALLTOALL_TOKEN: Final = 30
"""One expert exchange: ns a token."""
EXPERTS: Final = 31
"""Experts of a layer; 0 in a dense model."""
EXPERTS_ACTIVE: Final = 32
"""Experts a token visits."""
EXPERT_READ: Final = 33
"""Experts of a layer: ns a rank needs to read all of its own."""
EXPERT_TOKEN: Final = 34
"""Experts of a layer: ns of arithmetic a token on its rank, load spread evenly."""
STAGE_LINK_FLOOR: Final = 35
"""One hand-over between stages: ns that no size undercuts."""
STAGE_LINK_TOKEN: Final = 36
"""One hand-over between stages: ns a token."""
HOST_STEP: Final = 37
"""Host: ns a step costs beyond the GPU's (scheduler, launch, sampling, output)."""
HOST_SEQUENCE: Final = 38
"""Host: ns a running sequence adds to a step."""
HOST_PREFILL_TOKEN: Final = 39
"""Host: ns a prefilled token adds to a step."""
DRAFT_TOKENS: Final = 40
"""Tokens drafted a sequence and step; 0 without speculative decoding."""
DRAFT_STEP: Final = 41
"""Ns to draft one token for the whole batch."""
JITTER_SIGMA: Final = 42
"""Sigma of the lognormal factor on each step."""
RANK_WAIT: Final = 43
"""What ranks wait for the slowest of healthy peers, over their compute time."""
STALL_CHANCE: Final = 44
"""Chance of a step to be held up by the host."""
STALL_MEAN: Final = 45
"""Mean ns of such a hold-up (exponential)."""
SIZE: Final = 48
"""Length of the array; what lies past the last name is spare, and 0."""
