// Diagnostics: which GPU of a run is odd, when, and what the odd ones have in common. Without a workload, those to choose from.

import { useScreen } from "../../state/use-screen.ts";
import { Chooser } from "./chooser.tsx";
import { DiagnosisView } from "./diagnosis-view.tsx";

export default function Diagnostics() {
  const { diagnostics, selection } = useScreen();
  const workload = diagnostics.workload ?? (selection?.kind === "workload" ? selection.key : null);
  if (workload === null) return <Chooser />;
  return <DiagnosisView key={workload} workload={workload} page={diagnostics} />;
}
