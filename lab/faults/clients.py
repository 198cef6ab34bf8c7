"""Faults of one client: its own program holds requests up, or asks for whole answers."""

from typing import Final

from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Site
from tailburn.lab.fleet import Fleet, arrays_of

LARGEST: Final = "0"
"""The largest client of a workload is its first, and the fleet's client of that number."""


def _largest(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    """The names that the largest client has in telemetry: its pod, its service; its tenant."""
    groups = fleet.clients.groups
    group = groups[int(arrays_of(fleet).client_group[int(LARGEST)])]
    return {"client": (f"{group.name}-{LARGEST}", group.name), "tenant": (f"tenant-{LARGEST}",)}


def _program(site: Site) -> Broken:
    """One client's event loop is late, and its reader slow."""
    late_s, tokens_s = site.by((0.15, 80.0), (0.5, 50.0), (1.5, 30.0))
    scope = f"client:{LARGEST}"
    return Broken(
        (
            site.turn("client_loop_delay_s", late_s, scope),
            site.turn("client_read_tokens_s", tokens_s, scope),
        ),
        affected=_largest(site.fleet),
    )


S27 = Scenario(
    id="S27",
    name="slow-client",
    title="One client's own program is slow: its event loop and its reader",
    broken="of the largest client: event loop late by 0.15, 0.5, 1.5 s, at each request's start "
    "and again at its first and last byte; it reads 80, 50, 30 tokens/s at most (weak, medium, "
    "strong)",
    expect="That client's TTFT up, between its start and its own slot and at the first byte; what "
    "the gateway and the engine see of its requests is normal, and so is every other client. Its "
    "answers end late, and send buffers to it fill.",
    why="A request that waits for its event loop has not left yet; nobody but the client knows of "
    "it. A late loop reads bytes that came long ago. Its pool of connections is not full: what "
    "waits for a connection would look the same.",
    confusable=(
        Confusable("S23", "a buffering gateway hits all of its clients; here one"),
        Confusable("S29", "a slow way hits all clients of a zone, between client and gateway"),
        Confusable("S34", "there nothing waits before the request leaves, and streamed is false"),
    ),
    verdict="HOP client",
    step="hop",
    hop="client",
    cause="client program",
    breaks=_program,
)  # fmt: skip


def _whole(site: Site) -> Broken:
    """One client asks for whole answers in place of streams."""
    share = site.by(0.3, 0.6, 1.0)
    scope = f"client:client-{LARGEST}"
    return Broken(
        changes=(site.change("streamed", 1.0 - share, scope),),
        affected=_largest(site.fleet),
    )


S34 = Scenario(
    id="S34",
    name="not-streaming",
    title="A client stops streaming: it waits for whole answers",
    broken="30, 60, 100 % of the largest client's requests ask for a whole answer (weak, medium, "
    "strong)",
    expect="First byte of these is their end; the share of streamed requests is down for that "
    "client. Engine's TTFT and TPOT, and every other client, as ever; E2E too.",
    why="stream: false. The engine makes the same tokens at the same time.",
    confusable=(
        Confusable("S23", "a buffering gateway holds the streams of all of its clients; here one "
                   "client does not ask for streams"),
        Confusable("S27", "a slow client's requests wait before they leave; these do not"),
    ),
    verdict="HOP client (not streaming)",
    step="hop",
    hop="client",
    cause="client does not stream",
    breaks=_whole,
)  # fmt: skip

CLIENTS: Final = (S27, S34)
