"""The dashboard: feedback on answers, and what can be done about it, as pages for a browser.

A page is a function of `PageContext` that returns `here.html("name.html", …)`; its template extends base.html and uses
the macros of macros.html as `ui`. An action is a function of `PageContext` that reads `here.form` and returns
`ActionResult`; its form is made with `{% call ui.form("name", {"hidden": value}) %}…{% endcall %}` or `ui.button`.
Buttons are shown to those who may: `{% if here.may("supersede") %}`. A module of pages lists both as PAGES and ACTIONS.
"""
