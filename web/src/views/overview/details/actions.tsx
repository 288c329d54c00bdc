// Links from the selection to other views; only to views that exist.

import { TraceButton } from "../../../parts/traces/trace-button.tsx";
import { openView } from "../../../state/changes.ts";
import type { ViewName } from "../../../state/screen.ts";
import { useChangeScreen, useViewNames } from "../../../state/use-screen.ts";
import { Button } from "../../../widgets/button.tsx";

interface ActionsProps {
  /** Null: units of several. */
  readonly workload: string | null;
  readonly isWaiting: boolean;
}

interface Action {
  readonly view: ViewName;
  readonly title: string;
  readonly isUseful: (state: ActionsProps) => boolean;
}

const ACTIONS: readonly Action[] = [
  { view: "diagnostics", title: "Diagnose", isUseful: ({ isWaiting }) => !isWaiting },
  { view: "scheduling", title: "Why it waits", isUseful: ({ isWaiting }) => isWaiting },
  { view: "scheduling", title: "Why it waited", isUseful: ({ isWaiting }) => !isWaiting },
];

export function Actions(state: ActionsProps) {
  const change = useChangeScreen();
  const views = useViewNames();
  const shown = ACTIONS.filter(({ view, isUseful }) => views.includes(view) && isUseful(state));
  return (
    <>
      {shown.map(({ view, title }, index) => (
        <Button key={title} look={index === 0 ? "primary" : "plain"} onClick={() => change(openView(view))}>
          {title}
        </Button>
      ))}
      {state.workload !== null && <TraceButton workload={state.workload} />}
    </>
  );
}
