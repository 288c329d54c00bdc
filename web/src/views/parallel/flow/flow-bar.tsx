// Toolbar of the flow: counts, long edges, search matches, drawing or table, and zoom.

import type { FlowAnswer } from "../../../api/generated.ts";
import { formatPlural } from "../../../base/format.ts";
import { Button } from "../../../widgets/button.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import styles from "./flow.module.css";
import { CLASS_TITLES, LONG_CLASSES } from "./looks.ts";

const FORMS = [
  { value: "flow", title: "Drawing" },
  { value: "flow_table", title: "Table" },
] as const;
export type FlowForm = (typeof FORMS)[number]["value"];

interface BarProps {
  readonly flow: FlowAnswer;
  readonly shown: ReadonlySet<string>;
  /** Nodes that match the search; null: no search. */
  readonly matchCount: number | null;
  onShown(shown: ReadonlySet<string>): void;
  onNext(): void;
  onReset(): void;
  onScale(by: -1 | 1): void;
  /** Shows the whole flow; null: it is. */
  readonly onFit: (() => void) | null;
  /** Next to a graph: by node, how many of its operators run in its window; null: unknown. */
  readonly running: readonly number[] | null;
  readonly isByModule: boolean;
  readonly isLinked: boolean;
  readonly form: FlowForm;
  onForm(form: FlowForm): void;
}

export function FlowBar(props: BarProps) {
  const { flow, shown, matchCount, onShown, onNext, onReset, onScale, onFit, running, isLinked, form, onForm } = props;
  const long = new Set(flow.edges.filter(({ is_long }) => is_long).map(({ edge_class }) => edge_class));
  const classes = LONG_CLASSES.filter((edgeClass) => long.has(edgeClass));
  const toggle = (name: string) => {
    const next = new Set(shown);
    if (!next.delete(name)) next.add(name);
    onShown(next);
  };
  return (
    <div className={styles.bar}>
      <span>
        {formatPlural(flow.operators, "operator")} in {formatPlural(flow.nodes.length, "node")}
        {flow.is_recorded || isLinked ? "" : ", one rank per stage, typical step"}
        {flow.is_captured && !isLinked ? ", with its modules" : ""}
      </span>
      {running && (
        <span role="status" className={styles.running}>
          {running.filter((count) => count > 0).length} of {formatPlural(running.length, "node")} in the window
          {props.isByModule ? ", by module" : ""}
        </span>
      )}
      {form === "flow" && !isLinked && classes.length > 0 && <span>Long edges:</span>}
      {form === "flow" &&
        !isLinked &&
        classes.map((edgeClass) => (
          <label key={edgeClass}>
            <input type="checkbox" checked={shown.has(edgeClass)} onChange={() => toggle(edgeClass)} />
            {CLASS_TITLES[edgeClass]}
          </label>
        ))}
      {matchCount !== null && (
        <Button onClick={onNext} disabled={matchCount === 0}>
          {matchCount === 0 ? "No matches" : `Next of ${formatPlural(matchCount, "match", "matches")}`}
        </Button>
      )}
      <span>
        {!isLinked && (
          <Segmented label="Display flow as" name="flow-form" options={FORMS} value={form} onChange={onForm} />
        )}
        <Button data-tip="Collapse namespaces to the initial state" onClick={onReset}>
          Reset
        </Button>
        {form === "flow" && (
          <>
            <Button disabled={onFit === null} data-tip="Show the whole flow" onClick={() => onFit?.()}>
              Fit
            </Button>
            <Button aria-label="Zoom out" onClick={() => onScale(-1)}>
              −
            </Button>
            <Button aria-label="Zoom in" onClick={() => onScale(1)}>
              +
            </Button>
          </>
        )}
      </span>
    </div>
  );
}
