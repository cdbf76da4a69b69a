"""Root file systems, made from an exact set of packages and looked at before each use."""
