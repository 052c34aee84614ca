"""What pytest leaves out where an optional dependency is missing."""

from importlib.util import find_spec

# Doctests are looked for in every module, and these import what is not there.
collect_ignore_glob: list[str] = []
if find_spec("flwr") is None:
    collect_ignore_glob.append("src/coterie/federated/flower/*")
