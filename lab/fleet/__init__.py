"""What a fleet is: frozen values of its parts, and the arrays the event loop reads.

`standard(per_s)` and `split(per_s)` are fleets to start from; change them with
`dataclasses.replace`. `arrays_of(fleet)` checks and compiles.
"""

from tailburn.lab.fleet.arrays import EDGES, FleetArrays, arrays_of
from tailburn.lab.fleet.errors import FleetError
from tailburn.lab.fleet.parts import (
    Adapters,
    ClientGroup,
    Clients,
    Fleet,
    Gateway,
    Host,
    Network,
    Offload,
    Policy,
    Pool,
    Replica,
    Role,
    Route,
    Router,
    Scheduler,
    Service,
    Tokenizer,
    Zone,
)
from tailburn.lab.fleet.presets import split, standard

__all__ = [
    "EDGES",
    "Adapters",
    "ClientGroup",
    "Clients",
    "Fleet",
    "FleetArrays",
    "FleetError",
    "Gateway",
    "Host",
    "Network",
    "Offload",
    "Policy",
    "Pool",
    "Replica",
    "Role",
    "Route",
    "Router",
    "Scheduler",
    "Service",
    "Tokenizer",
    "Zone",
    "arrays_of",
    "split",
    "standard",
]
