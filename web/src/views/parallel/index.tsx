// The parallel page: why a distributed step is slow, down to the operator. Without a trace in the link, a list to open or upload one.

import { useScreen } from "../../state/use-screen.ts";
import { Chooser } from "./chooser.tsx";
import { ParallelView } from "./parallel-view.tsx";

export default function Parallel() {
  const { parallel, selection } = useScreen();
  const workload = selection?.kind === "workload" ? selection.key : null;
  if (parallel.trace === null) return <Chooser workload={workload} />;
  return <ParallelView key={parallel.trace} trace={parallel.trace} page={parallel} workload={workload} />;
}
