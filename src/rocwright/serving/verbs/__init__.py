"""The verbs of servers and programs: `run`, `ps`, `stop`, `restart`."""
