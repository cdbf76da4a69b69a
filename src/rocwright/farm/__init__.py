"""What runs the steps of a plan: this machine, or executors that other packages bring."""
