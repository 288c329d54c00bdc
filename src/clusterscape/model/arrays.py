"""Types of numpy arrays, named after their dtype. Defined once; ``tests/unit/model/test_shared_names.py`` checks it.

Imports numpy, unlike the modules of this package that a tracked script loads.
"""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Int8s = NDArray[np.int8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Uint8s = NDArray[np.uint8]
Uint32s = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
