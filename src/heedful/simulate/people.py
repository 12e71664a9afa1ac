"""Who comes to the help desk: customers with names and habits, visitors without, and staff."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from heedful.simulate.shop import Language
from heedful.simulate.user import SimulatedUser

FIRST = ("ana", "ben", "carla", "dmitri", "elif", "femke", "goran", "hana", "ivo", "jun", "kofi", "lena")
LAST = ("alves", "berg", "costa", "demir", "eriksen", "faria", "gomez", "huber")

STAFF = ("mara (staff)", "tom (staff)", "ines (staff)")
ADVERSARY = "vic.tor"
JUDGE = "program:judge"
DETECTOR = "program:detector"


@dataclass(frozen=True, slots=True)
class Person:
    """One who asks; without a name, nobody knows who it was."""

    author: str | None
    user: SimulatedUser
    tier: str
    channel: str
    language: Language
    is_adversary: bool = False


def customers(random: Random, count: int = 60) -> list[Person]:
    """The customers with names. Some err often, and one says the contrary of what is true."""
    names = [f"{first}.{last}" for first in FIRST for last in LAST]
    found = [_person(random, name) for name in random.sample(names, count)]
    liar = SimulatedUser(random.randrange(2**32), author=ADVERSARY, examination=0.2, adversarial=True)
    return [*found, Person(ADVERSARY, liar, "free", "web", "en", is_adversary=True)]


def visitor(random: Random) -> Person:
    """Somebody without a name."""
    return _person(random, None)


def staff(random: Random) -> Person:
    """One of the shop's own people."""
    name = random.choice(STAFF)
    user = SimulatedUser(random.randrange(2**32), author=name, noise=0.03, examination=0.4)
    return Person(name, user, "staff", "web", "en")


def _person(random: Random, author: str | None) -> Person:
    user = SimulatedUser(
        random.randrange(2**32),
        author=author,
        noise=random.choices((0.02, 0.08, 0.3), (6, 3, 1))[0],
        examination=random.uniform(0.3, 1.2),
        explicit=random.random() < 0.7,
    )
    languages: tuple[Language, ...] = ("en", "de", "es")
    return Person(
        author,
        user,
        random.choices(("free", "plus", "business"), (60, 30, 10))[0],
        random.choices(("web", "app"), (58, 42))[0],
        random.choices(languages, (86, 9, 5))[0],
    )
