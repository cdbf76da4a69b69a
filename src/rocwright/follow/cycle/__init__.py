"""Follow upstream, build, check, promote or keep the old, row by row."""
