"""The shared compiler cache of a step: a socket in its sandbox, and what answers there."""
