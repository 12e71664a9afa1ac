"""What is passed to PostgreSQL's library: every parameter by name, so that nothing around the process fills a gap.

Left to itself, it takes what isn't said from `PG*` variables, password files, service files and certificates in the
home folder, and so would log in with rights that belong to the operator and not to the connector.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import URL

from heedful.sql.databases.contract import CONNECT_SECONDS

_NOWHERE = "/dev/null/none"
"""A path that can't exist; an empty one would mean the file in the home folder."""

_ALWAYS = {
    "host": "",
    "hostaddr": "",
    "port": "5432",
    "user": "",
    "dbname": "",
    "password": "",
    "passfile": _NOWHERE,
    "channel_binding": "prefer",
    "client_encoding": "UTF8",
    "application_name": "heedful",
    "connect_timeout": str(CONNECT_SECONDS),
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "sslmode": "prefer",
    "sslcompression": "0",
    "sslcert": _NOWHERE,
    "sslkey": _NOWHERE,
    "sslpassword": "",
    "sslrootcert": "",
    "sslcrl": "",
    "ssl_min_protocol_version": "TLSv1.2",
    "ssl_max_protocol_version": "",
    "requirepeer": "",
    "gssencmode": "disable",
    "krbsrvname": "postgres",
    "gsslib": "",
    "target_session_attrs": "any",
}
_SINCE = {
    140000: {"sslcrldir": "", "sslsni": "1"},
    # Nor may it use the operator's Kerberos ticket.
    160000: {"sslcertmode": "disable", "require_auth": "!gss,!sspi", "load_balance_hosts": "disable"},
    170000: {"sslnegotiation": "postgres", "gssdelegation": "0"},
    180000: {"min_protocol_version": "3.0", "max_protocol_version": "3.0"},
}
"""Parameters that newer versions of the library have in addition."""


def parameters(address: URL, version: int, options: str) -> dict[str, Any]:
    """All parameters for a library of this version; `options` are those of the server."""
    result = dict(_ALWAYS)
    for since, extra in _SINCE.items():
        if version >= since:
            result |= extra
    address_parts = {
        "host": address.host,
        "port": None if address.port is None else str(address.port),
        "user": address.username,
        "password": address.password,
        "dbname": address.database,
    }
    result |= {name: value for name, value in address_parts.items() if value}
    result |= {name: str(value) for name, value in address.query.items()}
    return result | {"options": options}
