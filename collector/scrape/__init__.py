"""Reading metrics from engines, gateways and hosts: who they are, and asking them in time."""
