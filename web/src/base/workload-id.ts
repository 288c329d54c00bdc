// Parses and formats the id of a workload: `slurm:4711`, `kubernetes:team-a.train.1f3c9a2b`.

/** `3`, `3_7`, `3+1`, `3.0`, `3.batch`, `3;cluster`, as Slurm writes jobs, tasks, components and steps; in links `+` is a space. */
const SLURM = /^(?:slurm:)?(\d{1,12})(?:([_+ ])(\d{1,9}))?(?:\.[a-z0-9+]{1,20})?(?:;\S{1,64})?$/i;

/** The workload id for a Slurm job id; other texts are unchanged. The server resolves more forms, such as raw ids of array tasks. */
export function qualifyWorkload(text: string): string {
  const [, job, mark, part] = SLURM.exec(text.trim()) ?? [];
  if (job === undefined) return text;
  return `slurm:${job}${part === undefined ? "" : `${mark === "_" ? "_" : "+"}${part}`}`;
}

/** The id that the scheduler uses: `4711`; `k8s team-a/train` for Kubernetes. */
export function nativeId(workload: string): string {
  const native = workload.slice(workload.indexOf(":") + 1);
  if (!workload.startsWith("kubernetes:")) return native;
  const pod = native.includes("/"); // named by an exporter and unknown to the scheduler
  const [, namespace, name] = /^([^.]+)\.(.+?)(?:\.[0-9a-f-]{1,8})?$/.exec(native) ?? [];
  return pod || name === undefined ? `k8s ${native}` : `k8s ${namespace}/${name}`;
}
