// How the picture is arranged and colored: the choices left of it.

import { UNIT_STATES, type UnitState } from "../../../api/snapshot.ts";
import { formatCount } from "../../../base/format.ts";
import { BUILTIN_VIEWS } from "../../../layout/builtin-views.ts";
import { attributeOf } from "../../../layout/grammar.ts";
import { colorBy, showPicture } from "../../../state/changes.ts";
import { COLOR_NAMES, type ColorName, PICTURE_NAMES } from "../../../state/screen.ts";
import { useChangeScreen } from "../../../state/use-screen.ts";
import { UnitMark } from "../../../widgets/unit-mark.tsx";
import { COLOR_CHOICES } from "./color-choices.ts";
import type { Coloring } from "./coloring.ts";
import styles from "./controls.module.css";
import { Legend } from "./legend.tsx";
import { ownColor, type PictureModel } from "./use-picture.ts";

export function PictureControls({ model }: { model: PictureModel }) {
  const change = useChangeScreen();
  const { arrangement, color, coloring } = model;
  const choose = (name: ColorName) => change(colorBy(name === ownColor(arrangement) ? null : name));
  return (
    <>
      <fieldset className={styles.arrangements} aria-label="Arrangement">
        <h2>Arrangement</h2>
        {BUILTIN_VIEWS.map(({ key, title, view }) => (
          <label key={key} data-on={key === arrangement.key || undefined}>
            <input
              type="radio"
              name="arrangement"
              checked={key === arrangement.key}
              onChange={() => {
                const name = PICTURE_NAMES.find((known) => known === key);
                if (name) change(showPicture(name));
              }}
            />
            <span>{title}</span>
            <small>{view.layers.map((layer) => attributeOf(layer).replaceAll("_", " ")).join(" › ")}</small>
          </label>
        ))}
      </fieldset>
      <section className={styles.color} aria-label="Colour">
        <h2>Colour</h2>
        <ColorSelect value={color} onChange={choose} />
        {color !== "unit_state" && <Legend legend={coloring.legend} title={COLOR_CHOICES[color].title} />}
        <ShapeKey coloring={coloring} isWhole={color === "unit_state"} />
      </section>
    </>
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
