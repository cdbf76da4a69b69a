"""Applications served over HTTP from this machine, with bounds on all that a client can send."""
