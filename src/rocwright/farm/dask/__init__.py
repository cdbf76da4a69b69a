"""Steps on other machines by dask.distributed: it carries who runs what, never what a step needs or makes."""
