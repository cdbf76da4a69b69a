"""The verbs that follow upstream: `watch`, `bump`, `cycle`, `promote`, `bisect`, `notify`."""
