"""What alerts would have said of a time that is past, set against what is known of it.

`minutes` counts verdicts by minute, `rises` what counters rose by, `burning` says quickly which
budgets burn, `fired` makes spans of changes of alerts, `budget` follows what is left, `incidents`
reads what people marked, `score` sets one against the other.
"""
