"""Serves an empty store until standard input ends; the first line of output says where, and with which key.

The argument is a JSON object with settings of the server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[3] / "tests" / "integration"))

from server import running

with TemporaryDirectory() as folder, running(Path(folder) / "store.db", **json.loads(sys.argv[1])) as server:
    print(json.dumps({"url": server.url, "key": server.key}), flush=True)
    sys.stdin.read()
