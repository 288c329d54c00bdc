// How a workload's id is shown and read: `slurm:4711`, `kubernetes:team-a.train.1f3c9a2b`.

/** `3`, `3_7`, `3+1`, `3.0`, `3.batch`, `3;cluster`, as Slurm writes jobs, tasks, components and steps; in links `+` is a space. */
const SLURM = /^(?:slurm:)?(\d{1,12})(?:([_+ ])(\d{1,9}))?(?:\.[a-z0-9+]{1,20})?(?:;\S{1,64})?$/i;

/** Our id for what Slurm writes; all else stays. The server knows more of them: raw numbers of array tasks, for one. */
export function qualifyWorkload(text: string): string {
  const [, job, mark, part] = SLURM.exec(text.trim()) ?? [];
  if (job === undefined) return text;
  return `slurm:${job}${part === undefined ? "" : `${mark === "_" ? "_" : "+"}${part}`}`;
}

/** What its scheduler calls it: `4711`; `k8s team-a/train`, whose number nobody knows, with its scheduler. */
export function nativeId(workload: string): string {
  const native = workload.slice(workload.indexOf(":") + 1);
  if (!workload.startsWith("kubernetes:")) return native;
  const pod = native.includes("/"); // as an exporter names it that no scheduler knows
  const [, namespace, name] = /^([^.]+)\.(.+?)(?:\.[0-9a-f-]{1,8})?$/.exec(native) ?? [];
  return pod || name === undefined ? `k8s ${native}` : `k8s ${namespace}/${name}`;
}
