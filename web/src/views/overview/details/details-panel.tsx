// What is selected, in detail.

import { useEffect } from "react";
import { select } from "../../../state/changes.ts";
import type { Selection } from "../../../state/selection.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
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
  useEffect(() => {
    const close = (event: KeyboardEvent) => {
      const isElsewhere = event.target instanceof Element && event.target.closest("input, [role=dialog]") !== null;
      if (event.key === "Escape" && !event.defaultPrevented && !isElsewhere) change(select(null));
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [change]);
  const Panel = PANELS[selection.kind];
  return <Panel key={`${selection.kind}:${selection.key}`} name={selection.key} />;
}
