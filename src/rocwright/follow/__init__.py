"""What upstream has, what of it is built and promoted, which change broke it, and who is told."""
