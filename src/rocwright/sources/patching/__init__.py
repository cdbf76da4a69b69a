"""How a source tree is changed, and whether a change had an effect."""
