"""Statistics of public workloads, as figures: what there is to draw from without their files.

Sources: Azure LLM inference traces 2023 (Splitwise, ISCA'24) and 2024 (DynamoLLM, HPCA'25),
CC-BY-4.0; ServeGen (Alibaba Model Studio) and Mooncake FAST'25, Apache-2.0. Day factors are
our own means of the two weeks of May 2024, of which Monday was an ordinary working day.
"""

from dataclasses import dataclass

from tailburn.lab.workload.kinds import AGENT, BATCH, CHAT, COMPLETION, DOCUMENT, Kind
from tailburn.lab.workload.rates import Gate

LEVELS = (0.10, 0.50, 0.90, 0.99)


@dataclass(frozen=True)
class Figures:
    """One workload in figures. Rates in req/s, lengths in tokens at LEVELS."""

    per_s: float
    """The rate at which its burstiness was measured, and which it has unless told otherwise."""
    hours: tuple[float, ...]
    """Relative rate by hour of a weekday, UTC."""
    days: tuple[float, ...]
    """Relative rate by day, Monday first."""
    clients: int
    top_share: float
    carry_90: int
    cv: tuple[float, ...]
    """Coefficient of variation of a client's intervals: p10, p50, p90, p99."""
    gamma_share: float
    prompt: tuple[float, ...]
    prompt_mean: float
    prompt_cap: int
    output: tuple[float, ...]
    output_mean: float
    output_cap: int
    mix: "dict[Kind, float]"
    """Share of the traffic by kind of client."""
    client_weight: float = 0.0
    """Correlation of lengths with their client's own level, which drifts from day to day."""
    active_median: float = 1.0
    """Share of time in which the median client is there at all."""
    noise: "tuple[tuple[float, float], ...]" = ()
    own_noise: "tuple[tuple[float, float], ...]" = ()
    gate: Gate | None = None
    prompt_cap_share: float = 0.0
    """Share of prompts that were cut to the cap; p99 then counts for nothing."""


_CODE_HOURS = (
    0.70, 0.68, 0.64, 0.52, 0.42, 0.34, 0.29, 0.25, 0.23, 0.24, 0.26, 0.38,
    0.70, 1.19, 1.69, 1.82, 1.73, 1.99, 2.19, 2.23, 2.07, 1.52, 1.10, 0.82,
)  # fmt: skip
_CONV_HOURS = (
    0.89, 0.97, 0.95, 0.79, 0.80, 0.87, 1.01, 1.09, 1.11, 1.08, 0.97, 1.03,
    1.15, 1.28, 1.34, 1.24, 1.13, 1.09, 1.08, 1.01, 0.92, 0.77, 0.69, 0.72,
)  # fmt: skip
_CODE_DAYS = (1.224, 1.335, 1.323, 1.283, 1.034, 0.409, 0.392)
_CONV_DAYS = (1.180, 1.223, 1.131, 1.143, 1.028, 0.658, 0.636)
_EVEN_DAYS = (1.0,) * 7
# 1.45 and 2.2 times between peak and trough, at the hours of the conversations.
_LARGE_HOURS = tuple(1.0 + 0.18 * (h - 1.0) / 0.33 for h in _CONV_HOURS)
_SMALL_HOURS = tuple(1.0 + 0.37 * (h - 1.0) / 0.33 for h in _CONV_HOURS)

_CODE_MIX = {COMPLETION: 0.75, AGENT: 0.15, CHAT: 0.10}
_CONV_MIX = {CHAT: 0.62, DOCUMENT: 0.20, AGENT: 0.10, COMPLETION: 0.08}
_POOL_MIX = {CHAT: 0.40, BATCH: 0.20, COMPLETION: 0.20, DOCUMENT: 0.12, AGENT: 0.08}

# ServeGen: hours differ by more than 1.5 times day to day in 38 % (large) and 11 % (small).
_LARGE_NOISE = ((0.22, 3600.0), (0.25, 86_400.0))
_SMALL_NOISE = ((0.10, 3600.0), (0.12, 86_400.0))

FIGURES: "dict[str, Figures]" = {
    "azure-code": Figures(
        per_s=2.57, hours=_CODE_HOURS, days=_CODE_DAYS, clients=60, top_share=0.16, carry_90=30,
        cv=(1.0, 1.2, 3.0, 6.0), gamma_share=0.75,
        prompt=(147, 1469, 5187, 7436), prompt_mean=2048, prompt_cap=7437, prompt_cap_share=0.049,
        output=(7, 13, 55, 251), output_mean=28, output_cap=1024,
        mix=_CODE_MIX, noise=((0.05, 1200.0),), gate=Gate(open_share=0.19, period_s=14.0),
    ),
    "azure-conv": Figures(
        per_s=5.53, hours=_CONV_HOURS, days=_CONV_DAYS, clients=120, top_share=0.16, carry_90=39,
        cv=(0.95, 1.05, 1.2, 1.4), gamma_share=0.75,
        prompt=(207, 1020, 2734, 4142), prompt_mean=1155, prompt_cap=16_384,
        output=(54, 129, 424, 601),
        output_mean=211, output_cap=1500, mix=_CONV_MIX, noise=((0.15, 1200.0),),
        own_noise=((0.5, 600.0),),
    ),
    "servegen-m-large": Figures(
        per_s=196.0, hours=_LARGE_HOURS, days=_EVEN_DAYS, clients=162, top_share=0.16, carry_90=39,
        cv=(0.75, 1.18, 5.2, 13.8), gamma_share=0.79,
        prompt=(74, 601, 2371, 5452), prompt_mean=914, prompt_cap=131_072,
        output=(1, 53, 461, 872),
        output_mean=155, output_cap=8192, mix=_POOL_MIX, client_weight=0.6, active_median=0.07,
        noise=_LARGE_NOISE, own_noise=((0.3, 1200.0), (0.5, 21_600.0)),
    ),
    "servegen-m-mid": Figures(
        per_s=1790.0, hours=_LARGE_HOURS, days=_EVEN_DAYS, clients=109, top_share=0.35, carry_90=20,
        cv=(0.98, 1.32, 5.5, 34.0), gamma_share=0.75,
        prompt=(135, 173, 645, 2583), prompt_mean=307, prompt_cap=131_072,
        output=(9, 34, 95, 397),
        output_mean=51, output_cap=8192, mix=_POOL_MIX, client_weight=0.6, active_median=0.07,
        noise=((0.15, 3600.0), (0.2, 86_400.0)), own_noise=((0.3, 1200.0), (0.5, 21_600.0)),
    ),
    "servegen-m-small": Figures(
        per_s=1174.0, hours=_SMALL_HOURS, days=_EVEN_DAYS, clients=43, top_share=0.299, carry_90=9,
        cv=(1.0, 1.21, 5.6, 27.0), gamma_share=0.70,
        prompt=(19, 40, 322, 1478), prompt_mean=120, prompt_cap=131_072,
        output=(1, 3, 44, 142),
        output_mean=15, output_cap=8192, mix=_POOL_MIX, client_weight=0.6, active_median=0.3,
        noise=_SMALL_NOISE, own_noise=((0.3, 1200.0),),
    ),
    "deepseek-r1": Figures(
        per_s=5.0,
        hours=(1.7, 1.9, 2.0, 1.7, 1.4, 1.1, 0.9, 0.8, 0.7, 0.6, 0.55, 0.5,
               0.45, 0.46, 0.5, 0.55, 0.6, 0.7, 0.9, 1.2, 1.6, 2.0, 2.2, 1.9),
        days=_EVEN_DAYS, clients=73, top_share=0.3, carry_90=20,
        cv=(0.85, 1.03, 4.3, 10.0), gamma_share=0.75,
        prompt=(18, 208, 2092, 23_423), prompt_mean=1268, prompt_cap=131_072,
        output=(287, 792, 3432, 12_607),
        output_mean=1527, output_cap=32_768,
        mix={CHAT: 0.7, DOCUMENT: 0.2, AGENT: 0.1}, client_weight=0.3,
        active_median=0.2, own_noise=((0.3, 1200.0),),
    ),
    "mooncake": Figures(
        per_s=3.34, hours=_CONV_HOURS, days=_CONV_DAYS, clients=100, top_share=0.16, carry_90=35,
        cv=(1.0, 1.05, 1.2, 1.4), gamma_share=1.0,
        prompt=(964, 6909, 27_367, 85_400), prompt_mean=12035, prompt_cap=131_072,
        output=(24, 350, 597, 1118),
        output_mean=343, output_cap=2048, mix={CHAT: 0.9, AGENT: 0.1}, noise=((0.1, 1200.0),),
    ),
}  # fmt: skip
