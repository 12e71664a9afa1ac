"""Settings: projects, keys, connectors, alerts and policies; for admins."""

from __future__ import annotations

from typing import cast

from starlette.responses import Response

from heedful.access.credentials import to_key
from heedful.clock import to_stored
from heedful.errors import Invalid
from heedful.interfaces.dashboard import views
from heedful.interfaces.dashboard.site import Action, ActionResult, PageContext, PageRoute, Undo
from heedful.model import SCOPES, Key, NewKey, PolicyName, Scope
from heedful.storage import key_rows as keys
from heedful.storage import scopes


def settings_page(here: PageContext, new_key: NewKey | None = None) -> Response:
    pending = here.query.get("alerts", "pending") == "pending"
    alerts = here.heedful.sessions.alerts(pending=pending, **here.paging)
    response = here.html(
        "settings.html",
        projects=_projects(here),
        keys=here.heedful.keys.list(),
        everywhere=_all_keys(here) if here.visitor.caller.project is None else [],
        connectors=here.heedful.connectors.list(),
        pending=pending,
        alerts=alerts,
        scopes=SCOPES,
        new_key=new_key,
    )
    if new_key is not None:
        # A key is shown once, and not kept by browsers either.
        response.headers["Cache-Control"] = "no-store"
    return response


def make_key(here: PageContext) -> Response:
    scopes = cast(list[Scope], here.form.get("scopes", "").split())
    if not scopes:
        raise Invalid("no scope is chosen", field="scopes", remedy="Choose what the key may do")
    return settings_page(here, new_key=here.heedful.keys.create(here.field("name"), scopes=scopes))


def revoke_key(here: PageContext) -> ActionResult:
    key = here.heedful.keys.revoke(here.field("key_id"))
    return ActionResult(f"The key “{key.name}” is revoked: servers refuse it within a second.")


def discard_alert(here: PageContext) -> ActionResult:
    here.heedful.sessions.discard_alert(here.field("alert_id"))
    return ActionResult("The alert was given up.")


def deliver_alerts(here: PageContext) -> ActionResult:
    count = here.heedful.sessions.deliver_alerts()
    if not count:
        return ActionResult("Nothing was delivered here: the programs that have the channels deliver what is due.")
    return ActionResult("1 alert was delivered." if count == 1 else f"{count} alerts were delivered.")


def set_policy(here: PageContext) -> ActionResult:
    dataset, policy = here.form.get("dataset") or None, cast(PolicyName | None, here.form.get("policy") or None)
    chosen = views.policies(here.heedful)
    before = chosen.project if dataset is None else chosen.datasets.get(dataset)
    here.heedful.set_policy(policy, dataset=dataset)
    where = "the project" if dataset is None else f"“{dataset}”"
    undo = Undo("set_policy", {"dataset": dataset or "", "policy": before or ""})
    return ActionResult(f"Recalls of {where} use the policy {policy or 'that is usual there'}.", undo=undo)


def _projects(here: PageContext) -> dict[str, int]:
    with here.site.store.database.read() as connection:
        counts = scopes.facts_by_project(connection, to_stored(here.site.store.clock()))
    visible = here.site.project_names(here.visitor.caller.project)
    return {name: counts.get(name, 0) for name in visible}


def _all_keys(here: PageContext) -> list[Key]:
    with here.site.store.database.read() as connection:
        return [to_key(row) for row in keys.list_keys(connection, None)]


PAGES = (PageRoute("/settings", settings_page, "admin"),)
ACTIONS = (
    Action("make_key", "keys.create", "make a key", make_key, ("name",)),
    Action("revoke_key", "keys.revoke", "revoke a key", revoke_key),
    Action("discard_alert", "sessions.discard_alert", "give up an alert", discard_alert),
    Action("deliver_alerts", "sessions.deliver_alerts", "deliver alerts", deliver_alerts),
    Action("set_policy", "set_policy", "change the policy", set_policy),
)
