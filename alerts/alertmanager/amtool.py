"""Alertmanager's own judge of a configuration, where it is installed."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tailburn.alerts.alertmanager.errors import ConfigError
from tailburn.alerts.alertmanager.template import TEMPLATE_FILE, template

HOW_TO_GET: Final = "apt-get install prometheus-alertmanager, or the archive of Alertmanager"
_TIMEOUT_S: Final = 60


def find_amtool() -> str | None:
    """Its path, or None where it is not installed."""
    return shutil.which("amtool")


def check_config(amtool: str, text: str, file: str) -> None:
    """Raises ConfigError with what amtool says against a configuration; `file` is its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "alertmanager.yml")
        path.write_text(text, encoding="utf-8")
        Path(folder, TEMPLATE_FILE).write_text(template(), encoding="utf-8")
        done = _run([amtool, "check-config", str(path)])
        if done.returncode != 0:
            said = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
            about = f"Checking '{path}'"
            raise ConfigError(
                *(
                    f"{file}: amtool: {line.replace(about, '').strip()}"
                    for line in said
                    if line and not line.startswith("amtool: error: failed to validate")
                )
            )


def receivers_of(amtool: str, config: Path, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The receivers that an alert with these labels goes to; raises ConfigError."""
    told = [f"{name}={value}" for name, value in labels.items()]
    done = _run([amtool, "config", "routes", "test", f"--config.file={config}", *told])
    if done.returncode != 0:
        raise ConfigError(f"{config}: amtool: {(done.stderr or done.stdout).strip()}")
    return tuple(done.stdout.strip().split(","))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{command[0]}: can't be run: {error}") from error
