"""What pytest leaves out: the kernel for GPUs cannot be imported where triton is missing."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("triton") else ["src/coterie/kernels/fused.py"]
