"""What people say is right and wrong on one connector, by execution. Pure: what changed is passed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from heedful.ranking.signals import suffices
from heedful.storage.executions.proofs import Complaint, Proof

Complaints = Mapping[str, tuple[bytes, Sequence[Complaint]]]
"""The template of each execution that opinions say is wrong, and what they say."""


class Ratings:
    """The proofs that count, and the SQL templates that are blocked, since enough people say that they are wrong.

    What is taken in execution by execution equals what is taken in at once.
    """

    def __init__(self, authors: int, retained: Iterable[tuple[bytes, Complaint]] = ()) -> None:
        self._authors = authors
        self._proofs: dict[str, Proof] = {}
        self._names: dict[bytes, set[str]] = defaultdict(set)
        self._complaints: dict[str, tuple[bytes, Sequence[Complaint]]] = {}
        self._about: dict[bytes, set[str]] = defaultdict(set)
        self._retained: dict[bytes, list[Complaint]] = defaultdict(list)
        for template, complaint in retained:
            self._retained[template].append(complaint)
        self.blocked: dict[bytes, str | None] = {}
        """The templates that are blocked, with what was said last."""
        self.active: dict[str, frozenset[str | None]] = {}
        """Who has proven what, by execution; without blocked templates."""
        self._settle(list(self._retained))

    def take_in(self, ids: Collection[str], proofs: Mapping[str, Proof], complaints: Complaints) -> set[str]:
        """Replaces what is known of these executions; returns those that may be proven now, or no longer be."""
        touched: set[bytes] = set()
        for name in ids:
            if (proof := self._proofs.pop(name, None)) is not None:
                self._names[proof.template].discard(name)
                self.active.pop(name, None)
                touched.add(proof.template)
            if (said := self._complaints.pop(name, None)) is not None:
                self._about[said[0]].discard(name)
                touched.add(said[0])
        for name, proof in proofs.items():
            self._proofs[name] = proof
            self._names[proof.template].add(name)
            touched.add(proof.template)
        for name, said in complaints.items():
            self._complaints[name] = said
            self._about[said[0]].add(name)
            touched.add(said[0])
        self._settle(touched)
        return {*ids, *(name for template in touched for name in self._names.get(template, ()))}

    def _settle(self, templates: Iterable[bytes]) -> None:
        for template in templates:
            said = [*self._retained.get(template, ())]
            for name in self._about.get(template, ()):
                said += self._complaints[name][1]
            self.blocked.pop(template, None)
            if suffices([(each.kind, each.author) for each in said], self._authors):
                self.blocked[template] = max(said, key=lambda each: each.seq).comment
            for name in self._names.get(template, ()):
                if template in self.blocked:
                    self.active.pop(name, None)
                else:
                    self.active[name] = self._proofs[name].authors
