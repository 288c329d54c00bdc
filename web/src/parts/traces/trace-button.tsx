// A button that opens the newest trace of a workload in the parallel view, if it has one.

import { useTraces } from "../../data/traces.ts";
import { openTrace } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";

export function TraceButton({ workload }: { workload: string }) {
  const change = useChangeScreen();
  const newest = useTraces(workload).value?.traces.find(({ state }) => state === "ready");
  if (newest === undefined) return null;
  return (
    <Button
      data-tip={newest.headline ?? `Trace ${newest.name}: nothing significant`}
      onClick={() => change(openTrace(newest.trace_id))}
    >
      Parallel view
    </Button>
  );
}
