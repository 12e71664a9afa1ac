"""copy, export, import, backup and verify on the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result
from lived import dumped
from test_cli import run

from heedful.cli.main import cli
from heedful.errors import Conflict, Invalid
