"""Whether a build gives the same bytes again."""
