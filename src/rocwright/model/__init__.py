"""What every other package speaks in: steps, edits, versions, and the base of each model."""
