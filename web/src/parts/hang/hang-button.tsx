// A button that opens who hangs in a workload, if its trackers have looked; else the command that finds it out.

import { useHangs } from "../../data/runs.ts";
import { openHang } from "../../state/runs.ts";
import { useChangeScreen, useViewNames } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";

export function HangButton({ workload }: { workload: string }) {
  const change = useChangeScreen();
  const views = useViewNames();
  const newest = useHangs(workload).value?.rows[0];
  if (newest === undefined || !views.includes("runs")) return null;
  return (
    <Button
      data-tip={`${newest.title}${newest.is_over ? ", until it went on or ended" : ""}`}
      onClick={() => change(openHang(newest))}
    >
      Who hangs?
    </Button>
  );
}
