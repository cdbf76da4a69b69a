"""What an artifact is made of and who says so, inside it and beside it."""
