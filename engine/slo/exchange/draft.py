"""A document of ours in the making, each value of which knows where it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tailburn.engine.problems import Problem
from tailburn.engine.slo.document import Document, Path
from tailburn.engine.slo.exchange.taking import Taking
from tailburn.engine.slo.exchange.writing import yaml_text
from tailburn.engine.slo.parse import read_document
from tailburn.engine.slo.readers import Unfit, own_label
from tailburn.engine.slo.spec import API_VERSION, KIND

_LINK_ANNOTATIONS = {
    "runbook": ("runbook_url", "runbook", "runbookURL"),
    "dashboard": ("dashboard_url", "dashboard", "dashboardURL"),
}


@dataclass
class Draft:
    """Values of a `ServingSLO` and, for its faults, the paths they have in the source."""

    taking: Taking
    origin: Path
    remarks: list[str] = field(default_factory=list)
    _data: dict[str, Any] = field(default_factory=dict)
    _origins: dict[Path, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._data.update({"apiVersion": API_VERSION, "kind": KIND, "metadata": {}, "spec": {}})
        self._origins[()] = self.origin

    def set(self, path: Path, value: Any, origin: Path) -> None:
        """Say a value, and which one of the source it was."""
        holder = self._data
        for step in path[:-1]:
            holder = holder.setdefault(str(step), {})
        holder[str(path[-1])] = value
        self._origins[path] = origin

    def remark(self, text: str) -> None:
        """A comment at the top of the file."""
        self.remarks.extend(line for line in text.strip().splitlines() if line.strip())

    def label(self, name: str, value: str, origin: Path) -> None:
        """A label, where it may be one."""
        try:
            own_label(name)
        except Unfit as error:
            self.taking.lose(origin, f"{error.message()}; left out")
            return
        self.set(("metadata", "labels", name), value, origin)

    def links(self, annotations: Mapping[str, str], origin: Path) -> None:
        """The links among annotations, the others are lost."""
        for name, value in annotations.items():
            kinds = [kind for kind, names in _LINK_ANNOTATIONS.items() if name in names]
            if kinds and value.startswith(("http://", "https://")):
                self.set(("metadata", "links", kinds[0]), value, (*origin, name))
            else:
                self.taking.lose((*origin, name), "annotations are made by `tailburn rules`")

    def faults(self) -> list[Problem]:
        """What is wrong with it, told of the source."""
        source = self.taking.document
        lines = {path: source.line_of(origin) for path, origin in self._origins.items()}
        line = source.line_of(self.origin)
        document = Document(source.file, line, self._data, lines, origins=self._origins)
        _, problems = read_document(document)
        return problems

    @property
    def name_origin(self) -> Path:
        """Where its name comes from."""
        return self._origins.get(("metadata", "name"), self.origin)

    @property
    def name(self) -> str:
        """What the SLO is called."""
        return str(self._data["metadata"].get("name", ""))

    @property
    def text(self) -> str:
        """The document as YAML, what was said of it in words as comments."""
        remarks = "".join(f"# {line.strip()}\n" for line in self.remarks)
        return f"{remarks}{yaml_text(self._data)}"
