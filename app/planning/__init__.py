"""What planners ask: an SLO from a healthy time, and what alerts would have said of a past one."""
