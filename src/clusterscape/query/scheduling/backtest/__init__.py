"""How good forecasts of waits would have been on job traces. Nothing of the live queue uses this."""
