import pytest

from clusterscape.collect.prometheus import PrometheusCollector, restrict_matcher
from clusterscape.errors import ConfigError
from clusterscape.model import UnixMs
from clusterscape.settings import PrometheusSettings


@pytest.mark.parametrize(
    ("matcher", "expected"),
    [
        ('{__name__=~"DCGM_.*"}', '{__name__=~"DCGM_.*",__name__="X"}'),
        (' { job="a}b", cluster=~\'c"}\' , } ', '{job="a}b", cluster=~\'c"}\',__name__="X"}'),
        ("{}", '{__name__="X"}'),
        ('X{job="a"}', 'X{job="a"}'),
        ("X", "X"),
        ('{a="b"} or {c="d"}', '{a="b"} or {c="d"}'),
    ],
)
def test_a_matcher_is_narrowed_to_one_metric_when_it_is_all_braces(matcher: str, expected: str) -> None:
    assert restrict_matcher(matcher, "X") == expected


@pytest.mark.parametrize("url", [None, "127.0.0.1:9090", "ftp://host", "http://", "http://host:port"])
def test_the_setting_is_named_when_the_address_is_wrong(url: str | None) -> None:
    with pytest.raises(ConfigError, match=r"collect\.prometheus\.url"):
        PrometheusCollector(PrometheusSettings(url=url), lambda: UnixMs(0))
