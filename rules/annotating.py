"""What an alert tells beside its labels: values are read when it is evaluated, not compared."""

from collections.abc import Iterable

from tailburn.engine.names import OBJECTIVE_LABEL, SLO_BUDGET_LEFT_RECORD, SLO_LABEL
from tailburn.engine.slo import burn
from tailburn.engine.slo.model import DEFINITIONS, Clock, EngineSource, Kind, Objective, Slo
from tailburn.rules.model import literal
from tailburn.rules.promql import duration, number
from tailburn.rules.sources.engines import engine_of

PROMISES = {
    Kind.AVAILABILITY: "requests that succeed",
    Kind.GOODPUT: "requests that succeed and meet every acceptable p95 clock",
    Kind.COMPLETION: "requests done within {threshold}",
    Kind.CLOCK: "{clock} within {threshold}",
}


def of_burn(slo: Slo, budget: Objective, pair: burn.Pair) -> dict[str, str]:
    """Window, burn, budget left, links and the definition of the clock."""
    long, short = duration(pair.long_s), duration(pair.short_s)
    threshold = percent(pair.threshold_ratio)
    what = promise(budget)
    return {
        "summary": f"{slo.name}{where(slo)}: {budget.name} burns its budget "
        f"{pair.factor:.3g} times too fast",
        "description": f"More than {threshold} of the requests miss the promise of {what} over "
        f"the last {long}, and over the last {short} still. Allowed are "
        f"{percent(budget.budget_ratio)} over {slo.window}.",
        "window": str(slo.window),
        "burn_rate": number(round(pair.factor, 6)),
        "budget_left": _value(SLO_BUDGET_LEFT_RECORD, slo, budget),
        "definition": definition(slo, budget),
        **links(slo),
    }


def told(slo: Slo, summary: str, description: str, measured: str) -> dict[str, str]:
    """What every other alert tells: what is wrong, why it is taken for wrong, what is measured."""
    return {
        "summary": f"{slo.name}{where(slo)}: {summary}",
        "description": description,
        "window": str(slo.window),
        "definition": measured,
        **links(slo),
    }


def links(slo: Slo) -> dict[str, str]:
    """The addresses that the SLO names."""
    named = {"runbook_url": slo.runbook_url, "dashboard_url": slo.dashboard_url}
    return {name: literal(url) for name, url in named.items() if url}


def where(slo: Slo) -> str:
    """The values of `by`, read from the alert: ` (model tiny-llama)`."""
    told = ", ".join(f"{name} {{{{ $labels.{name} }}}}" for name in slo.by)
    return f" ({told})" if told else ""


def promise(budget: Objective) -> str:
    """What a budget promises, in words."""
    threshold = seconds(budget.threshold_s) if budget.threshold_s is not None else ""
    return PROMISES[budget.kind].format(threshold=threshold, clock=str(budget.clock or "").upper())


def definition(slo: Slo, budget: Objective) -> str:
    """Where the clock of a budget starts and stops, or what is counted where it has none."""
    if budget.clock is None:
        return f"{promise(budget)}, counted at the {measured_at(slo)}"
    return f"{promise(budget)}: {clock_definition(slo, budget.clock)}"


def clock_definition(slo: Slo, clock: Clock) -> str:
    """Where a clock starts and stops: at the vantage of its source, whatever the SLO names."""
    vantage = measured_at(slo)
    text = DEFINITIONS[clock].format(vantage=vantage)
    if clock is Clock.ITL and isinstance(slo.source, EngineSource):
        text = f"every gap between two token events, as the {vantage} measures it"
    return text if vantage == slo.vantage else f"{text}; the SLO speaks of the {slo.vantage}"


def measured_at(slo: Slo) -> str:
    """The vantage that the SLO's source has."""
    source = slo.source
    return engine_of(source).vantage if isinstance(source, EngineSource) else slo.vantage


def percent(ratio: float) -> str:
    """`14.4 %`."""
    return f"{number(round(ratio * 100, 6))} %"


def seconds(value: float) -> str:
    """`500 ms`, `2 s`."""
    return f"{number(value * 1000)} ms" if value < 1 else f"{number(value)} s"


def _value(record: str, slo: Slo, budget: Objective) -> str:
    """A recorded ratio at the labels of the alert, as a percent."""
    equal = [f'{SLO_LABEL}=\\"{slo.name}\\"', f'{OBJECTIVE_LABEL}=\\"{budget.name}\\"']
    query = f'"{record}{{{",".join([*equal, *_places(slo.by)])}}}"'
    arguments = "".join(f" $labels.{name}" for name in slo.by)
    asked = f"printf {query}{arguments} | query" if slo.by else f"query {query}"
    return f"{{{{ range {asked} }}}}{{{{ .Value | humanizePercentage }}}}{{{{ end }}}}"


def _places(names: Iterable[str]) -> list[str]:
    return [f"{name}=%q" for name in names]
