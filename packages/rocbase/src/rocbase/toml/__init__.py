"""TOML files of a catalog: found in its folders, read, and refused with the line that is wrong."""
