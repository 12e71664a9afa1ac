"""The interfaces of other systems on Heedful, one folder each: change an import or an address, keep the calls.

`heedful.compat.<system>` has the names of its Python interface, `routes` its HTTP interface, which the server mounts,
and `importer` reads its exports. All are optional.
"""

SERVED = ("hindsight", "text2everything", "cognee", "mongodb_session_manager")
"""Systems whose clients find their own routes on the server."""
