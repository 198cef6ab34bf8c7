"""Which spans make which request: agents, orphans, cut traces, doubles."""

from dataclasses import replace

from tests.captures.scenarios.drive import rows_of
from tests.captures.scenarios.expect import Holding, anchored, expect, standing
from tests.captures.scenarios.hops import call, call_out, chain, engine, gateway
from tests.captures.scenarios.otlp import CLIENT, INTERNAL, Span, at


def _agent_call(number: int, begin: float) -> list[Span]:
    name = f"call {number}"
    return [
        call(begin, begin + 500, begin + 105, name, parent="agent"),
        engine(
            begin + 5,
            begin + 100,
            begin + 490,
            f"engine {number}",
            name,
            request=f"chatcmpl-{number}",
        ),
    ]


def test_each_call_of_an_agent_is_a_request() -> None:
    agent = Span("agent", "invoke_agent planner", 0, 3000, service="shop", scope="shop.agent")
    tool = Span(
        "tool", "execute_tool search", 550, 950, "agent", service="shop", scope="shop.agent"
    )
    spans = [agent, tool, *(s for i in range(3) for s in _agent_call(i, 1000.0 * i))]
    rows = standing(rows_of([at(4, *spans)]))
    expect(
        rows,
        *(
            {
                **anchored(f"call {i}"),
                "ttft_client_s": 0.105,
                "ttft_engine_s": 0.095,
                "e2e_client_s": 0.5,
                "attempts": 1,
            }
            for i in range(3)
        ),
    )


def test_calls_of_an_agent_that_overlap_are_still_separate_requests() -> None:
    agent = Span("agent", "invoke_agent planner", 0, 3000, service="shop", scope="shop.agent")
    spans = [agent, *(s for i in range(3) for s in _agent_call(i, 50.0 * i))]
    rows = standing(rows_of([at(4, *spans)]))
    expect(rows, *({**anchored(f"call {i}"), "ttft_engine_s": 0.095} for i in range(3)))


def test_an_orphan_belongs_to_the_only_request_that_holds_it() -> None:
    spans = [call(0, 1000, 300), gateway(10, 990), engine(20, 220, 950, parent="never came")]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            **anchored("call"),
            "ttft_engine_s": 0.2,
            "e2e_gateway_s": 0.98,
            "repaired": Holding("inferred"),
        },
    )


def test_an_orphan_that_two_requests_could_hold_is_given_to_neither() -> None:
    spans = [
        call(0, 1000, 300, "one"),
        call(5, 1005, 305, "other"),
        engine(20, 220, 950, parent="never came"),
    ]
    rows = standing(rows_of([at(2, *spans)]))
    calls = [row for row in rows if row.seconds("e2e_client_s") is not None]
    expect(calls, {"ttft_engine_s": None}, {"ttft_engine_s": None})
    expect([row for row in rows if row not in calls], {"ttft_engine_s": 0.2})


def test_an_engine_in_a_trace_of_its_own_is_joined_by_the_response_id() -> None:
    named = {"gen_ai.response.id": "chatcmpl-77"}
    spans = [
        call(0, 1000, 300, attributes=named),
        gateway(10, 990),
        engine(20, 220, 950, parent="", trace="other", request="chatcmpl-77"),
    ]
    expect(
        standing(rows_of([at(2, *spans)])),
        {
            **anchored("call"),
            "ttft_engine_s": 0.2,
            "e2e_gateway_s": 0.98,
            "repaired": Holding("joined"),
        },
    )


def test_an_id_seen_again_outside_the_interval_joins_nothing() -> None:
    named = {"gen_ai.response.id": "chatcmpl-77"}
    spans = [
        call(0, 1000, 300, attributes=named),
        engine(60_020, 60_220, 60_950, parent="", trace="other", request="chatcmpl-77"),
    ]
    rows = standing(rows_of([at(2, spans[0]), at(62, spans[1])]))
    expect(rows, {"ttft_engine_s": None, "e2e_client_s": 1.0}, {"ttft_engine_s": 0.2})


def test_time_alone_joins_nothing() -> None:
    spans = [call(0, 1000, 300), engine(20, 220, 950, parent="", trace="other")]
    expect(standing(rows_of([at(2, *spans)])), {"ttft_engine_s": None}, {"ttft_engine_s": 0.2})


def test_two_requests_of_one_trace_id_are_two() -> None:
    """A seeded generator repeats ids: the span ids differ, the trace id does not."""
    again = [
        replace(span, span=f"{span.span} again", parent=span.parent and f"{span.parent} again")
        for span in chain(begin=5000)
    ]
    rows = standing(rows_of([at(2, *chain()), at(7, *again)]))
    expect(rows, {**anchored("call"), "e2e_client_s": 1.0}, anchored("call again"))


def test_everything_sent_twice_counts_once() -> None:
    once = standing(rows_of([at(2, *chain())]))
    twice = standing(rows_of([at(2, *chain()), at(3, *chain())]))
    assert [row.values for row in twice] == [row.values for row in once]


def test_a_copy_that_comes_long_after_changes_nothing() -> None:
    rows = rows_of([at(2, *chain()), at(3600, *chain())])
    expect(standing(rows), {"version": 1})
    assert len(rows) == 1


def test_one_id_for_the_call_and_its_server_is_both() -> None:
    """Zipkin shares a span id between client and server: the kind tells them apart."""
    spans = [call(0, 1000, 300, "shared"), gateway(10, 990, "shared", "")]
    expect(standing(rows_of([at(2, *spans)])), {"e2e_client_s": 1.0, "e2e_gateway_s": 0.98})


def test_a_request_below_five_hundred_spans_is_found() -> None:
    deep = [
        Span(f"step {i}", "step", i / 10, 999 - i / 10, f"step {i - 1}" if i else "call")
        for i in range(500)
    ]
    spans = [call(0, 1000, 300), *deep, engine(100, 220, 900, parent="step 499")]
    expect(standing(rows_of([at(2, *spans)])), {"ttft_engine_s": 0.12, "e2e_client_s": 1.0})


def test_a_call_inside_a_call_is_not_a_second_request() -> None:
    """The gateway's own call, under the same conventions as its client's."""
    spans = [
        call(0, 1000, 300),
        gateway(10, 990),
        call(15, 985, 290, "inner", parent="gateway", service="gateway", scope="gateway.llm"),
        engine(20, 220, 950, parent="inner"),
    ]
    expect(standing(rows_of([at(2, *spans)])), {**anchored("call"), "ttft_engine_s": 0.2})


def test_scrapes_probes_and_tools_are_no_requests() -> None:
    scrape = {"http.method": "GET", "http.route": "/metrics", "http.target": "/metrics"}
    spans = [
        replace(gateway(0, 10, "scrape", ""), name="GET /metrics", attributes=scrape),
        Span("tool", "execute_tool search", 0, 10, trace="tool", kind=INTERNAL),
        Span("query", "SELECT", 0, 10, trace="query", kind=CLIENT, attributes={"db.system": "pg"}),
        call_out(0, 10, "elsewhere", "", trace="web", attributes={"http.url": "http://shop/cart"}),
    ]
    expect(standing(rows_of([at(2, *spans)])))
