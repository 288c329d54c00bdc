// The settings of a layer.

import { useState } from "react";
import type { Units } from "../../../data/units.ts";
import {
  attributeOf,
  type Bins,
  type GroupSort,
  type Layer,
  SORT_KEYS,
  type SortKey,
} from "../../../layout/grammar.ts";
import { MAX_BINS } from "../../../layout/parse-view.ts";
import { findAttribute } from "../../../state/attributes.ts";
import { Button } from "../../../widgets/button.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { fromTyped, TYPED_UNITS, toTyped } from "../filter/number-words.ts";
import { AttributePicker } from "./attribute-picker.tsx";
import { DEFAULT_BINS, groupBy, isNumber, parseLimits } from "./edit.ts";
import { CheckRow, ChoiceRow, LayoutRow, NumberRow, Row } from "./fields.tsx";
import { OrderRow } from "./order-row.tsx";
import styles from "./settings.module.css";
import { titleOfAttribute } from "./words.ts";

interface LayerSettingsProps {
  readonly units: Units;
  readonly layer: Layer;
  readonly used: readonly string[];
  onChange(changes: Partial<Layer>): void;
  onRemove(): void;
}

export function LayerSettings({ units, layer, used, onChange, onRemove }: LayerSettingsProps) {
  const [isChoosing, setChoosing] = useState(false);
  const attribute = attributeOf(layer);
  const choose = (name: string) => {
    setChoosing(false);
    if (name !== attribute) onChange({ by: groupBy(name) });
  };
  if (isChoosing) return <AttributePicker units={units} used={used} value={attribute} onChoose={choose} />;
  return (
    <div className={styles.settings}>
      <Row title="Group by">
        <button
          type="button"
          className={styles.attribute}
          aria-label={`Group by ${titleOfAttribute(attribute)}`}
          onClick={() => setChoosing(true)}
        >
          {titleOfAttribute(attribute)}
        </button>
      </Row>
      {isNumber(attribute) && <BinRows attribute={attribute} by={layer.by} onChange={(by) => onChange({ by })} />}
      <LayoutRow value={layer.layout} onChange={(layout) => onChange({ layout })} />
      <Row title="Size">
        <Segmented
          label="Size"
          name={`size of ${attribute}`}
          value={layer.size}
          options={[
            { value: "count", title: "By count" },
            { value: "uniform", title: "Uniform" },
          ]}
          onChange={(size) => onChange({ size })}
        />
      </Row>
      <SortRows units={units} layer={layer} onChange={(sort) => onChange({ sort })} />
      <CheckRow title="Name" words="above each group" value={layer.label} onChange={(label) => onChange({ label })} />
      <SpaceRows layer={layer} onChange={onChange} />
      <Button className={styles.remove} onClick={onRemove}>
        Remove this layer
      </Button>
    </div>
  );
}

function SpaceRows({ layer, onChange }: Pick<LayerSettingsProps, "layer" | "onChange">) {
  return (
    <>
      <NumberRow
        title="Padding"
        tip="Inside a group and between groups, in sides of a square"
        min={0}
        max={100}
        step={0.1}
        value={layer.padding}
        onChange={(padding) => onChange({ padding })}
      />
      {layer.layout === "pack" || layer.layout.startsWith("list") ? (
        <NumberRow
          title="Aspect"
          tip="Target width divided by height of a group"
          min={0.05}
          max={20}
          step={0.1}
          value={layer.aspect}
          onChange={(aspect) => onChange({ aspect: aspect ?? 1 })}
        />
      ) : null}
      {layer.layout !== "pack" && (
        <NumberRow
          title={layer.layout.startsWith("list") ? "Wrap at" : "Breadth"}
          tip="In sides of a square; empty: as the space allows"
          min={1}
          max={100_000}
          step={1}
          value={layer.limit}
          onChange={(limit) => onChange({ limit })}
        />
      )}
    </>
  );
}

const SORT_WORDS: Readonly<Record<SortKey, string>> = { name: "Name", count: "Count", value: "Mean of …" };

function SortRows({ units, layer, onChange }: { units: Units; layer: Layer; onChange: (sort: GroupSort) => void }) {
  const [isChoosing, setChoosing] = useState(false);
  const { sort } = layer;
  const chooseKey = (by: SortKey) => {
    if (by !== "value") onChange({ ...sort, by, of: null });
    setChoosing(by === "value");
  };
  const title = sort.of === null ? SORT_WORDS.value : `Mean of ${titleOfAttribute(sort.of)}`;
  return (
    <>
      <OrderRow order={sort.order} onChange={(order) => onChange({ ...sort, order })}>
        <select
          aria-label="Sort"
          value={isChoosing ? "value" : sort.by}
          onChange={(event) => {
            const by = SORT_KEYS.find((key) => key === event.target.value);
            if (by) chooseKey(by);
          }}
        >
          {SORT_KEYS.map((key) => (
            <option key={key} value={key}>
              {key === "value" ? title : SORT_WORDS[key]}
            </option>
          ))}
        </select>
      </OrderRow>
      {(isChoosing || sort.by === "value") && (
        <details open={isChoosing} className={styles.mean}>
          <summary>{sort.of === null ? "Choose a metric" : "Mean of another metric"}</summary>
          <AttributePicker
            units={units}
            used={sort.of === null ? [] : [sort.of]}
            value={sort.of}
            kind="number"
            onChoose={(of) => {
              setChoosing(false);
              onChange({ by: "value", order: sort.by === "value" ? sort.order : "descending", of });
            }}
          />
        </details>
      )}
    </>
  );
}

type BinKind = "each" | "count" | "limits";

interface BinRowsProps {
  readonly attribute: string;
  readonly by: string | Bins;
  onChange(by: string | Bins): void;
}

function BinRows({ attribute, by, onChange }: BinRowsProps) {
  const bins = typeof by === "string" ? null : by.bins;
  const definition = findAttribute(attribute);
  const unit = definition?.kind === "number" ? definition.unit : "count";
  const sign = TYPED_UNITS[unit][1];
  const [limits, setLimits] = useState(
    typeof bins === "object" && bins !== null ? bins.map((limit) => toTyped(limit, unit)).join(", ") : "",
  );
  const [isWriting, setWriting] = useState(false);
  const kind: BinKind = isWriting || Array.isArray(bins) ? "limits" : bins === null ? "each" : "count";
  const choose = (next: BinKind) => {
    setWriting(next === "limits");
    if (next === "each") onChange(attribute);
    if (next === "count") onChange({ metric: attribute, bins: DEFAULT_BINS });
  };
  return (
    <>
      <ChoiceRow
        title="Bins"
        value={kind}
        options={[
          ["count", "Round limits"],
          ["limits", "Custom limits"],
          ["each", "One group per value"],
        ]}
        onChange={choose}
      />
      {kind === "count" && (
        <NumberRow
          title="Number"
          tip="Maximum; the limits are round numbers"
          min={1}
          max={MAX_BINS}
          step={1}
          value={typeof bins === "number" ? bins : null}
          onChange={(count) =>
            count !== null && Number.isInteger(count) && onChange({ metric: attribute, bins: count })
          }
        />
      )}
      {kind === "limits" && (
        <Row title={sign === "" ? "Limits" : `Limits, ${sign}`}>
          <input
            type="text"
            aria-label="Limits"
            placeholder="20, 50, 80"
            aria-invalid={limits !== "" && parseLimits(limits) === null}
            value={limits}
            onChange={(event) => {
              setLimits(event.target.value);
              const parsed = parseLimits(event.target.value);
              if (parsed) onChange({ metric: attribute, bins: parsed.map((limit) => fromTyped(limit, unit)) });
            }}
          />
        </Row>
      )}
    </>
  );
}
