"""What the containers run is run here without them, from the files that describe them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from command import started

from heedful.interfaces.cli.main import cli

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
OURS = {name: each for name, each in COMPOSE["services"].items() if each["image"] == "heedful"}
MANIFESTS = [
    document
    for file in sorted(ROOT.glob("deploy/kubernetes/*.yaml"))
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
PODS = {
    each["metadata"]["name"]: each["spec"]["template"]["spec"]
    for each in MANIFESTS
    if each["kind"] in ("Deployment", "Job")
}
KEY = "a-secret-of-the-operator"


def instruction(name: str) -> list[str]:
    """The words of the last such instruction of the Dockerfile, in its JSON form."""
    found = re.findall(rf"^{name}\b[^\[]*(\[.*\])$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)
    words: list[str] = orjson.loads(found[-1])
    return words


def environment(store: str, home: Path) -> dict[str, str]:
    """What compose.yaml sets, with a database and a key that are here."""
    named = {key: value for key, value in COMPOSE["x-heedful"]["environment"].items() if value is not None}
    made = {**named, "HEEDFUL_STORE": store, "HEEDFUL_ADMIN_KEY": KEY, "PGPASSWORD": "none", "HOME": str(home)}
    return {name: value for name, value in made.items() if "${" not in value}


def check(command: list[str], port: str, url: str) -> None:
    """Runs a health check against a server on another port."""
    words = [word.replace(f":{port}", url[url.rindex(":") :]) for word in command]
    # Workers are starting while their port is open; who checks tries several times.
    tries = (subprocess.run([sys.executable, *words[1:]], capture_output=True, check=False) for _ in range(15))
    assert any(each.returncode == 0 for each in tries)


def test_the_image_serves_a_file_in_its_volume(tmp_path: Path) -> None:
    assert instruction("ENTRYPOINT") == ["heedful"]
    settings = {"HEEDFUL_STORE": str(tmp_path / "heedful.db"), "HEEDFUL_ADMIN_KEY": KEY}
    with started(instruction("CMD"), settings) as server:
        check(instruction("HEALTHCHECK"), "8000", server.url)


@pytest.mark.nightly
def test_compose_migrates_serves_and_works(bare_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "data"
    here.mkdir()
    monkeypatch.chdir(here)
    around = environment(bare_database, tmp_path / "home")
    migrate = [sys.executable, "-m", "heedful", *OURS["migrate"]["command"]]
    done = subprocess.run(
        migrate, env={**os.environ, **around}, capture_output=True, text=True, timeout=120, check=True
    )
    assert "is at revision" in done.stdout
    with started(OURS["server"]["command"], around) as server:
        check(instruction("HEALTHCHECK"), "8000", server.url)
        address, key = f"{server.url}/v1/projects/default/facts", {"Authorization": f"Bearer {KEY}"}
        httpx.post(address, json={"texts": ["The gym opens at six."]}, headers=key, timeout=60).raise_for_status()
    with started(OURS["dashboard"]["command"], around) as dashboard:
        check(OURS["dashboard"]["healthcheck"]["test"][1:], "8001", dashboard.url)
    worker = subprocess.Popen(
        [sys.executable, "-m", "heedful", *OURS["worker"]["command"]],
        env={**os.environ, **around}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stderr is not None
    assert "working on" in worker.stderr.readline()
    worker.terminate()
    assert worker.wait(60) == 0
    worker.stderr.close()
    # The root file system of a container is read-only.
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", OURS)
def test_containers_of_compose_can_do_little(name: str) -> None:
    service = OURS[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    parse(service["command"])


@pytest.mark.parametrize("name", PODS)
def test_pods_can_do_little_and_have_limits(name: str) -> None:
    pod = PODS[name]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert container["args"][0] == OURS[name]["command"][0]
    parse(container["args"])
    if "ports" in container:
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()


def test_every_manifest_is_applied() -> None:
    (kustomization,) = (each for each in MANIFESTS if each["kind"] == "Kustomization")
    files = {file.name for file in ROOT.glob("deploy/kubernetes/*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files


def test_the_image_gets_the_files_that_it_is_built_from() -> None:
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for name in line.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}\n" in sent, name


def parse(arguments: list[Any]) -> None:
    """Fails if there is no such command, or not with these options."""
    command = cli.commands[arguments[0]]
    command.make_context(arguments[0], [str(word) for word in arguments[1:]])
