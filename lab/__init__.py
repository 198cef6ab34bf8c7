"""The wind tunnel: a simulated fleet whose faults are known."""
