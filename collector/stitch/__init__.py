"""Stitching: the spans of a trace become one row per LLM request.

`intake` takes spans into `table`, which holds those of open and lately closed traces. `unit`
stitches what is due: `tree` and `joining` find the requests among its spans, and `build` turns
one request's spans into its row, with `places` (hops, hosts' clocks by `clocks`), `tries`,
`vantage`, `intervals` and `facts`. `notes` remembers what was given, `rows` makes Arrow tables
of it and `readback` the other way.
"""
