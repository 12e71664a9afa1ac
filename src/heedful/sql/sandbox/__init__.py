"""Everything that touches a connector's database, or reads SQL that somebody sent, in processes that can be killed.

`pool` sends the queries to them, `worker` runs in them. Nothing is imported here, so that a process starts quickly.
"""
