"""Targets out of files in the form of Prometheus' file_sd: YAML or JSON."""

import glob
from collections.abc import Sequence
from pathlib import Path

from tailburn.collector.hops.document import Document, Value
from tailburn.collector.scrape.errors import DiscoveryError
from tailburn.collector.signals.targets import Target, target_of
from tailburn.engine.problems import Problem


def files_of(patterns: Sequence[Path]) -> list[Path]:
    """The files that names with `*` stand for, and those named as they are."""
    found: list[Path] = []
    for pattern in patterns:
        found += sorted(map(Path, glob.glob(str(pattern)))) if "*" in str(pattern) else [pattern]
    return found


def read_files(patterns: Sequence[Path], tenant: str) -> list[Target]:
    """The targets of all files; a name may hold `*`. Raises DiscoveryError with every fault."""
    found: list[Target] = []
    problems: list[Problem] = []
    for file in files_of(patterns):
        targets, wrong = _read(file, tenant)
        found += targets
        problems += wrong
    if problems:
        raise DiscoveryError("\n".join(map(str, problems)))
    return found


def _read(file: Path, tenant: str) -> tuple[list[Target], list[Problem]]:
    document = Document(file, {}, if_empty="")  # no target, as it is for Prometheus
    top = document.read()  # JSON is YAML
    found: list[Target] = []
    if top is not None and not top.is_list:
        top.fault("want a list of {targets: [HOST:PORT, ...], labels: {NAME: VALUE}}")
    elif top is not None:
        for group in top.items():
            found += _group(group, file, tenant)
    return found, document.problems


def _group(value: Value, file: Path, tenant: str) -> list[Target]:
    parts = value.mapping(("targets", "labels"))
    if "targets" not in parts:
        value.fault("want targets")
        return []
    labels = {}
    for name, given in parts["labels"].entries() if "labels" in parts else ():
        text = given.text()
        if text is not None:
            labels[name] = text
    found = []
    for item in parts["targets"].items():
        address = item.text()
        if address is None:
            continue
        try:
            found.append(target_of(address, labels, f"{file}:{item.line}", tenant))
        except ValueError as error:
            item.fault(str(error).removeprefix(f"{address!r}: "))
    return found
