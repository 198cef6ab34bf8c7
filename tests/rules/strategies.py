"""SLOs of all shapes that the model allows."""

from hypothesis import strategies as st

from tailburn.engine.slo.burn import DAY_S
from tailburn.engine.slo.model import (
    Calendar,
    Clock,
    Completion,
    EngineSource,
    Place,
    QuerySource,
    Regression,
    Rolling,
    ScaleOut,
    Slo,
    Tier,
)

_SECONDS = st.sampled_from([0.06, 0.5, 1.0, 2.5, 30.0])
_THRESHOLDS = st.dictionaries(st.sampled_from(["p50", "p90", "p95", "p99", "p99.9"]), _SECONDS)
_TIERS = st.dictionaries(st.sampled_from(Tier), _THRESHOLDS)
_NASTY = st.sampled_from(["chat", 'quo"te', "back\\slash", "new\nline", "ünïcode", "{{ x }}"])
_SOURCES = st.one_of(
    st.none(),
    st.builds(
        EngineSource,
        engine=st.sampled_from(["vllm", "sglang", "trtllm", "triton", "dynamo"]),
        match=st.dictionaries(st.sampled_from(["job", "namespace"]), _NASTY),
        histogram=st.sampled_from(["classic", "native"]),
    ),
    st.just(
        QuerySource(
            'sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))',
            "sum(rate(http_requests_total[{{ .window }}]))",
        )
    ),
)

slos = st.builds(
    Slo,
    name=st.sampled_from(["chat", "code-completion"]),
    place=st.just(Place("slo.yaml", 1)),
    labels=st.dictionaries(st.sampled_from(["team", "tier"]), _NASTY),
    select=st.dictionaries(st.sampled_from(["pool", "request_type", "gpu"]), _NASTY),
    by=st.sampled_from([(), ("model",), ("model", "replica")]),
    vantage=st.sampled_from(["client", "gateway", "engine"]),
    window=st.one_of(
        st.integers(1, 90).map(lambda days: Rolling(days * DAY_S)),
        st.sampled_from([Calendar("month"), Calendar("week", "Europe/Berlin")]),
    ),
    clocks=st.dictionaries(st.sampled_from(Clock), _TIERS),
    availability_ratio=st.none() | st.sampled_from([0.9, 0.99, 0.999]),
    goodput_ratio=st.none() | st.sampled_from([0.8, 0.95]),
    completion=st.none() | st.just(Completion(600, 0.95)),
    consistency_p99_over_p50=st.none() | st.just(3.0),
    regression=st.none() | st.builds(Regression, days=st.integers(1, 3)),
    scale_out=st.none() | st.just(ScaleOut()),
    source=_SOURCES,
    runbook_url=st.none() | st.just("https://runbooks.example/chat"),
)
