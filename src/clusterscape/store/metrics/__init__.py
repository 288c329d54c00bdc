"""Samples: the embedded store and VictoriaMetrics behind one contract."""
