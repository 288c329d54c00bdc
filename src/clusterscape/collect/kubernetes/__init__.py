"""Kubernetes as a source: nodes, pods by their owners, queues of Kueue and Volcano, and DRA claims, through list and watch."""

from clusterscape.collect.kubernetes.collector import KubernetesCollector

__all__ = ["KubernetesCollector"]
