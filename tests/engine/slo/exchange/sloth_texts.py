"""Files in Sloth's two forms for tests."""

from typing import Final

FILE: Final = """\
version: "prometheus/v1"
service: shop
labels: {owner: team-a}
slos:
  - name: orders
    objective: 99.9
    description: |
      Orders go through.
      All of them.
    labels: {tier: "1"}
    sli:
      events:
        error_query: sum(rate(orders_total{code=~"5.."}[{{ .window }}]))
        total_query: sum(rate(orders_total[{{.window}}]))
    alerting:
      name: OrdersFail
      annotations: {runbook: https://wiki.example.com/orders}
  - name: search
    objective: 95
    sli:
      raw:
        error_ratio_query: |
          sum(rate(slow_total[{{.window}}]))
          /
          sum(rate(searches_total[{{.window}}]))
    alerting:
      page_alert: {disable: true}
      ticket_alert: {disable: true}
"""

KUBERNETES: Final = """\
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata: {name: shop, namespace: monitoring}
spec:
  service: shop
  labels: {owner: team-a}
  slos:
    - name: orders
      objective: 99.9
      labels: {tier: "1"}
      sli:
        events:
          errorQuery: sum(rate(orders_total{code=~"5.."}[{{.window}}]))
          totalQuery: sum(rate(orders_total[{{.window}}]))
      alerting:
        name: OrdersFail
        pageAlert: {labels: {severity: critical}}
"""
