"""Collects from Kubernetes: nodes, pods by their owners, queues of Kueue and Volcano, and DRA claims, by list and watch.

``access``: URL, TLS and credentials of the API server.
``client``: requests to the API server: one object, a list in pages, a watch as events.
``collector``: the Kubernetes collector.
``doctor``: checks for ``clusterscape doctor``.
``endings``: maps how pods and their owners ended to our states.
``facts``: the parsed fields of each kind of object.
``grouping``: groups pods into workloads.
``holdings``: the GPUs that a workload's pods hold.
``inventory``: builds nodes, units and partitions.
``meta``: parses the metadata of any object.
``parse_devices``: parses dynamic resource allocation (DRA).
``parse_nodes``: parses nodes: GPUs, GPU labels, whether they are schedulable.
``parse_owners``: parses owners of pods.
``parse_pods``: parses pods: requests, node, why they wait or how they ended.
``parse_queues``: parses queues and their waiting workloads.
``reading``: converts a snapshot to nodes, queues and workloads.
``reasons``: why a workload waits: a reason code and the scheduler's message.
``reflector``: keeps the objects of one kind up to date: lists once, then watches.
``resources``: the kinds that are read: an entry here, its parser, and the ``ClusterRole`` in deploy/kubernetes.
``snapshot``: all watched objects at one moment, by kind.
``statuses``: the status of each part of the API, with hints.
``tokens``: bearer tokens.
``values``: tolerant readers of the API's JSON: invalid values are None.
``workloads``: builds workloads from groups of pods.
"""

from clusterscape.collect.kubernetes.collector import KubernetesCollector

__all__ = ["KubernetesCollector"]
