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
ALLREDUCE_JITTER: Final = 10
"""Sigma of the lognormal factor that each step's collectives have, >= 0; the mean stays."""
KNOBS: Final = 11

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
    "allreduce_jitter": ALLREDUCE_JITTER,
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
    "allreduce_jitter": 0.0,
}

# Coefficients ----------------------------------------------------------------------------
LAYERS: Final = 11
"""Layers of the fullest pipeline stage."""
STAGES: Final = 12
"""Pipeline stages, >= 1."""
RANKS: Final = 13
"""Tensor-parallel ranks of a stage, >= 1."""
GEMM_FLOOR: Final = 14
"""Matrix products of a layer: ns that no size undercuts."""
GEMM_ROW: Final = 15
"""Matrix products of a layer: further ns that many rows cost, whatever their width."""
GEMM_ROW_HALF: Final = 16
"""Rows (tokens) at which half of `GEMM_ROW` is reached."""
GEMM_READ: Final = 17
"""Matrix products of a layer: ns to read their weights once."""
GEMM_TOKEN: Final = 18
"""Matrix products of a layer: ns of arithmetic a token."""
GEMM_BEND: Final = 19
"""Exponent that joins reading and arithmetic: (read^p + arithmetic^p)^(1/p)."""
ELEMENTWISE_TOKEN: Final = 20
"""Norms, activations and their like in a layer: ns of memory traffic a prefilled token."""
HEAD_READ: Final = 21
"""The vocabulary's product: ns to read its weights."""
HEAD_TOKEN: Final = 22
"""The vocabulary's product: ns of arithmetic a sampled token."""
ATTENTION_FLOOR: Final = 23
"""Decode attention of a layer: ns that no size undercuts."""
ATTENTION_SEQUENCE: Final = 24
"""Decode attention of a layer: ns a sequence, whatever its length."""
ATTENTION_TOKEN: Final = 25
"""Decode attention of a layer: ns to read one token's keys and values."""
ATTENTION_PAIR: Final = 26
"""Prefill attention of a layer: ns of arithmetic a (query, key) pair."""
ALLREDUCES: Final = 27
"""All-reduces of a layer: 2, or 0 on one rank."""
ALLREDUCE_FLOOR: Final = 28
"""One all-reduce inside a graph: ns that no size undercuts."""
ALLREDUCE_TOKEN: Final = 29
"""One all-reduce: ns a token's hidden state."""
ALLREDUCE_BEND: Final = 30
"""Exponent that joins floor and transfer."""
ALLREDUCE_EAGER_FLOOR: Final = 31
"""One all-reduce outside a graph: ns that no size undercuts."""
ALLTOALLS: Final = 32
"""Expert exchanges of a layer: 2 (dispatch, combine), or 0 without expert ranks."""
ALLTOALL_FLOOR: Final = 33
"""One expert exchange: ns that no size undercuts."""
ALLTOALL_TOKEN: Final = 34
"""One expert exchange: ns a token."""
EXPERTS: Final = 35
"""Experts of a layer; 0 in a dense model."""
EXPERTS_ACTIVE: Final = 36
"""Experts a token visits."""
EXPERT_READ: Final = 37
"""Experts of a layer: ns a rank needs to read all of its own."""
EXPERT_TOKEN: Final = 38
"""Experts of a layer: ns of arithmetic a token on its rank, load spread evenly."""
STAGE_LINK_FLOOR: Final = 39
"""One hand-over between stages: ns that no size undercuts."""
STAGE_LINK_TOKEN: Final = 40
"""One hand-over between stages: ns a token."""
HOST_STEP: Final = 41
"""Host: ns a step costs beyond the GPU's (scheduler, launch, sampling, output)."""
HOST_SEQUENCE: Final = 42
"""Host: ns a running sequence adds to a step."""
HOST_CHUNK: Final = 43
"""Host: ns a step that prefills costs on top (input preparation, launch outside a graph)."""
HOST_LAUNCH: Final = 44
"""Host: ns it needs to launch a step's kernels, beside the GPU: the step cannot be shorter."""
DRAFT_TOKENS: Final = 45
"""Tokens drafted a sequence and step; 0 without speculative decoding."""
DRAFT_STEP: Final = 46
"""Ns to draft one token for the whole batch."""
JITTER_SIGMA: Final = 47
"""Sigma of the lognormal factor on each step."""
RANK_WAIT: Final = 48
"""What ranks wait for the slowest of healthy peers, over their compute time."""
STALL_CHANCE: Final = 49
"""Chance of a step to be held up by the host."""
STALL_MEAN: Final = 50
"""Mean ns of such a hold-up (exponential)."""
SIZE: Final = 52
"""Length of the array; what lies past the last name is spare, and 0."""
