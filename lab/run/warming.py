"""Compiled code loaded, or at the very first run on a machine compiled: about a minute."""

from tailburn.lab.fleet import standard
from tailburn.lab.run.motion import Motion, Plan
from tailburn.lab.run.telling import Telling
from tailburn.lab.run.traffic import Traffic
from tailburn.lab.telemetry.spans.of_fleet import wiring_of
from tailburn.lab.workload import named

_LITTLE_NS = 30 * 10**9


def warm_up() -> None:
    """Run a small fleet for a moment, all the way to bodies."""
    fleet = standard(2.0, clients=200)
    plan = Plan(fleet, (Traffic(named("azure-conv"), 2.0),), seed=1)
    telling = Telling(plan, wiring_of(fleet), epoch_unix_ns=0)
    for _ in telling.of(Motion(plan).advance(_LITTLE_NS)):
        pass
    for _ in telling.finish():
        pass
