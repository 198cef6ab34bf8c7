"""Everything else of a request: lengths, prefix, session, and how it wants its answer.

Draw number j of a client's n-th request in a block is fixed by the seed, so a change of
one knob leaves all other draws as they were. Conversations are laid over arrivals that
are there already: a client has slots, an arrival looks at five and carries on the longest
conversation that fits in its prompt, or begins one. So rates and lengths stay as asked.
"""

import math

import numpy as np

from tailburn.lab.compiled import compiled, inlined
from tailburn.lab.workload.changes import KNOB
from tailburn.lab.workload.draws import key_of, name_of, unit
from tailburn.lab.workload.kinds import N_OF
from tailburn.lab.workload.lengths import length_at

DETAILS = np.uint64(2)
TEMPLATES = np.uint64(3)
_CANDIDATES = 5
# Draws of one request, by number.
_D_PROMPT, _D_OUTPUT, _D_STREAM, _D_RAG, _D_STRUCTURED, _D_LORA, _D_ADAPTER, _D_TEMPLATE = (
    np.uint64(i) for i in range(8)
)
_D_LONG, _D_GOES_ON, _D_SLOT = (np.uint64(i) for i in range(8, 11))

K_PROMPT, K_OUTPUT, K_FLOOR = KNOB["prompt_factor"], KNOB["output_factor"], KNOB["prompt_floor"]
K_LONG, K_LONG_TOKENS = KNOB["long_share"], KNOB["long_tokens"]
K_STREAMED, K_STRUCTURED, K_RAG = KNOB["streamed"], KNOB["structured"], KNOB["rag"]
K_LORA, K_ADAPTERS, K_PRIORITY = KNOB["lora"], KNOB["adapters"], KNOB["priority"]

N_TYPE, N_PRIORITY, N_STREAMED = N_OF["request_type"], N_OF["priority"], N_OF["streamed"]
N_RAG, N_STRUCTURED = N_OF["rag"], N_OF["structured"]
N_LORA, N_ADAPTERS, N_TEMPLATES = N_OF["lora"], N_OF["adapters"], N_OF["templates"]
N_TURNS, N_LATER, N_SYSTEM = N_OF["turns"], N_OF["later_turns"], N_OF["system_share"]


@inlined
def _either(knob: float, kind: float) -> float:
    return knob if knob >= 0.0 else kind


@compiled
def tilted(u: float, lean: float, weight: float) -> float:
    """u moved towards the client's own level, uniform over clients still (a normal copula)."""
    if weight == 0.0:
        return u
    z = weight * lean + math.sqrt(1.0 - weight * weight) * normal_at(u)
    return min(max(0.5 * math.erfc(-z / math.sqrt(2.0)), 1e-12), 1.0 - 1e-12)


@compiled
def normal_at(u: float) -> float:
    """The u-quantile of the standard normal, within 5e-4 (Abramowitz and Stegun 26.2.23)."""
    t = math.sqrt(-2.0 * math.log(min(u, 1.0 - u)))
    top = 2.515517 + t * (0.802853 + t * 0.010328)
    z = t - top / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return -z if u < 0.5 else z


@compiled
def dress(
    seed: np.uint64,
    block: int,
    first: np.ndarray,
    at: np.ndarray,
    rank: np.ndarray,
    given: np.ndarray,
    edges_ns: np.ndarray,
    knobs: np.ndarray,
    kinds: np.ndarray,
    kind_of: np.ndarray,
    tenant_of: np.ndarray,
    route_of: np.ndarray,
    model_of: np.ndarray,
    max_tokens_of: np.ndarray,
    prompts: np.ndarray,
    outputs: np.ndarray,
    prompt_row: np.ndarray,
    output_row: np.ndarray,
    lean: np.ndarray,
    lean_weight: float,
    prompt_cap: int,
    slot_first: np.ndarray,
    slot_session: np.ndarray,
    slot_turns: np.ndarray,
    slot_tokens: np.ndarray,
    out: tuple[np.ndarray, ...],
) -> None:
    """Fills `out` (the columns of Requests in order, at `rank`) and moves the slots on.

    first, at: arrivals by client; given: [request, 2] prompt and output tokens as recorded,
    -1 or empty where to be drawn. slot_turns: turns so far, 0 for a conversation that is over.
    """
    (o_at, o_client, o_tenant, o_route, o_model, o_lora, o_prompt, o_output, o_max, o_prefix,
     o_prefix_tokens, o_streamed, o_priority, o_type, o_rag, o_structured,
     o_session) = out  # fmt: skip
    segments = len(edges_ns) - 1
    for c in range(len(first) - 1):
        if first[c] == first[c + 1]:
            continue
        key = key_of(key_of(key_of(seed, DETAILS), np.uint64(block)), np.uint64(c))
        kind = kinds[kind_of[c]]
        family = key_of(
            key_of(key_of(seed, TEMPLATES), np.uint64(tenant_of[c])), np.uint64(kind_of[c])
        )
        p_row, o_row = prompts[prompt_row[c]], outputs[output_row[c]]
        system = kind[N_SYSTEM] * length_at(p_row, 0.5)
        slots = slot_first[c + 1] - slot_first[c]
        s = 0
        for n in range(first[c], first[c + 1]):
            while s + 1 < segments and at[n] >= edges_ns[s + 1]:
                s += 1
            knob = knobs[s, c]
            mine = key_of(key, np.uint64(n - first[c]))
            if len(given) and given[n, 0] >= 0:
                wanted, made = float(given[n, 0]), float(given[n, 1])
            else:
                wanted = length_at(p_row, tilted(unit(mine, _D_PROMPT), lean[c], lean_weight))
                made = length_at(o_row, tilted(unit(mine, _D_OUTPUT), lean[c], lean_weight))
            wanted = max(wanted * knob[K_PROMPT], knob[K_FLOOR])
            if knob[K_LONG] > 0.0 and unit(mine, _D_LONG) < knob[K_LONG]:
                wanted = knob[K_LONG_TOKENS]
            prompt = max(min(int(wanted + 0.5), prompt_cap), 1)
            limit = max_tokens_of[c]
            output = max(min(int(made * knob[K_OUTPUT] + 0.5), limit), 1)

            r = rank[n]
            session, prefix, shared = np.int64(0), np.int64(0), 0
            if slots > 0:
                best, best_tokens, free, slot = -1, 0, -1, -1
                for k in range(_CANDIDATES):
                    u = unit(mine, _D_SLOT + np.uint64(k))
                    slot = slot_first[c] + int(slots * u * math.sqrt(u))
                    if slot_turns[slot] == 0:
                        free = slot
                    elif best_tokens < slot_tokens[slot] < prompt:
                        best, best_tokens = slot, slot_tokens[slot]
                if best >= 0:
                    session, turn = slot_session[best], slot_turns[best] + 1
                    prefix, shared = session, best_tokens
                else:
                    best, turn = (free if free >= 0 else slot), 1
                    session = name_of(mine, DETAILS)
                goes_on = kind[N_TURNS] if turn == 1 else kind[N_LATER]
                slot_session[best] = session
                slot_tokens[best] = prompt + output
                slot_turns[best] = turn if unit(mine, _D_GOES_ON) < goes_on else 0
            if prefix == 0 and system >= 1.0:
                u = unit(mine, _D_TEMPLATE)
                which = np.uint64(kind[N_TEMPLATES] * u * u * u)
                length = system * (0.5 + unit(family, which))
                shared = min(int(length), prompt - 1)
                if shared > 0:
                    prefix = name_of(family, which)

            o_at[r] = at[n]
            o_client[r] = c
            o_tenant[r] = tenant_of[c]
            o_route[r] = route_of[c]
            o_model[r] = model_of[c]
            o_lora[r] = -1
            if unit(mine, _D_LORA) < _either(knob[K_LORA], kind[N_LORA]):
                u = unit(mine, _D_ADAPTER)
                if knob[K_ADAPTERS] >= 0.0:
                    o_lora[r] = int(knob[K_ADAPTERS] * u)
                else:
                    o_lora[r] = int(kind[N_ADAPTERS] * u * u * u)
            o_prompt[r] = prompt
            o_output[r] = output
            o_max[r] = limit
            o_prefix[r] = prefix
            o_prefix_tokens[r] = shared
            o_streamed[r] = unit(mine, _D_STREAM) < _either(knob[K_STREAMED], kind[N_STREAMED])
            o_priority[r] = _either(knob[K_PRIORITY], kind[N_PRIORITY])
            o_type[r] = kind[N_TYPE]
            o_rag[r] = unit(mine, _D_RAG) < _either(knob[K_RAG], kind[N_RAG])
            o_structured[r] = unit(mine, _D_STRUCTURED) < _either(
                knob[K_STRUCTURED], kind[N_STRUCTURED]
            )
            o_session[r] = session
