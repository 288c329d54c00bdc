// What the picture is colored by, and what the colors mean.

import { UNIT_STATES, type UnitState } from "../../../../api/snapshot.ts";
import { formatCount } from "../../../../base/format.ts";
import { colorBy } from "../../../../state/changes.ts";
import { COLOR_NAMES, type ColorName } from "../../../../state/screen.ts";
import { useChangeScreen } from "../../../../state/use-screen.ts";
import { UnitMark } from "../../../../widgets/unit-mark.tsx";
import { ownColor, type PictureModel } from "../use-picture.ts";
import styles from "./color.module.css";
import { COLOR_CHOICES } from "./color-choices.ts";
import type { Coloring } from "./coloring.ts";
import { Legend } from "./legend.tsx";

export function ColorControls({ model }: { model: PictureModel }) {
  const change = useChangeScreen();
  const { arrangement, color, coloring } = model;
  const choose = (name: ColorName) => change(colorBy(name === ownColor(arrangement) ? null : name));
  return (
    <section className={styles.color} aria-label="Colour">
      <h2>Colour</h2>
      <ColorSelect value={color} onChange={choose} />
      {color !== "unit_state" && <Legend legend={coloring.legend} title={COLOR_CHOICES[color].title} />}
      <ShapeKey coloring={coloring} isWhole={color === "unit_state"} />
    </section>
  );
}

function ColorSelect({ value, onChange }: { value: ColorName; onChange: (name: ColorName) => void }) {
  const list = (kind: "quantity" | "category") => COLOR_NAMES.filter((name) => COLOR_CHOICES[name].kind === kind);
  return (
    <select
      aria-label="Colour by"
      value={value}
      onChange={(event) => {
        const name = COLOR_NAMES.find((known) => known === event.target.value);
        if (name) onChange(name);
      }}
    >
      <optgroup label="By amount">
        {list("quantity").map((name) => (
          <option key={name} value={name}>
            {COLOR_CHOICES[name].title}
          </option>
        ))}
      </optgroup>
      <optgroup label="By name">
        {list("category").map((name) => (
          <option key={name} value={name}>
            {COLOR_CHOICES[name].title}
          </option>
        ))}
      </optgroup>
    </select>
  );
}

/** States that have a shape of their own, and so no place on a ramp. */
function ShapeKey({ coloring, isWhole }: { coloring: Coloring; isWhole: boolean }) {
  const shown = UNIT_STATES.filter((state) => coloring.states[state] > 0 && (isWhole || hasOwnShape(state)));
  if (shown.length === 0) return null;
  return (
    <ul className={styles.names} aria-label="States">
      {shown.map((state) => (
        <li key={state}>
          {state === "allocated" ? <i className={styles.held} /> : <UnitMark state={state} />}
          <span>{state}</span>
          <small>{formatCount(coloring.states[state])}</small>
        </li>
      ))}
    </ul>
  );
}

function hasOwnShape(state: UnitState): boolean {
  return state === "free" || state === "unavailable" || state === "stale";
}
