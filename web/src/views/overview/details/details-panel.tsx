// The details of the selection.

import type { Selection } from "../../../state/selection.ts";
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
  const Panel = PANELS[selection.kind];
  return <Panel key={`${selection.kind}:${selection.key}`} name={selection.key} />;
}
