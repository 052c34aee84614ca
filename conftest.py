"""What pytest leaves out where an optional dependency is missing."""

from importlib.util import find_spec

# Doctests are looked for in every module, and these import what is not there.
collect_ignore = [] if find_spec("triton") else ["src/coterie/kernels/fused.py"]
collect_ignore_glob = [] if find_spec("flwr") else ["src/coterie/federated/flower/*"]
