// Toolbar of the graph: title, window history, search, comparison, view and export.

import type { TraceRow } from "../../api/generated.ts";
import { changeParallel, type Drawing, isFlow, type ParallelPage } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Button, IconButton } from "../../widgets/button.tsx";
import { ExportMenu } from "../../widgets/export-menu.tsx";
import { Segmented, type SegmentedOption } from "../../widgets/segmented.tsx";
import { TextSearch } from "../../widgets/text-search.tsx";
import styles from "./parallel.module.css";
import type { Windows } from "./use-windows.ts";

interface ToolbarProps {
  readonly page: ParallelPage;
  readonly title: string;
  /** Whether the trace has times. */
  readonly isTimed: boolean;
  readonly windows: Windows;
  /** Traces to compare with. */
  readonly others: readonly TraceRow[];
  onAll(): void;
  onPng(): void;
  onSvg(): void;
}

const NOT_TIMED = "The trace is an operator graph without times.";

function listDrawings(isTimed: boolean): readonly SegmentedOption<Drawing>[] {
  const disabled = isTimed ? undefined : NOT_TIMED;
  return [
    { value: "graph", title: "Graph", disabled },
    { value: "flow", title: "Flow" },
    { value: "both", title: "Both", disabled },
    { value: "table", title: "Table", disabled },
  ];
}

export function Toolbar({ page, title, isTimed, windows, others, onAll, onPng, onSvg }: ToolbarProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<ParallelPage>, step: "push" | "replace" = "replace") =>
    change(changeParallel(changes), step);
  const isTimeline = !isFlow(page.drawing);
  return (
    <div className={styles.toolbar} role="toolbar" aria-label="Graph">
      <h2>{title}</h2>
      {isTimeline && (
        <span className={styles.history}>
          <IconButton
            icon="undo"
            label="Previous window"
            disabled={!windows.canGoBack}
            onClick={() => windows.go("back")}
          />
          <IconButton
            icon="redo"
            label="Next window"
            disabled={!windows.canGoForward}
            onClick={() => windows.go("forward")}
          />
          <Button
            disabled={page.window === null}
            data-tip="The step of median length (0)"
            onClick={() => windows.show(null, true)}
          >
            Typical step
          </Button>
          <Button data-tip="The whole trace (A)" onClick={onAll}>
            All steps
          </Button>
        </span>
      )}
      <span className={styles.space} />
      <span className={styles.search}>
        <TextSearch label="Find operator" value={page.text} onChange={(text) => set({ text })} />
      </span>
      {isTimeline && others.length > 0 && (
        <select
          aria-label="Compare with"
          value={page.compared ?? ""}
          onChange={(event) => set({ compared: event.target.value || null }, "push")}
        >
          <option value="">Compare with…</option>
          {others.map((trace) => (
            <option key={trace.trace_id} value={trace.trace_id}>
              {trace.name} ({trace.trace_id})
            </option>
          ))}
        </select>
      )}
      <Segmented
        label="Display as"
        name="drawn"
        options={listDrawings(isTimed)}
        value={isTimeline ? page.drawing : "flow"}
        onChange={(drawing) => set({ drawing })}
      />
      <ExportMenu
        what={isTimeline ? "the graph" : "the flow"}
        isWord
        files={{ png: onPng, svg: onSvg }}
        hints={
          isTimeline
            ? { png: "visible part", svg: "visible part, sharp at any size" }
            : { png: "the whole flow", svg: "the whole flow, sharp at any size" }
        }
      />
    </div>
  );
}
