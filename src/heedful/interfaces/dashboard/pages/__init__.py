"""The pages, one module each: what it shows is in PAGES, what can be done there in ACTIONS.

A page is a function of `PageContext` that returns `here.html("name.html", …)`; its template extends base.html and uses
the macros of macros.html as `ui`. An action is a function of `PageContext` that reads `here.form` and returns
`ActionResult`; its form is made with `{% call ui.form("name", {"hidden": value}) %}…{% endcall %}` or `ui.button`.
Buttons are shown to those who may: `{% if here.may("supersede") %}`.
"""

from __future__ import annotations

from heedful.interfaces.dashboard.pages import (
    executions,
    experiments,
    facts,
    learning,
    overview,
    review,
    sessions,
    settings,
)
from heedful.interfaces.dashboard.registry import Action, Page, Section

SECTIONS = (
    Section("overview", "Overview", "o"),
    Section("review", "Review", "r"),
    Section("sessions", "Sessions", "s"),
    Section("facts", "Facts", "f"),
    Section("learning", "How it learns", "l"),
    Section("executions", "Executions", "e"),
    Section("experiments", "Experiments", "x"),
    Section("settings", "Settings", scope="admin"),
)

_MODULES = (overview, review, sessions, facts, learning, executions, experiments, settings)

PAGES: tuple[Page, ...] = tuple(page for module in _MODULES for page in module.PAGES)
ACTIONS: tuple[Action, ...] = tuple(action for module in _MODULES for action in module.ACTIONS)
