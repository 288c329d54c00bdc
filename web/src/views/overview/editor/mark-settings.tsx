// The settings of the squares: which units, in which order, and how filtered units are shown.

import { useMemo } from "react";
import type { Units } from "../../../data/units.ts";
import { SHOWN_UNITS, type View } from "../../../layout/grammar.ts";
import { Segmented } from "../../../widgets/segmented.tsx";
import { listChoices } from "./attribute-choices.ts";
import { changeMark } from "./edit.ts";
import { ChoiceRow, LayoutRow, NumberRow, Row } from "./fields.tsx";
import { OrderRow } from "./order-row.tsx";
import styles from "./settings.module.css";
import { UNITS_WORDS } from "./words.ts";

interface MarkSettingsProps {
  readonly units: Units;
  readonly view: View;
  onChange(view: View): void;
}

export function MarkSettings({ units, view, onChange }: MarkSettingsProps) {
  const { mark } = view;
  return (
    <div className={styles.settings}>
      <ChoiceRow
        title="Units"
        value={view.units}
        options={SHOWN_UNITS.map((shown) => [shown, UNITS_WORDS[shown]])}
        onChange={(shown) => onChange({ ...view, units: shown })}
      />
      <LayoutRow value={mark.layout} onChange={(layout) => onChange(changeMark(view, { layout }))} />
      <UnitOrder units={units} view={view} onChange={onChange} />
      <Row title="From">
        <Segmented
          label="From"
          name="mark-from"
          value={mark.from}
          options={[
            { value: "top", title: "Top" },
            { value: "bottom", title: "Bottom" },
          ]}
          onChange={(from) => onChange(changeMark(view, { from }))}
        />
      </Row>
      <Row title="Filtered">
        <Segmented
          label="Filtered units"
          name="mark-filtered"
          value={view.filtered}
          options={[
            { value: "fade", title: "Fade" },
            { value: "vanish", title: "Vanish" },
          ]}
          onChange={(filtered) => onChange({ ...view, filtered })}
        />
      </Row>
      <NumberRow
        title="Gap"
        tip="Between squares, in sides of a square"
        min={0}
        max={4}
        step={0.1}
        value={mark.padding}
        onChange={(padding) => onChange(changeMark(view, { padding: padding ?? 0.2 }))}
      />
      {mark.layout !== "pack" && (
        <NumberRow
          title="Squares across"
          tip="In a row, or in a column where they go down first; empty: as the space allows"
          min={1}
          max={100_000}
          step={1}
          value={mark.limit}
          onChange={(limit) => onChange(changeMark(view, { limit }))}
        />
      )}
    </div>
  );
}

const AS_THEY_COME = "";

function UnitOrder({ units, view, onChange }: MarkSettingsProps) {
  const { sort } = view.mark;
  const choices = useMemo(() => listChoices(units, sort ? [sort.by] : []), [units, sort]);
  const order = sort?.order ?? "ascending";
  return (
    <OrderRow
      order={order}
      isDisabled={sort === null}
      onChange={(next) => sort && onChange(changeMark(view, { sort: { ...sort, order: next } }))}
    >
      <select
        aria-label="Sort"
        value={sort?.by ?? AS_THEY_COME}
        onChange={({ target: { value: by } }) =>
          onChange(changeMark(view, { sort: by === AS_THEY_COME ? null : { by, order } }))
        }
      >
        <option value={AS_THEY_COME}>Node and index</option>
        {choices.map(({ attribute: { name, title } }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </OrderRow>
  );
}
