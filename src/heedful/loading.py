"""Loading modules while the garbage collector rests, which would look at all of them several times."""

import gc
from importlib import import_module
from types import ModuleType


def load(name: str) -> ModuleType:
    if not gc.isenabled() or gc.get_freeze_count():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        # What was loaded stays, and joins the oldest objects without a look.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
