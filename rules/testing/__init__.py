"""Tests of generated rules: what promtool feeds them, and what they must answer.

Expectations come from what the SLO promises, by the arithmetic of `engine.slo.simulate`, and
never from the text of the rules: a rule that was changed by hand is found.
"""
