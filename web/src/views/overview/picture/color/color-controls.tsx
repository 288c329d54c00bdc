// The color controls: attribute, scale, and legend.

import * as Popover from "@radix-ui/react-popover";
import { UNIT_STATES, type UnitState } from "../../../../api/snapshot.ts";
import { toSentence } from "../../../../base/problem.ts";
import {
  ATTRIBUTES,
  type Attribute,
  type AttributeName,
  findAttribute,
  STATISTICS,
  type Statistic,
} from "../../../../state/attributes.ts";
import { colorBy, setColors } from "../../../../state/changes.ts";
import { DEFAULT_COLORS, SCALE_KINDS, type ScaleKind } from "../../../../state/color.ts";
import type { Screen } from "../../../../state/screen.ts";
import { useChangeScreen, useScreen } from "../../../../state/use-screen.ts";
import { findNames } from "../../../../state/where.ts";
import { IconButton } from "../../../../widgets/button.tsx";
import { PopupContent } from "../../../../widgets/popup.tsx";
import { UnitMark } from "../../../../widgets/unit-mark.tsx";
import { UNIT_STATE_WORDS } from "../../words.ts";
import { ownColor, type PictureModel } from "../use-picture.ts";
import styles from "./color.module.css";
import { ColorSettingsForm } from "./color-settings.tsx";
import type { Coloring } from "./coloring.ts";
import { Legend, LegendName } from "./legend.tsx";

export function ColorControls({ model }: { model: PictureModel }) {
  const screen = useScreen();
  const change = useChangeScreen();
  const { arrangement, color, coloring } = model;
  const choose = (name: AttributeName) => change(colorBy(name === ownColor(arrangement) ? null : name));
  const isState = color.name === "unit_state";
  return (
    <section className={styles.color} aria-label="Color">
      <div className={styles.head}>
        <h2>Color</h2>
        {!isState && <Settings model={model} />}
      </div>
      <ColorSelect value={color} onChange={choose} />
      {model.problem && (
        <p className={styles.problem} role="alert">
          {toSentence(model.problem.message)} Values are drawn as missing.
        </p>
      )}
      {!isState && <Legend model={model} where={screen.where} />}
      {color.kind === "number" && <ScaleRows screen={screen} />}
      <ShapeKey coloring={coloring} screen={screen} isWhole={isState} onHighlight={model.highlight} />
    </section>
  );
}

function Settings({ model }: { model: PictureModel }) {
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <IconButton icon="gear" label="Color settings" />
      </Popover.Trigger>
      <PopupContent align="start" side="right">
        <ColorSettingsForm color={model.color} legend={model.coloring.legend} />
      </PopupContent>
    </Popover.Root>
  );
}

const NOW = "now";
const STATISTIC_TITLES: Readonly<Record<Statistic, string>> = {
  mean: "mean",
  p5: "p5",
  p50: "p50",
  p95: "p95",
  min: "least",
  max: "most",
};

/** A metric and its statistics are one line in the first list; which of them is chosen in the second. */
function ColorSelect({ value, onChange }: { value: Attribute; onChange: (name: AttributeName) => void }) {
  const listed = ATTRIBUTES.filter((attribute) => attribute.kind === "name" || attribute.statistic === null);
  const options = (kind: Attribute["kind"]) =>
    listed
      .filter((attribute) => attribute.kind === kind)
      .map(({ name, title }) => (
        <option key={name} value={name}>
          {title}
        </option>
      ));
  const metric = value.kind === "number" ? value.metric : null;
  const choose = (name: string) => {
    const attribute = findAttribute(name);
    if (attribute) onChange(attribute.name);
  };
  return (
    <div className={styles.by}>
      <select
        aria-label="Color by"
        value={metric ?? value.name}
        onChange={(event) => {
          const statistic = value.kind === "number" ? value.statistic : null;
          choose(findAttribute(`${event.target.value}:${statistic}`)?.name ?? event.target.value);
        }}
      >
        <optgroup label="By amount">{options("number")}</optgroup>
        <optgroup label="By name">{options("name")}</optgroup>
      </select>
      {value.kind === "number" && metric && (
        <select
          aria-label="Value"
          data-tip="Now, or over the life of the workload that holds the unit"
          value={value.statistic ?? NOW}
          onChange={({ target }) => choose(target.value === NOW ? metric : `${metric}:${target.value}`)}
        >
          <option value={NOW}>now</option>
          <optgroup label="Over its workload's life">
            {STATISTICS.map((statistic) => (
              <option key={statistic} value={statistic}>
                {STATISTIC_TITLES[statistic]}
              </option>
            ))}
          </optgroup>
        </select>
      )}
    </div>
  );
}

const SCALE_TITLES: Readonly<Record<ScaleKind, string>> = {
  linear: "linear",
  log: "logarithmic",
  quantile: "rank (quantile)",
  quantize: "steps (quantize)",
};

function ScaleRows({ screen: { colors } }: { screen: Screen }) {
  const change = useChangeScreen();
  return (
    <>
      <label className={styles.row}>
        <span>scale</span>
        <select
          value={colors.scale.kind}
          onChange={(event) => {
            const kind = SCALE_KINDS.find((candidate) => candidate === event.target.value);
            if (kind) change(setColors({ scale: { ...DEFAULT_COLORS.scale, kind } }));
          }}
        >
          {SCALE_KINDS.map((kind) => (
            <option key={kind} value={kind}>
              {SCALE_TITLES[kind]}
            </option>
          ))}
        </select>
      </label>
      <label className={styles.row} data-tip="The color scale covers only the units that match the filters">
        <span>fit to filtered units</span>
        <input
          type="checkbox"
          checked={colors.isRemapped}
          onChange={(event) => change(setColors({ isRemapped: event.target.checked }))}
        />
      </label>
    </>
  );
}

interface ShapeKeyProps {
  readonly coloring: Coloring;
  readonly screen: Screen;
  readonly isWhole: boolean;
  onHighlight: PictureModel["highlight"];
}

/** States that have a shape of their own, and so no place on a ramp. */
function ShapeKey({ coloring, screen, isWhole, onHighlight }: ShapeKeyProps) {
  const chosen = findNames(screen.where, "unit_state");
  const shown = UNIT_STATES.filter((state) => coloring.states[state] > 0 && (isWhole || hasOwnShape(state)));
  if (shown.length === 0) return null;
  return (
    <ul className={styles.names} aria-label="States">
      {shown.map((state) => (
        <LegendName
          key={state}
          attribute="unit_state"
          name={state}
          title={UNIT_STATE_WORDS[state]}
          mark={state === "allocated" ? <i data-swatch={true} className={styles.held} /> : <UnitMark state={state} />}
          count={coloring.states[state]}
          chosen={chosen}
          onHighlight={onHighlight}
        />
      ))}
    </ul>
  );
}

function hasOwnShape(state: UnitState): boolean {
  return state === "free" || state === "unavailable" || state === "stale";
}
