"""What a wheel says of itself against what is in it."""
