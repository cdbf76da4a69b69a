"""Whether machine code for one GPU target is valid on another, judged from the machine code."""
