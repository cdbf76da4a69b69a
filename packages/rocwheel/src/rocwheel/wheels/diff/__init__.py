"""What differs between two wheels: names, metadata, files, libraries, code objects, kernels."""
