"""Stitching: the spans of a trace become one row per LLM request.

`table` holds the spans of open and lately closed traces, `tree` finds the requests among
them, `tries` the failed and hedged attempts, `clocks` corrects hosts' clocks, `build` turns
one request's spans into its row, `rows` makes Arrow tables of the rows.
"""
