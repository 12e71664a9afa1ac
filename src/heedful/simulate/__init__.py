"""A simulated user: asks, looks at what is shown, and says what was useful, well or badly.

For tests, demonstrations and benchmarks of a feedback loop, where the truth is known and people are not at hand.
Everything is drawn from a seed, so that a run can be repeated.
"""

from heedful.simulate.people import Judgement, Need, SimulatedUser

__all__ = ["Judgement", "Need", "SimulatedUser"]
