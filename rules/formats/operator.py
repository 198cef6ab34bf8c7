"""A PrometheusRule, as the Prometheus operator takes it from Kubernetes."""

from collections.abc import Sequence

from tailburn.rules.formats.yaml import groups_of, text
from tailburn.rules.model import Group


def written(name: str, groups: Sequence[Group]) -> str:
    """One object; its label lets a `ruleSelector` choose what is generated."""
    return (
        "apiVersion: monitoring.coreos.com/v1\n"
        "kind: PrometheusRule\n"
        "metadata:\n"
        f"  name: {text(f'tailburn-{name}')}\n"
        "  labels:\n"
        '    app.kubernetes.io/managed-by: "tailburn"\n'
        "spec:\n" + groups_of(groups, indent=2)
    )
