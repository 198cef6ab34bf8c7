"""The engines of a fleet: continuous batching as vLLM V1 does it, compiled.

The caller owns time. It holds `Engines` (see `engine_layout`), adds requests, and calls
`engine_step` for a replica whenever `rep[replica, NEXT_NS]` is due; each call ends the step
that ran, begins the next one, and returns when to call again (NEVER: idle). `engine_add` may
bring NEXT_NS forward, so an event loop compares what it popped with NEXT_NS. What happened
lies in `events` and in the slots' instants.

    slot = engine_add(engines, replica, now_ns, owner, prompt, output, prefix, prefix_tokens,
                      tail, lora, priority, structured, source, flags, tokens_at)
    next_ns = engine_step(engines, replica, now_ns)
    engine_abort(engines, slot, now_ns)         # also while WAITING, BLOCKED, HELD
    engine_forget(engines, slot)                # after DONE was read
    engine_down(engines, replica, now_ns)       # it dies: all its slots are DONE as LOST
    engine_up(engines, replica, now_ns, ready_ns)   # empty caches, counters at 0, loads until
    engine_set_blocks(engines, replica, blocks)
"""
