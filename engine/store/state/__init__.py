"""The state database: what must outlive a restart and isn't telemetry.

A new table is a model in a module of its own, imported by `models`, and a migration in
`migrations/versions`; a test holds the two together.
"""
