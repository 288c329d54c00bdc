// How a workload's id is shown: `slurm:4711`, `kubernetes:team-a.train.1f3c9a2b`.

/** What its scheduler calls it: `4711`; `k8s team-a/train`, whose number nobody knows, with its scheduler. */
export function nativeId(workload: string): string {
  const native = workload.slice(workload.indexOf(":") + 1);
  if (!workload.startsWith("kubernetes:")) return native;
  const pod = native.includes("/"); // as an exporter names it that no scheduler knows
  const [, namespace, name] = /^([^.]+)\.(.+?)(?:\.[0-9a-f-]{1,8})?$/.exec(native) ?? [];
  return pod || name === undefined ? `k8s ${native}` : `k8s ${namespace}/${name}`;
}
