"""Code compiled once before the tests begin, the service's beside the lab's.

Else each process of the tests that is the first to need it compiles it for itself.
"""

import subprocess
import sys
from typing import Final

PARTS: Final = (
    "from tailburn.app.parts import rules_of\n"
    "from tailburn.app.settings import Settings\n"
    "from tailburn.app.warming import warm_up\n"
    "warm_up(Settings(), rules_of(Settings()))\n",
    "from tailburn.lab.run.warming import warm_up\nwarm_up()\n",
)


def main() -> int:
    running = [subprocess.Popen([sys.executable, "-c", part]) for part in PARTS]
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main())
