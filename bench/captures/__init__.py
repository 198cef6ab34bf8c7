"""The judge of stitching: what recorded real stacks are known to have done, against our rows.

The truth comes from the clients' own logs and, where a log has no clock of a hop, from the
spans as protobuf's own decoder reads them; nothing of the collector is used to make it.
`python -m bench.captures` replays every capture and prints one row per capture.
"""
