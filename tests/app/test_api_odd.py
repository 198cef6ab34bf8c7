"""The whole API asked what nobody would ask: no answer is an error of the service's own."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from tailburn.app.incident_keeping import IncidentKeeping
from tests.app.lives import Lives
from tests.app.test_silences import ONE
from tests.app.test_web import ADMIN, Web

EXAMPLES = 25  # of each operation
AUTHORIZATION = {"authorization": ADMIN.decode()}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The description of an API with an incident behind it."""
    folder = tmp_path_factory.mktemp("api")
    lives = Lives(folder, [ONE], healthy=420)
    lives.minutes(10, 1.0)
    IncidentKeeping(lives.slos, lives.database, {}, lambda: lives.now_ns).step()
    lives.database.close()
    web = Web(folder, ONE, now_ns=lives.now_ns)
    yield schemathesis.openapi.from_asgi("/api/openapi.json", web.app, headers=AUTHORIZATION)
    web.state.close()


def test_nothing_that_is_asked_is_answered_500(api: Any) -> None:
    asked = 0
    for found in api.get_all_operations():
        operation = found.ok()

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            case.call_and_validate(headers=AUTHORIZATION, checks=[not_a_server_error])

        ask()
        asked += 1
    assert asked >= 20
