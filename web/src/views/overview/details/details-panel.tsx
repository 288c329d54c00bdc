// What is selected, in detail.

import { select } from "../../../state/changes.ts";
import type { Selection } from "../../../state/selection.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { useEscape } from "../../../widgets/use-escape.ts";
import { NodeDetails } from "./node-details.tsx";
import { UnitDetails } from "./unit-details.tsx";
import { GroupDetails, SelectionDetails } from "./units-details.tsx";
import { WorkloadDetails } from "./workload-details.tsx";

const PANELS = {
  workload: WorkloadDetails,
  unit: UnitDetails,
  node: NodeDetails,
  group: GroupDetails,
  units: SelectionDetails,
} as const;

export function DetailsPanel({ selection }: { selection: Selection }) {
  const change = useChangeScreen();
  useEscape(() => change(select(null)));
  const Panel = PANELS[selection.kind];
  return <Panel key={`${selection.kind}:${selection.key}`} name={selection.key} />;
}
