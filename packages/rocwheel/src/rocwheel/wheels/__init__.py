"""What is in an ELF file, a fat binary, a wheel, and how these are written."""
