"""Figures, drawn from results CSVs alone, in one style."""
