"""How the steps of a plan run: order, resources, logs, failures."""
