"""What upstream has that a lock has not, and whether it may be taken."""
