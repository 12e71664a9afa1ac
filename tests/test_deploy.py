"""What the containers run is run here without them, from the files that describe them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx
import orjson
import psycopg
import pytest
import yaml
from command import started
from mongodb import Mongod
from postgresql import QUICK
from postgresql_process import Server, binaries
from pymongo import MongoClient
from pymongo.errors import OperationFailure
from sqlalchemy import make_url

import heedful
from heedful.interfaces.cli.main import cli
from heedful.testing import WordEmbedder

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


def environment(service: str, store: str, home: Path) -> dict[str, str]:
    """What compose.yaml sets for a service, with a database and a key that are here."""
    here = {"HEEDFUL_STORE": store, "HEEDFUL_ADMIN_KEY": KEY, "PGPASSWORD": "none"}
    named = {key: here.get(key, value) for key, value in OURS[service]["environment"].items() if value is not None}
    return {**named, "HOME": str(home)}


def check(command: list[str], port: str, url: str) -> None:
    """Runs a health check against a server on another port."""
    words = [word.replace(f":{port}", url[url.rindex(":") :]) for word in command]
    # Workers are starting while their port is open; who checks tries several times.
    tries = (subprocess.run([sys.executable, *words[1:]], capture_output=True, check=False) for _ in range(15))
    assert any(each.returncode == 0 for each in tries)


@pytest.mark.slow
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
    around = {name: environment(name, bare_database, tmp_path / "home") for name in OURS}
    migrate = [sys.executable, "-m", "heedful", *OURS["migrate"]["command"]]
    done = subprocess.run(
        migrate, env={**os.environ, **around["migrate"]}, capture_output=True, text=True, timeout=120, check=True
    )
    assert "is at revision" in done.stdout
    with started(OURS["server"]["command"], around["server"]) as server:
        check(instruction("HEALTHCHECK"), "8000", server.url)
        address, key = f"{server.url}/v1/projects/default/facts", {"Authorization": f"Bearer {KEY}"}
        httpx.post(address, json={"texts": ["The gym opens at six."]}, headers=key, timeout=60).raise_for_status()
    with started(OURS["dashboard"]["command"], around["dashboard"]) as dashboard:
        check(OURS["dashboard"]["healthcheck"]["test"][1:], "8001", dashboard.url)
    worker = subprocess.Popen(
        [sys.executable, "-m", "heedful", *OURS["worker"]["command"]],
        env={**os.environ, **around["worker"]}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert worker.stderr is not None
    assert "working on" in worker.stderr.readline()
    worker.terminate()
    assert worker.wait(60) == 0
    worker.stderr.close()
    # The root file system of a container is read-only.
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_containers_of_compose_can_do_little_and_have_limits(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["deploy"]["resources"]["limits"].keys() == {"memory", "cpus", "pids"}
    # What migrates ends by itself, and the worker listens nowhere; the image checks the server.
    assert "test" in service.get("healthcheck", {}) or name in ("migrate", "worker", "server")
    assert not re.search(r":latest$|^[^:]+$", service["image"]) or name in OURS
    if name in OURS:
        parse(service["command"])


def test_only_what_needs_a_database_reaches_one() -> None:
    networks = {name: set(service["networks"]) for name, service in COMPOSE["services"].items()}
    assert COMPOSE["networks"]["data"]["internal"]
    assert networks["postgresql"] == networks["mongodb"] == {"data"}
    assert networks["proxy"] == {"web"}
    assert {name for name, joined in networks.items() if "data" in joined} == {*OURS, "postgresql", "mongodb"}
    assert {name for name, service in COMPOSE["services"].items() if service.get("ports")} == {"proxy"}


def test_the_proxy_alone_says_whom_it_speaks_for() -> None:
    address = COMPOSE["services"]["proxy"]["networks"]["web"]["ipv4_address"]
    (pool,) = COMPOSE["networks"]["web"]["ipam"]["config"]
    assert ip_address(address) in ip_network(pool["subnet"])
    # No other container can get that address.
    assert ip_address(address) not in ip_network(pool["ip_range"])
    for name in ("server", "dashboard"):
        assert OURS[name]["environment"]["HEEDFUL_TRUSTED_PROXIES"] == address


def test_a_container_has_the_secrets_that_it_needs_and_no_others() -> None:
    def variables(name: str) -> set[str]:
        values = COMPOSE["services"][name]["environment"].values()
        return {found for value in values if value for found in re.findall(r"\$\{(\w+)", value)}

    store, admin = "HEEDFUL_DATABASE_PASSWORD", "HEEDFUL_ADMIN_KEY"
    assert variables("server") == variables("dashboard") == {store, admin}
    assert variables("worker") == variables("migrate") == {store}
    assert variables("postgresql") == {store, "POSTGRES_PASSWORD"}
    assert variables("mongodb") == {"HEEDFUL_MONGODB_PASSWORD", "MONGODB_PASSWORD"}
    assert not variables("proxy") & {store, admin}
    assert set(OURS["migrate"]["environment"]) == {"HEEDFUL_STORE", "PGPASSWORD"}
    assert all("POSTGRES_PASSWORD" not in (service["environment"].get("PGPASSWORD") or "") for service in OURS.values())


def set_up_postgresql(server: Server, **passwords: str) -> subprocess.CompletedProcess[str]:
    """Runs what the container runs when its database is created."""
    address = make_url(server.url)
    around = {
        "PATH": f"{binaries()}:{os.environ['PATH']}",
        "PGHOST": str(address.host),
        "PGPORT": str(address.port),
        **passwords,
    }
    script = str(ROOT / "deploy/postgresql.sh")
    return subprocess.run(["sh", script], env=around, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_role_in_postgresql_is_no_superuser_and_has_a_password_of_its_own() -> None:
    with contextlib.closing(Server(*QUICK)) as server:
        same = set_up_postgresql(server, POSTGRES_PASSWORD="a", HEEDFUL_DATABASE_PASSWORD="a")
        assert same.returncode == 1
        assert "must differ" in same.stderr
        made = set_up_postgresql(server, POSTGRES_PASSWORD="a", HEEDFUL_DATABASE_PASSWORD="it's $b")
        assert made.returncode == 0, made.stderr
        as_role = server.url.replace("postgres@", "heedful@").replace("DATABASE", "heedful")
        with psycopg.connect(as_role) as connection:
            found = connection.execute(
                "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls FROM pg_roles"
                " WHERE rolname = current_user"
            ).fetchone()
        assert found == (False,) * 5
        for url in (as_role.removesuffix("heedful") + "postgres", as_role.replace("heedful@", "guest@")):
            with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
                psycopg.connect(url)
        with heedful.open(as_role, embedding=WordEmbedder()) as memory:
            memory.remember(["The gym opens at six."])
            assert len(memory.recall("gym")) == 1


@pytest.mark.nightly
def test_mongodb_asks_for_a_login_and_its_user_can_keep_sessions(tmp_path: Path) -> None:
    service, script = COMPOSE["services"]["mongodb"], (ROOT / "deploy/mongodb.js").read_text(encoding="utf-8")
    key = tmp_path / "key"
    command = service["entrypoint"][2].replace("/tmp/key", str(key)).replace("$$", "$")
    subprocess.run(["bash", "-c", command.replace("exec docker-entrypoint.sh", "test"), "--", "x"], check=True)
    assert service["command"][-3:] == ["--keyFile", "/tmp/key", "--bind_ip_all"]
    server = Mongod(tmp_path / "data", replica_set=True, arguments=["--keyFile", str(key)]).start()
    try:
        role, database = re.findall(r'role: "(\w+)", db: "(\w+)"', script)[0]
        with server.direct() as client:
            client.admin.command("createUser", "root", pwd="a", roles=["root"])
        root = server.url(options="&authSource=admin").replace("mongodb://", "mongodb://root:a@")
        with MongoClient[dict[str, Any]](root) as client:
            client[database].command("createUser", "heedful", pwd="b", roles=[{"role": role, "db": database}])
        with MongoClient[dict[str, Any]](server.url()) as client, pytest.raises(OperationFailure):
            client[database].sessions.find_one()
        sessions = server.url(database).replace("mongodb://", "mongodb://heedful:b@")
        with heedful.open(tmp_path / "facts.db", sessions=sessions, embedding=WordEmbedder()) as memory:
            entry = memory.sessions.add_entry("s1", question="When?", answer="At six.")
            assert memory.sessions.entry("s1", entry.qa_id).answer == "At six."
        with MongoClient[dict[str, Any]](sessions) as client, pytest.raises(OperationFailure):
            client.other.things.insert_one({})
    finally:
        server.stop()


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
    assert container["resources"]["limits"].keys() == container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
    assert re.fullmatch(r".+:[\d.]+", container["image"])
    secrets = {each["secretRef"]["name"] for each in container["envFrom"] if "secretRef" in each}
    assert ("heedful-admin" in secrets) == (name in ("server", "dashboard"))
    assert container["args"][0] == OURS[name]["command"][0]
    parse(container["args"])
    if "ports" in container:
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()


def test_only_the_ingress_controller_reaches_pods() -> None:
    closed, opened = (each["spec"] for each in MANIFESTS if each["kind"] == "NetworkPolicy")
    labels = [
        each["spec"]["template"]["metadata"]["labels"] for each in MANIFESTS if each["kind"] in ("Deployment", "Job")
    ]
    assert all(closed["podSelector"]["matchLabels"].items() <= each.items() for each in labels)
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in closed
    # Clouds hand out credentials there.
    assert "169.254.0.0/16" in closed["egress"][0]["to"][0]["ipBlock"]["except"]
    (rule,) = opened["ingress"]
    assert rule["from"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "ingress-nginx"}
    (expression,) = opened["podSelector"]["matchExpressions"]
    assert set(expression["values"]) == {name for name, pod in PODS.items() if "ports" in pod["containers"][0]}


def test_no_manifest_trusts_a_whole_cluster() -> None:
    (config,) = (each["data"] for each in MANIFESTS if each["kind"] == "ConfigMap")
    assert ip_network(config["HEEDFUL_TRUSTED_PROXIES"]).num_addresses <= 16


def test_several_pods_are_spread_and_not_all_evicted() -> None:
    for each in MANIFESTS:
        if each["kind"] == "Deployment" and each["spec"]["replicas"] > 1:
            assert "podAntiAffinity" in each["spec"]["template"]["spec"]["affinity"]
            budgets = [one["spec"]["selector"] for one in MANIFESTS if one["kind"] == "PodDisruptionBudget"]
            assert each["spec"]["selector"] in budgets


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
