// The diagnostics page: which GPUs of a workload are odd, when, and what they have in common. Without a workload, a list of them.

import { useMemo } from "react";
import { useScreen } from "../../state/use-screen.ts";
import { Chooser } from "./chooser.tsx";
import { DiagnosisView } from "./diagnosis-view.tsx";

export default function Diagnostics() {
  const { diagnostics, selection, at } = useScreen();
  const workload = diagnostics.workload ?? (selection?.kind === "workload" ? selection.key : null);
  // At a past time the life is known until then; the server clips the window to its start.
  const page = useMemo(
    () =>
      diagnostics.window !== null || at === null ? diagnostics : { ...diagnostics, window: { fromMs: 0, toMs: at } },
    [diagnostics, at],
  );
  if (workload === null) return <Chooser />;
  return <DiagnosisView key={workload} workload={workload} page={page} />;
}
