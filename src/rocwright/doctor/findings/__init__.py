"""What is not right with a machine: one question a module, each over what was read and the facts."""
