"""Controls: what looks like a fault and is none. Nobody should be woken."""

from math import ceil
from typing import Final

import numpy as np

from tailburn.lab.faults.capacity import roomy, waves
from tailburn.lab.faults.needs import for_mondays
from tailburn.lab.faults.scenario import Broken, Confusable, Scenario, Shape, Site
from tailburn.lab.workload import Change
from tailburn.lab.workload.figures import FIGURES

S: Final = 10**9
HOUR_NS: Final = 3_600 * S
STEP_NS: Final = 300 * S
NIGHT_STEP_NS: Final = 600 * S
PROMPTS_GROW: Final = 2.5
ANSWERS_GROW: Final = 4.0


def week_level(at_ns: int) -> float:
    """Load of an hour over the week's mean, by Azure's week; the epoch is a Monday's 00:00."""
    figures = FIGURES["azure-conv"]
    hour = at_ns // HOUR_NS
    return figures.hours[hour % 24] * figures.days[hour // 24 % 7]


def monday_level(through: float) -> float:
    """Load of a Monday from 03:00 (0) to 14:00 (1), over the week's mean."""
    return week_level(int((3.0 + 11.0 * through) * HOUR_NS))


def _monday(site: Site) -> Broken:
    """The rise of a Monday's morning in the site's time, whatever the hour brings by itself."""
    reached = site.by(0.85, 0.93, 1.0)
    changes = []
    for at_ns in range(site.start_ns, site.end_ns, STEP_NS):
        until = min(at_ns + STEP_NS, site.end_ns)
        through = min((at_ns - site.start_ns) / (site.end_ns - site.start_ns) / 0.6, 1.0)
        factor = reached * monday_level(through) / week_level(at_ns)
        changes.append(Change("arrival_factor", factor, at_ns, until))
    return Broken(changes=tuple(changes))


N1 = Scenario(
    id="N1",
    name="monday-ramp",
    title="A Monday morning: load rises to the week's highest, as every week",
    broken="nothing; arrivals follow a Monday's curve from 03:00 to 14:00 (Azure's own), drawn "
    "together into the first 60 % of the time and then held, to 85, 93, 100 % of its height (weak, "
    "medium, strong), on a fleet that is sized for the busiest minutes of that",
    expect="TTFT and TPOT up with the load (at p99 x 1.2 to 1.7 of Sunday's noon); offered load "
    "within the range of the last week, steps as long as their batch predicts, SLOs met in each "
    "wave of the traffic.",
    why="The fleet is sized for its Mondays, and for their waves: a minute brings up to twice its "
    "hour's load.",
    confusable=(
        Confusable("S1", "a surge leaves the range of the last seven days; this does not"),
    ),
    verdict="no page",
    step="none",
    hop="none",
    cause="none: Monday",
    breaks=_monday,
    base=for_mondays,
    pages=False,
    from_monday=True,
)


def _drift(knob: str, factor: float, start_ns: int, end_ns: int) -> tuple[Change, ...]:
    """A factor that grows over the first half of the time, step by step, and stays."""
    steps = 10
    half = (end_ns - start_ns) // 2
    changes = []
    for i in range(steps):
        start = start_ns + half * i // steps
        until = start_ns + half * (i + 1) // steps if i < steps - 1 else end_ns
        changes.append(Change(knob, 1.0 + (factor - 1.0) * (i + 1) / steps, start, until))
    return tuple(changes)


def _every_day(knob: str, factor: float) -> Shape:
    """The same once a day, for an hour that the seed draws."""

    def shape(until_ns: int, seed: int) -> tuple[Change, ...]:
        draw = np.random.default_rng(seed)
        changes: list[Change] = []
        for day_ns in range(0, until_ns, 24 * HOUR_NS):
            start = day_ns + int(draw.integers(24)) * HOUR_NS
            changes += _drift(knob, factor, start, start + HOUR_NS)
        return tuple(change for change in changes if change.end_ns <= until_ns)

    return shape


def _longer_prompts(site: Site) -> Broken:
    factor = site.by(1.5, 2.0, PROMPTS_GROW)
    return Broken(changes=_drift("prompt_factor", factor, site.start_ns, site.end_ns))


N2 = Scenario(
    id="N2",
    name="longer-prompts",
    title="Prompts grow: another mix of work",
    broken="nothing; prompts drift to 1.5, 2, 2.5 times their tokens over half the time (weak, "
    "medium, strong), on a fleet with room for it, as they do for an hour of each day before",
    expect="TTFT up with the uncached tokens of a request, prefill as long as they predict; TPOT "
    "up a little by the share of prefill in steps. Arrivals flat; SLOs met that "
    "were made of such days. An SLO without room for it burns, and that is no false page.",
    why="More tokens are more work; nothing does it slower.",
    confusable=(
        Confusable("S7", "a throttled clock prefills the same tokens slower; here the time of a "
                   "token is as ever"),
        Confusable("S15", "lost prefixes raise the computed tokens, not the prompts' own"),
    ),
    verdict="no page; workload shift",
    step="none",
    hop="none",
    cause="none: longer prompts",
    breaks=_longer_prompts,
    base=roomy,
    shape=_every_day("prompt_factor", PROMPTS_GROW),
    pages=False,
)  # fmt: skip


def _longer_outputs(site: Site) -> Broken:
    factor = site.by(2.0, 3.0, ANSWERS_GROW)
    return Broken(changes=_drift("output_factor", factor, site.start_ns, site.end_ns))


N3 = Scenario(
    id="N3",
    name="longer-outputs",
    title="Answers grow: another mix of work",
    broken="nothing; answers drift to 2, 3, 4 times their tokens over half the time (weak, medium, "
    "strong; never above a client's max_tokens), on a fleet with room for it, as they do for an "
    "hour of each day before",
    expect="Batches and E2E up, TTFT about as ever, TPOT up as the batch predicts; SLOs met that "
    "were made of such days.",
    why="Requests stay longer, so more of them decode at once; a step is as long as its batch.",
    confusable=(
        Confusable("S6", "one tenant's long contexts fill the cache; here all tenants' answers are "
                   "longer"),
        Confusable("S33", "there the cap and the number of replicas change; here neither"),
    ),
    verdict="no page; workload shift",
    step="none",
    hop="none",
    cause="none: longer outputs",
    breaks=_longer_outputs,
    base=roomy,
    shape=_every_day("output_factor", ANSWERS_GROW),
    pages=False,
)  # fmt: skip


def _night(site: Site) -> Broken:
    """Next to nobody asks; the few that do come unevenly."""
    per_s = site.by(1.0, 0.5, 0.2)
    changes = [site.change("arrival_factor", 0.0)]
    for number, at_ns in enumerate(range(site.start_ns, site.end_ns, NIGHT_STEP_NS)):
        until = min(at_ns + NIGHT_STEP_NS, site.end_ns)
        rate = per_s * (0.6 if (number + site.seed) % 3 == 0 else 1.2)
        changes.append(Change("added_rate", rate, at_ns, until))
    return Broken(changes=tuple(changes))


N4 = Scenario(
    id="N4",
    name="night-noise",
    title="A night: too few requests to say anything of their tail",
    broken="nothing; 1, 0.5, 0.2 requests/s in the mean (weak, medium, strong), in place of what "
    "the hour would bring",
    expect="p99 of five minutes jumps twofold from one to the next: it is the largest or second "
    "largest of 60 to 300 requests. No hop is slower for the work it did.",
    why="Below 300 requests in a window no upper bound of its p99 exists.",
    confusable=(
        Confusable("S31", "a slow hop would be slow for its own span; here long prompts are long"),
    ),
    verdict="no page; insufficient sample",
    step="none",
    hop="none",
    cause="none: night",
    breaks=_night,
    pages=False,
)  # fmt: skip

WARM_START_S: Final = 20.0


def _warm_rolling(site: Site) -> Broken:
    count = len(site.replicas())
    at_once = max(ceil(count / site.by(12, 8, 6)), 1)
    turns, hit = waves(site, WARM_START_S, at_once)
    knobs = (site.turn("weights_warm", 1.0), site.turn("model_load_s", WARM_START_S))
    return Broken((*knobs, *turns), affected={"replica": hit})


N5 = Scenario(
    id="N5",
    name="warm-rolling-restart",
    title="A rolling restart with weights in the page cache",
    broken="every replica drained and restarted in turn, a twelfth, eighth, sixth of them (one at "
    "least) at a time; it serves again 30 s later (weak, medium, strong: the same on small fleets)",
    expect="For a minute a larger batch on the others; the restarted replica's prefix cache begins "
    "empty, so its hit rate dips and comes back within minutes, and its adapters load anew. "
    "Nothing fails.",
    why="Warm weights load at once, and draining lets what runs end first.",
    confusable=(
        Confusable("S35", "cold weights keep a replica away for minutes"),
        Confusable("S15", "an evicting cache stays poor; this one fills again"),
    ),
    verdict="no page; ticket at most",
    step="none",
    hop="none",
    cause="none: rolling restart, warm",
    breaks=_warm_rolling,
    base=roomy,
    pages=False,
)


def _telemetry(site: Site) -> Broken:
    """Clocks, spans, bodies and scrapes: all that can be told wrongly, at once."""
    skew_s, loss, twice, late_s, gaps, slow_s = site.by(
        (0.05, 0.1, 0.02, 0.5, 0.1, 0.5),
        (0.2, 0.3, 0.05, 2.0, 0.3, 2.0),
        (0.5, 0.5, 0.1, 6.0, 0.5, 5.0),
    )
    hosts = [host.name for host in site.fleet.hosts]
    skews = [
        site.told("clock_skew", skew_s if (i + site.seed) % 2 else -skew_s, f"host:{host}")
        for i, host in enumerate(hosts)
    ]
    return Broken(
        telemetry=(
            *skews,
            site.told("span_loss", loss),
            site.told("body_twice", twice),
            site.told("body_late", late_s),
            site.told("scrape_gap", gaps),
            site.told("scrape_late", slow_s),
            site.told("counter_reset", 1.0, "kind:engine"),
            site.told("kv_stuck", 0.0, "kind:engine"),
        ),
        affected={"host": tuple(hosts)},
    )


N6 = Scenario(
    id="N6",
    name="telemetry-faults",
    title="Telemetry tells it wrongly, and the fleet is well",
    broken="clocks of hosts ahead or behind by 50, 200, 500 ms; 10, 30, 50 % of spans lost; 2, 5, "
    "10 % of bodies twice, all late by 0.5, 2, 6 s in the mean; 10, 30, 50 % of scrapes without an "
    "answer, the others late by 0.5, 2, 5 s (none after 10 s); engines' counters begin anew at "
    "the start and their KV usage shows 0 (weak, medium, strong)",
    expect="Spans without parents, negative gaps between hosts, late and double bodies, holes and "
    "jumps in metrics. What clients wait for is what it was.",
    why="Exporters, clocks and exposition are programs too; none of them serves a request.",
    confusable=(
        Confusable("S13", "a full cache preempts; a gauge that shows 0 beside hits and evictions "
                   "is stuck"),
        Confusable("S30", "a skewed clock moves the way there and the way back by the same, with "
                   "opposite signs; a slow path delays both"),
    ),
    verdict="no page; telemetry",
    step="none",
    hop="none",
    cause="none: telemetry",
    breaks=_telemetry,
    pages=False,
)  # fmt: skip

CONTROLS: Final = (N1, N2, N3, N4, N5, N6)
