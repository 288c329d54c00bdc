"""The order that the guide adds works as it is printed there."""

import re
from pathlib import Path

import numpy as np

from clusterscape.simulate.batch import PRESETS, Backfill, BatchJobs, Policy, Scenario, simulate

GUIDE = Path(__file__).parents[4] / "docs/guide/scheduling-policies.md"


def test_narrow_job_goes_first_when_the_order_of_the_guide_is_taken() -> None:
    printed = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict[str, object] = {"__name__": "narrow_first"}
    exec(compile(printed[0], str(GUIDE), "exec"), names)
    policy = names["POLICY"]
    places = np.arange(3)
    times = np.array([10, 10, 10])
    jobs = BatchJobs(places, places, times, times, times, np.array([4, 4, 2]), places, places)
    scenario = Scenario(jobs, 4, as_policy(policy), Backfill("none"), "request", PRESETS["clusterscape"])
    assert simulate(scenario).start_s.tolist() == [0, 20, 10]
    assert "max_wait_s=86400" in repr(policy)


def as_policy(policy: object) -> Policy:
    """Check that the guide's object is a policy."""
    assert hasattr(policy, "score")
    assert hasattr(policy, "is_static")
    return policy
