"""Everything that touches a connector's database, or reads SQL that somebody sent, in processes that can be killed.

`queries` is what the rest of the executions uses, `pool` has the processes, and `worker` is what runs in each of them.
Nothing is imported here, so that a process starts quickly.
"""
