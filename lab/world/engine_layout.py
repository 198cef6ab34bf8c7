"""How the engines of a fleet lie in memory: nine arrays that all compiled functions share.

`Engines` is a tuple of arrays, so that an event loop holds hundreds of replicas without an
object for any. Rows of `seq` are requests inside an engine, by *slot*; rows of `rep` and
`real` are replicas. Times are int64 ns of true time, -1 did not happen. The names below are
the columns; the caller may read all of them and write those marked *set*.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailburn.lab.physics import coef
from tailburn.lab.physics.step import PARTS

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

NEVER: Final = -1
FOREVER: Final = np.iinfo(np.int64).max // 2

# States of a slot ------------------------------------------------------------------------
FREE: Final = 0
WAITING: Final = 1
"""In the scheduler's queue."""
BLOCKED: Final = 2
"""Out of the queue until READY_NS: KV load or transfer, adapter, grammar (`WAITS_FOR`)."""
RUNNING: Final = 3
HELD: Final = 4
"""Prefill of a split request is done; its blocks wait for the decode side to pull them."""
DONE: Final = 5
"""Over, blocks given back; the caller reads it and calls `engine_forget`."""

# What a BLOCKED slot waits for.
FOR_NOTHING: Final = 0
FOR_LOAD: Final = 1
FOR_TRANSFER: Final = 2
FOR_ADAPTER: Final = 3
FOR_GRAMMAR: Final = 4

# How a DONE slot ended (END_KIND).
FINISHED: Final = 1
ABORTED: Final = 2
LOST: Final = 3
"""Its replica died, or the replica that held its prefill."""
REFUSED: Final = 4
"""Can never fit into the KV blocks."""

# Columns of seq (one row a slot) -----------------------------------------------------------
STATE: Final = 0
REPLICA: Final = 1
OWNER: Final = 2
"""*set* Whatever number the caller wants back."""
PROMPT: Final = 3
OUTPUT: Final = 4
"""Output tokens after which it is over: min(output, max_tokens); 1 for a split prefill."""
LORA: Final = 5
PRIORITY: Final = 6
STRUCTURED: Final = 7
PREFIX: Final = 8
PREFIX_TOKENS: Final = 9
TAIL: Final = 10
"""Id under which its whole context is found again (the session, or unique); 0 never."""
SOURCE: Final = 11
"""Slot that holds its prefill on another replica; -1 none."""
SPLIT: Final = 12
"""1: a split prefill, which is HELD at its end."""
WANT_FIRST: Final = 13
"""1: an event FIRST is wanted."""
TOKENS_AT: Final = 14
"""*set at add* Where in `tokens` its token instants go; -1 nowhere."""
COMPUTED: Final = 15
"""Tokens whose KV is in blocks (while RUNNING: see RUN_LEN)."""
MADE: Final = 16
"""Output tokens made (while RUNNING: OUTPUT less RUN_DUE)."""
OWN: Final = 17
"""Blocks of its own, not shared."""
BASE_ENTRY: Final = 18
BASE_BLOCKS: Final = 19
"""Blocks it shares of the prefix's entry."""
TAIL_ENTRY: Final = 20
TAIL_BLOCKS: Final = 21
"""Blocks it shares of the tail's entry."""
WAITS_FOR: Final = 22
READY_NS: Final = 23
NEXT: Final = 24
PREV: Final = 25
ORDER: Final = 26
"""Rank by arrival in its replica; smaller came first."""
END_KIND: Final = 27
QUEUED_NS: Final = 28
"""Seen by the scheduler: it takes what was added between two steps."""
SCHEDULED_NS: Final = 29
PREFILL_END_NS: Final = 30
"""First token computed: the end of the step that made it."""
LAST_NS: Final = 31
"""Last token computed so far (while RUNNING: see RUN_LAST)."""
END_NS: Final = 32
LOAD_START_NS: Final = 33
LOAD_END_NS: Final = 34
TRANSFER_START_NS: Final = 35
TRANSFER_END_NS: Final = 36
LORA_START_NS: Final = 37
LORA_END_NS: Final = 38
ITL_MAX_NS: Final = 39
"""Longest gap between tokens; -1 under two (while RUNNING: see RUN_ITL)."""
PREEMPTIONS: Final = 40
CACHED: Final = 41
"""Prompt tokens found in a cache at its first admission, offloaded ones included."""
LOADED: Final = 42
"""Those of CACHED that came from the offload tier."""
DECODE_STEPS: Final = 43
"""Steps that gave it tokens (while RUNNING: see RUN_STEPS)."""
ADAPTER_AT: Final = 44
"""Index of the adapter slot it holds; -1 none."""
PEAK: Final = 45
"""Most tokens whose KV it ever had: what it computes again below is waste."""
SERIAL: Final = 46
"""Which use of the slot this is."""
SOURCE_SERIAL: Final = 47
ADDED_NS: Final = 48
"""When `engine_add` was called; the engine's own clock knows only QUEUED_NS."""
SEQ: Final = 50

# Columns of rep (one row a replica) --------------------------------------------------------
ROLE: Final = 0
"""*set* 0 whole, 1 prefill, 2 decode: for the caller; engines obey SPLIT and SOURCE."""
NEXT_NS: Final = 1
"""When `engine_step` must be called next; -1: idle until something is added."""
BUSY: Final = 2
"""1 while a step runs (until NEXT_NS)."""
READY_AT_NS: Final = 3
"""*set* No step before it: the model loads. FOREVER: down."""
MAX_SEQS: Final = 4
"""*set* max_num_seqs."""
TOKEN_BUDGET: Final = 5
"""*set* max_num_batched_tokens."""
CHUNK_LIMIT: Final = 6
"""*set* long_prefill_token_threshold; 0 none."""
POLICY: Final = 7
"""*set* 0 first come first served, 1 by priority."""
BLOCK_SIZE: Final = 8
BLOCKS: Final = 9
"""KV blocks in all; change with `engine_set_blocks`."""
CLEAN: Final = 10
"""Blocks that hold nothing to be found again."""
CACHE: Final = 11
"""Blocks unused but with content, in the LRU (they are free too)."""
CACHE_LIMIT: Final = 12
"""*set* Most CACHE may hold (prefix_cache_blocks); 0: no prefix caching."""
WATERMARK: Final = 13
"""*set* Blocks that an admission must leave free."""
RESERVE: Final = 14
"""*set* 1: admit only when the whole prompt fits, not its first chunk alone."""
MODEL_LEN: Final = 15
"""*set* max_model_len in tokens; 0 no limit."""
RUNNING_COUNT: Final = 16
WAITING_COUNT: Final = 17
"""In the queue and BLOCKED together, as vllm:num_requests_waiting counts."""
BLOCKED_COUNT: Final = 18
HELD_COUNT: Final = 19
BLOCKED_HEAD: Final = 20
BLOCKED_MIN_NS: Final = 21
LRU_HEAD: Final = 22
LRU_TAIL: Final = 23
ENTRY_FREE: Final = 24
ORDERS: Final = 25
FRONT_ORDER: Final = 26
RANDOM: Final = 27
"""*set* Seed, then state, of the replica's own draws."""
TRACED: Final = 28
"""Running slots with TOKENS_AT >= 0."""
LORA_SLOTS: Final = 29
"""*set* max_loras, at most the layout's."""
LORA_COLD_NS: Final = 30
"""*set* Load of an adapter that the host does not hold."""
LORA_WARM_NS: Final = 31
"""*set* Load of an adapter that the host holds."""
LORA_HOST: Final = 32
"""*set* Adapters the host holds (max_cpu_loras), at most the layout's."""
LORA_BLOCKING: Final = 33
"""*set* 1: a load holds up the step of all; 0: only its requests."""
GRAMMAR_NS: Final = 34
"""*set* Compile time of a structured request's grammar; 0 none."""
GRAMMAR_WORKERS: Final = 35
"""*set* Grammars compiled at once."""
GRAMMAR_FREE_NS: Final = 36
PAUSE_NS: Final = 37
"""*set* Length of a pause of one rank that holds up all (GC); 0 none."""
PAUSE_EVERY_NS: Final = 38
"""*set* Time between pauses."""
PAUSE_NEXT_NS: Final = 39
"""*set* Next pause is due."""
COMPILE_NS: Final = 40
"""*set* Extra of a step whose shape was not seen before; 0 none."""
SHAPES: Final = 41
"""*set* Bits of the shapes seen; 0 forgets."""
TIER_BLOCKS: Final = 42
"""*set* Blocks of the offload tier; 0: none."""
TIER_USED: Final = 43
LOAD_FREE_NS: Final = 44
TRANSFER_FREE_NS: Final = 45
STEP_START_NS: Final = 46
TIER_HEAD: Final = 47
TIER_TAIL: Final = 48
KV_BYTES: Final = 49
"""*set* Bytes of one token's KV, all layers and ranks."""
LOAD_LATENCY_NS: Final = 50
"""*set* A KV load takes at least this."""
TRANSFER_LATENCY_NS: Final = 51
"""*set* A KV transfer takes at least this."""
ASYNC: Final = 52
"""*set* 1: a step is scheduled while the one before it runs (vLLM since 0.14), 0: after it."""
NOW: Final = 53
"""Which of the two plans below is the step that runs: 0 or 1."""
SERIALS: Final = 54
PLAN: Final = 55
"""Two plans of PLAN_SIZE columns each: what a step carries."""
PLAN_BATCH: Final = 0
"""Sequences decoded."""
PLAN_KV: Final = 1
"""Their tokens of context."""
PLAN_PREFILL: Final = 2
"""Tokens of prompts."""
PLAN_PAIRS: Final = 3
"""(Query, key) pairs of these."""
PLAN_EXTRA: Final = 4
"""Ns of adapters loaded for it."""
PLAN_SIZE: Final = 5
WAIT_HEAD: Final = PLAN + 2 * PLAN_SIZE
"""First of PRIORITIES heads of the waiting lists."""
PRIORITIES: Final = 8
WAIT_TAIL: Final = WAIT_HEAD + PRIORITIES
# Counters: they only grow, as Prometheus counters do; `engine_start` sets them to 0.
COUNTERS: Final = WAIT_TAIL + PRIORITIES
STEPS: Final = COUNTERS
N_ADDED: Final = COUNTERS + 1
N_FINISHED: Final = COUNTERS + 2
N_ABORTED: Final = COUNTERS + 3
N_PREEMPTIONS: Final = COUNTERS + 4
PROMPT_TOKENS: Final = COUNTERS + 5
"""vllm:prompt_tokens: of a request when its prefill ends, found ones included."""
GENERATION_TOKENS: Final = COUNTERS + 6
COMPUTED_TOKENS: Final = COUNTERS + 7
"""Tokens that steps carried, recomputed ones included."""
PREFIX_QUERIES: Final = COUNTERS + 8
"""Tokens looked up in the prefix cache (vllm:prefix_cache_queries)."""
PREFIX_HITS: Final = COUNTERS + 9
"""Tokens found in it."""
TIER_QUERIES: Final = COUNTERS + 10
"""Tokens looked up in the offload tier (vllm:external_prefix_cache_queries)."""
TIER_HITS: Final = COUNTERS + 11
DRAFTED: Final = COUNTERS + 12
"""Tokens drafted (vllm:spec_decode_num_draft_tokens)."""
ACCEPTED: Final = COUNTERS + 13
"""Drafted tokens accepted."""
DRAFTS: Final = COUNTERS + 14
EVICTED: Final = COUNTERS + 15
"""Cached blocks overwritten."""
LOADED_BYTES: Final = COUNTERS + 16
TRANSFERRED_BYTES: Final = COUNTERS + 17
LORA_LOADS: Final = COUNTERS + 18
PAUSES: Final = COUNTERS + 19
COMPILES: Final = COUNTERS + 20
PREFILL_STEPS: Final = COUNTERS + 21
"""Steps that carried part of a prompt."""
RECOMPUTED_TOKENS: Final = COUNTERS + 22
"""Of COMPUTED_TOKENS, those that had been computed before a preemption."""
BUSY_NS: Final = COUNTERS + 23
"""Time in steps."""
BATCH_SUM: Final = COUNTERS + 24
"""Sequences decoded, summed over steps."""
REP: Final = COUNTERS + 28

# Columns of real (one row a replica, float64) ----------------------------------------------
COEF: Final = 0
"""*set* The coefficients and knobs of `lab.physics` (KNOB_INDEX counts from here)."""
LOAD_GBPS: Final = coef.SIZE
"""*set* Gigabytes/s of the offload tier."""
TRANSFER_GBPS: Final = coef.SIZE + 1
"""*set* Gigabytes/s of the prefill to decode hand-off."""
TRANSFER_FLOW_GBPS: Final = coef.SIZE + 2
"""*set* Gigabytes/s of one hand-off at the most; 0: as the link has room."""
LORA_SIGMA: Final = coef.SIZE + 3
"""*set* Spread of adapters' loads around their median (lognormal)."""
PARTS_NOW: Final = coef.SIZE + 4
"""Parts of the step that runs or ran last, ns (PART_NAMES of `lab.physics.step`)."""
PARTS_SUM: Final = PARTS_NOW + PARTS
"""Parts of all steps, ns: a counter."""
EXTRA_SUM: Final = PARTS_SUM + PARTS
"""Ns that pauses, compiles, adapters and jitter added to steps: a counter."""
REAL: Final = EXTRA_SUM + 1

# Rows of run[replica]: one column a running sequence, in the order of the running list ------
RUN_SEQ: Final = 0
RUN_LEN: Final = 1
"""Tokens with KV, those of scheduled steps included."""
RUN_TODO: Final = 2
"""Tokens known but not scheduled: 1 when decoding."""
RUN_ROOM: Final = 3
"""Tokens its blocks still take."""
RUN_LEFT: Final = 4
"""Output tokens not scheduled yet."""
RUN_DUE: Final = 5
"""Output tokens not made yet."""
RUN_NEW: Final = 6
"""Tokens of it in the step scheduled last."""
RUN_EMIT: Final = 7
"""Two rows: output tokens that plan 0 and plan 1 will make."""
RUN_LAST: Final = 9
RUN_ITL: Final = 10
RUN_STEPS: Final = 11
RUN: Final = 12

# Columns of entries[replica]: contents that can be found again, and segments of the LRU -----
E_KEY: Final = 0
"""Id of the prefix or tail; 0: blocks of no further use."""
E_CHAIN: Final = 1
E_BLOCKS: Final = 2
"""Blocks with its content: E_HELD + E_IDLE."""
E_HELD: Final = 3
"""Blocks in use by running sequences."""
E_IDLE: Final = 4
"""Blocks of it in the LRU."""
E_REFS: Final = 5
E_BASE: Final = 6
E_BASE_BLOCKS: Final = 7
"""A tail continues the first blocks of another entry."""
E_BEFORE: Final = 8
E_AFTER: Final = 9
E_TIER: Final = 10
"""Blocks of it in the offload tier, from its start."""
E_TIER_BEFORE: Final = 11
E_TIER_AFTER: Final = 12
E_SERIAL: Final = 13
"""Which of its uses this is: a tail may refer to one that is gone."""
E_BASE_SERIAL: Final = 14
ENTRY: Final = 15

# Columns of adapters[replica] ----------------------------------------------------------------
A_ID: Final = 0
A_REFS: Final = 1
A_USED_NS: Final = 2
A_READY_NS: Final = 3
A_HOST_ID: Final = 4
"""Adapters of the host's own memory lie in the same rows."""
A_HOST_USED_NS: Final = 5
ADAPTER: Final = 6

# Events (rows of `events`, after the count at [0, 0]) ------------------------------------------
EVENT_FIRST: Final = 1
"""The slot's first token is made."""
EVENT_DONE: Final = 2
"""The slot is DONE: read it, then `engine_forget`."""
EVENT_HELD: Final = 3
"""The slot is HELD: add the decode side with SOURCE = this slot, or `engine_abort` it."""


class Engines(NamedTuple):
    """The arrays of all replicas of a fleet.

    `free` is the stack of free slots, its depth at [0]; `tokens` takes token instants where
    asked; `events` holds (kind, slot, ns) from row 1, their number at [0, 0]: the caller
    empties it after each call by writing 0 there.
    """

    seq: I64
    rep: I64
    real: F64
    run: I64
    entries: I64
    buckets: I64
    adapters: I64
    events: I64
    free: I64
    tokens: I64
