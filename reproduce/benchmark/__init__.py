"""Speed of the hot paths, measured against their peers and the bare matrix product in one run."""
