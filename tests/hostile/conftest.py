"""The command line run in this process, as in the tests of `app`."""

from tests.app.conftest import run, store

__all__ = ["run", "store"]
