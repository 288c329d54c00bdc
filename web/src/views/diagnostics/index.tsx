// Diagnostics: which GPU of a run is odd, when, and what the odd ones have in common. Without a workload, those to choose from.

import { useMemo } from "react";
import { useScreen } from "../../state/use-screen.ts";
import { Chooser } from "./chooser.tsx";
import { DiagnosisView } from "./diagnosis-view.tsx";

export default function Diagnostics() {
  const { diagnostics, selection, at } = useScreen();
  const workload = diagnostics.workload ?? (selection?.kind === "workload" ? selection.key : null);
  // In the past a life is known until then; the server cuts the window to where it began.
  const page = useMemo(
    () =>
      diagnostics.window !== null || at === null ? diagnostics : { ...diagnostics, window: { fromMs: 0, toMs: at } },
    [diagnostics, at],
  );
  if (workload === null) return <Chooser />;
  return <DiagnosisView key={workload} workload={workload} page={page} />;
}
