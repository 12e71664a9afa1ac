"""The nouns, as frozen models that every surface shares: each is declared in one module and imported from here."""

from heedful.model.access import *
from heedful.model.base import *
from heedful.model.evaluation import *
from heedful.model.executions import *
from heedful.model.insight import *
from heedful.model.memory import *
from heedful.model.review import *
from heedful.model.sessions import *
