"""Benchmarks: `python -m bench.speed`, `bench.recall` and others, which write their figures to `bench/out`.

All measuring is done on one thread. The libraries read these settings when they are first imported, so they are
made here, before any of them is.
"""

import os

for _name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "LANCE_CPU_THREADS",
):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
