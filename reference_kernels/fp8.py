"""What the contracts of the ops that give fp8 numbers have in common."""

import numpy as np

#: The largest e4m3 number.
LARGEST = 448.0


def limited(values):
    """Values as far as fp8 reaches: what is beyond it becomes its largest number."""
    return np.clip(values, -LARGEST, LARGEST)
