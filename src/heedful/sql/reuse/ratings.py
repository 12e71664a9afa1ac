"""What people say is right and wrong on one connector, by execution. Pure: what changed is passed in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from heedful.ranking.signals import suffices
from heedful.storage.executions.proofs import Complaint, Proof, Wrong


class Ratings:
    """The proofs that count, and the SQL templates that are blocked, since enough people say that they are wrong.

    What is said of everybody's SQL counts for all; what an audience says of its own, for that audience. What is taken
    in execution by execution equals what is taken in at once.
    """

    def __init__(self, authors: int, retained: Iterable[Wrong] = ()) -> None:
        self._authors = authors
        self._proofs: dict[str, Proof] = {}
        self._names: dict[bytes, set[str]] = defaultdict(set)
        self._complaints: dict[str, Wrong] = {}
        self._about: dict[bytes, set[str]] = defaultdict(set)
        self._retained: dict[bytes, list[Wrong]] = defaultdict(list)
        for each in retained:
            self._retained[each.template].append(each)
        self._of: dict[str | None, set[str]] = defaultdict(set)
        self._blocked: dict[bytes, dict[str | None, str | None]] = {}
        self._active: dict[str, frozenset[str | None]] = {}
        self._settle(list(self._retained))

    def complaint(self, template: bytes, audience: str | None) -> str | None:
        """What was said last against a template that is blocked for an audience, perhaps nothing; None if it isn't."""
        said = self._blocked.get(template, {})
        place = audience if audience in said else None
        return (said[place] or "") if place in said else None

    def proven(
        self, audience: str | None, names: Iterable[str] | None = None
    ) -> dict[str, frozenset[str | None] | None]:
        """Who has proven what, by execution, for exactly this audience: all of it, or of these names, where None is
        what isn't proven for it. Blocked templates are not."""
        of = self._of.get(audience, set())
        return {name: self._active.get(name) if name in of else None for name in (of if names is None else names)}

    def take_in(self, ids: Collection[str], proofs: Mapping[str, Proof], complaints: Mapping[str, Wrong]) -> set[str]:
        """Replaces what is known of these executions; returns those that may be proven now, or no longer be."""
        touched: set[bytes] = set()
        for name in ids:
            if (proof := self._proofs.pop(name, None)) is not None:
                self._names[proof.template].discard(name)
                self._of[proof.audience].discard(name)
                self._active.pop(name, None)
                touched.add(proof.template)
            if (wrong := self._complaints.pop(name, None)) is not None:
                self._about[wrong.template].discard(name)
                touched.add(wrong.template)
        for name, proof in proofs.items():
            self._proofs[name] = proof
            self._names[proof.template].add(name)
            self._of[proof.audience].add(name)
            touched.add(proof.template)
        for name, wrong in complaints.items():
            self._complaints[name] = wrong
            self._about[wrong.template].add(name)
            touched.add(wrong.template)
        self._settle(touched)
        return {*ids, *(name for template in touched for name in self._names.get(template, ()))}

    def _settle(self, templates: Iterable[bytes]) -> None:
        for template in templates:
            said: dict[str | None, list[Complaint]] = {None: []}
            about = (self._complaints[name] for name in self._about.get(template, ()))
            for wrong in (*self._retained.get(template, ()), *about):
                said.setdefault(wrong.audience, []).extend(wrong.said)
            blocked: dict[str | None, str | None] = {}
            for audience, own in said.items():
                counting = own if audience is None else [*said[None], *own]
                if suffices([(each.kind, each.author) for each in counting], self._authors):
                    blocked[audience] = max(counting, key=lambda each: each.seq).comment
            self._blocked.pop(template, None)
            if blocked:
                self._blocked[template] = blocked
            for name in self._names.get(template, ()):
                proof = self._proofs[name]
                if blocked.keys() & {None, proof.audience}:
                    self._active.pop(name, None)
                else:
                    self._active[name] = proof.authors
