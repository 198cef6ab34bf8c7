"""The voice: paging, incidents, postmortem documents."""
