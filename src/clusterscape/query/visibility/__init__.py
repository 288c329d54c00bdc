"""Who sees whose names on a private site: the stores as one viewer may see them, and the queries over them.

What is enforced here is enforced for every answer; routes decide only who may ask at all.
"""

from clusterscape.query.visibility.sights import Sight, sight_of
from clusterscape.query.visibility.veil import Veil

__all__ = ["Sight", "Veil", "sight_of"]
