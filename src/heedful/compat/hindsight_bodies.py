"""What clients of Hindsight send, and how their memories are kept as facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from heedful.compat.bodies import Body, read
from heedful.errors import Invalid
from heedful.model import Fact, Fraction, Metadata, NotBlank, SignalType, Text

OURS = "hindsight"
"""The key of the metadata, of a fact and of a dataset, under which stands what only Hindsight has a name for."""

TAGS = f"{OURS}.tags"
BUDGETS = {"low": 10, "mid": 25, "high": 100}
"""How many facts a budget is good for."""

MOST = 1_000
"""Facts that one recall finds at most."""

RAW = frozenset({"world", "experience"})
"""The types that facts here answer to: nothing tells them apart."""

Matching = Literal["any", "all", "any_strict", "all_strict", "exact"]
Trait = Annotated[int, Field(ge=1, le=5)]


class Block(Body):
    """A part of a content."""

    type: str
    text: str | None = None


class Item(Body):
    """One memory to retain."""

    content: NotBlank | list[Block]
    timestamp: datetime | Literal["unset"] | None = None
    context: Text | None = None
    metadata: dict[str, Any] | None = None
    document_id: NotBlank | None = None
    tags: list[NotBlank] | None = None
    update_mode: Literal["replace", "append"] | None = None

    @property
    def text(self) -> str:
        """The content as one text."""
        if isinstance(self.content, str):
            return self.content
        other = next((block.type for block in self.content if block.type != "text"), None)
        if other is not None:
            raise Invalid(
                f"content has a block of type {other!r}",
                field="items.content",
                value=other,
                remedy="Only texts can be remembered here",
            )
        return "\n".join(block.text or "" for block in self.content)

    def about(self, document_tags: Sequence[str]) -> Metadata:
        """The metadata of the fact: the item's own, and what only Hindsight has a name for."""
        own = dict(self.metadata or {})
        if OURS in own:
            raise Invalid(
                f"metadata has the key {OURS!r}", field="items.metadata", value=OURS, remedy="Use another name for it"
            )
        at = self.timestamp.isoformat() if isinstance(self.timestamp, datetime) else None
        tags = list(dict.fromkeys([*(self.tags or []), *document_tags]))
        extra = {"tags": tags, "context": self.context, "timestamp": at}
        kept = {name: value for name, value in extra.items() if value}
        return own | {OURS: kept} if kept else own


class Retain(Body):
    """A request to retain."""

    items: list[Item]
    document_tags: list[NotBlank] | None = None


class LeastScores(Body):
    """The least that scores must be."""

    final: float | None = None
    semantic: float | None = None
    keyword: float | None = None
    reranker: float | None = None


class Recalling(Body):
    """A request to recall."""

    query: NotBlank
    types: list[str] | None = None
    type: str | None = None
    budget: Literal["low", "mid", "high"] | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 4096
    tags: list[str] | None = None
    tags_match: Matching = "any"
    tag_groups: list[Any] | None = None
    min_scores: LeastScores | None = None
    boost_by_usefulness: bool = False
    usefulness_weight: Fraction = 0.3
    min_usefulness: Fraction = 0.0

    @property
    def filter(self) -> TagFilter:
        return TagFilter(tags=self.tags or [], match=self.tags_match)

    @property
    def top_k(self) -> int:
        return BUDGETS[self.budget or "mid"]

    @property
    def wants_facts(self) -> bool:
        """Whether the types it asks for include those that facts have."""
        wanted = {*(self.types or []), *([self.type] if self.type else [])}
        return not wanted or bool(wanted & RAW)

    def refuse_what_has_no_like(self) -> None:
        """A filter that is not applied would be worse than an error."""
        if self.tag_groups:
            raise Invalid("tag_groups has no like here", field="tag_groups", remedy="Use tags and tags_match")
        least = self.min_scores
        for name in ("semantic", "keyword", "reranker"):
            if least is not None and getattr(least, name) is not None:
                raise Invalid(
                    f"min_scores.{name} has no like here", field=f"min_scores.{name}", remedy="Use min_scores.final"
                )


class TagFilter(Body):
    """Which facts pass by their tags."""

    tags: list[str]
    match: Matching

    @property
    def wheres(self) -> list[Metadata | None]:
        """Conditions whose facts together are all that can pass."""
        untagged: Metadata = {TAGS: {"exists": False}}
        if not self.tags:
            return [untagged if self.match == "exact" else None]
        tagged: Metadata = {TAGS: self.tags if self.match.startswith("any") else self.tags[0]}
        return [tagged] if self.match not in ("any", "all") else [tagged, untagged]

    def passes(self, metadata: Metadata) -> bool:
        own, wanted = set(extras(metadata).get("tags", [])), set(self.tags)
        if self.match == "exact":
            return own == wanted
        if not wanted:
            return True
        if not own:
            return self.match in ("any", "all")
        return wanted <= own if self.match.startswith("all") else bool(wanted & own)

    def enough(self, top_k: int) -> int:
        """How many to look at, so that `top_k` are left: conditions can name one of several tags that all must hold."""
        return MOST if len(self.tags) > 1 and not self.match.startswith("any") else top_k


class SignalItem(Body):
    """One signal."""

    fact_id: NotBlank
    signal_type: SignalType
    confidence: Fraction = 1.0
    query: NotBlank
    context: Text | None = None


class Signals(Body):
    """A request to signal."""

    signals: list[SignalItem]


class Traits(Body):
    """The disposition of a bank."""

    skepticism: Trait | None = None
    literalism: Trait | None = None
    empathy: Trait | None = None


class Profile(Body):
    """What may be said of a bank; what is left out stays as it is."""

    name: Text | None = None
    mission: Text | None = None
    reflect_mission: Text | None = None
    background: Text | None = None
    disposition: Traits | None = None
    disposition_skepticism: Trait | None = None
    disposition_literalism: Trait | None = None
    disposition_empathy: Trait | None = None

    def merged(self, earlier: Mapping[str, Any]) -> Metadata:
        """The profile with these changes."""
        said = {
            "name": self.name,
            "mission": self.mission if self.mission is not None else self.reflect_mission,
            "background": self.background,
        }
        traits = (self.disposition or Traits()).model_dump() | {
            trait: value
            for trait in Traits.model_fields
            if (value := getattr(self, f"disposition_{trait}")) is not None
        }
        disposition = dict(earlier.get("disposition", {})) | {k: v for k, v in traits.items() if v is not None}
        kept = dict(earlier) | {name: value for name, value in said.items() if value is not None}
        return kept | ({"disposition": disposition} if disposition else {})


class Settings(Body):
    """Changes of the settings of a bank; those that say how Hindsight reads texts have no like here."""

    updates: dict[str, Any]

    @property
    def profile(self) -> Profile:
        known = {"reflect_mission", *(f"disposition_{trait}" for trait in Traits.model_fields)}
        other = sorted(self.updates.keys() - known)
        if other:
            raise Invalid(
                f"updates.{other[0]} has no like here",
                field=f"updates.{other[0]}",
                value=self.updates[other[0]],
                remedy=f"Change {', '.join(sorted(known))}",
            )
        return read(Profile, self.updates)


class Listing(Body):
    """The parameters of a list."""

    q: str | None = None
    limit: Annotated[int, Field(ge=0)] = 100
    offset: Annotated[int, Field(ge=0)] = 0
    type: str | None = None
    document_id: str | None = None
    tags: list[str] | None = None
    tags_match: Matching = "any"
    state: Literal["valid", "invalidated"] | None = None
    entity_id: str | None = None
    consolidation_state: str | None = None
    time_field: str | None = None
    start_date: str | None = None
    end_date: str | None = None

    def refuse_what_has_no_like(self) -> None:
        """A filter that is not applied would be worse than an error."""
        for name in ("entity_id", "consolidation_state", "time_field", "start_date", "end_date"):
            if getattr(self, name) is not None:
                raise Invalid(f"{name} has no like here", field=name, remedy="Leave it out")

    @property
    def filters(self) -> bool:
        """Whether some facts may be left out."""
        return bool(self.q or self.document_id is not None or self.tags or self.tags_match == "exact")

    def passes(self, fact: Fact) -> bool:
        """Whether a fact, of the right document, is wanted."""
        words = f"{fact.text}\n{extras(fact.metadata).get('context', '')}"
        tags = TagFilter(tags=self.tags or [], match=self.tags_match)
        return tags.passes(fact.metadata) and (self.q or "").lower() in words.lower()


def extras(metadata: Metadata) -> Metadata:
    """What only Hindsight has a name for."""
    found = metadata.get(OURS)
    return found if isinstance(found, dict) else {}
