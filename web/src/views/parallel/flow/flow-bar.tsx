// Above the flow: how much it draws, which long edges, what was found, drawing or table, and its size.

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
  /** Nodes with the searched text; null: nothing is searched. */
  readonly found: number | null;
  onShown(shown: ReadonlySet<string>): void;
  onNext(): void;
  onFirst(): void;
  onScale(by: -1 | 1): void;
  readonly form: FlowForm;
  onForm(form: FlowForm): void;
}

export function FlowBar({ flow, shown, found, onShown, onNext, onFirst, onScale, form, onForm }: BarProps) {
  const long = new Set(flow.edges.filter(({ is_long }) => is_long).map(({ edge_class }) => edge_class));
  const classes = LONG_CLASSES.filter((each) => long.has(each));
  const toggle = (name: string) => {
    const next = new Set(shown);
    if (!next.delete(name)) next.add(name);
    onShown(next);
  };
  return (
    <div className={styles.bar}>
      <span>
        {formatPlural(flow.operators, "operator")} in {formatPlural(flow.nodes.length, "node")}
        {flow.is_recorded ? "" : ", of one rank per stage in the typical step"}
        {flow.is_captured ? ", with its modules" : ""}
      </span>
      {form === "flow" && classes.length > 0 && <span>Long edges:</span>}
      {form === "flow" &&
        classes.map((each) => (
          <label key={each}>
            <input type="checkbox" checked={shown.has(each)} onChange={() => toggle(each)} />
            {CLASS_TITLES[each]}
          </label>
        ))}
      {found !== null && (
        <Button onClick={onNext} disabled={found === 0}>
          {found === 0 ? "Nothing found" : `Next of ${formatPlural(found, "node")} found`}
        </Button>
      )}
      <span>
        <Segmented label="Flow as" name="flow-form" options={FORMS} value={form} onChange={onForm} />
        <Button data-tip="As few namespaces open as at first" onClick={onFirst}>
          First picture
        </Button>
        {form === "flow" && (
          <>
            <Button aria-label="Smaller" onClick={() => onScale(-1)}>
              −
            </Button>
            <Button aria-label="Larger" onClick={() => onScale(1)}>
              +
            </Button>
          </>
        )}
      </span>
    </div>
  );
}
