// Edits a condition: a range by brushing or typing, names by choosing, text by typing; each can be negated.

import { useMemo, useState } from "react";
import { formatCount, formatPlural } from "../../../base/format.ts";
import { RangeBrush } from "../../../charts/range-brush.tsx";
import type { Attribute, NameAttribute, NumberAttribute } from "../../../state/attributes.ts";
import type { Range } from "../../../state/range.ts";
import {
  type Condition,
  type NamesCondition,
  namesCondition,
  type RangeCondition,
  rangeCondition,
  type TextCondition,
} from "../../../state/where.ts";
import { stateWords } from "../words.ts";
import { countNames, markFiltered } from "./apply-where.ts";
import { lowerTitle } from "./condition-words.ts";
import { isNumbers } from "./filter-columns.ts";
import styles from "./filter-panel.module.css";
import type { FilterData } from "./filter-panel.tsx";
import { countBins, findExtent, makeAxis, valueOn } from "./histogram.ts";
import { NumberInput } from "./number-input.tsx";
import { formatNumber, placesOf, rangeBetween } from "./number-words.ts";
import { listTopNames } from "./top-names.ts";

interface EditorProps<A extends Attribute, C extends Condition> {
  readonly attribute: A;
  /** Null: there is none yet. */
  readonly condition: C | null;
  /** The clause whose only condition this is; −1 where there is none such. */
  readonly clauseAt: number;
  readonly data: FilterData;
  /** `isFirst`: the first of several changes that are one to the reader. Null: it demands nothing any more. */
  onChange(condition: Condition | null, isFirst?: boolean): void;
}

export function ConditionEditor({ attribute, condition, ...rest }: EditorProps<Attribute, Condition>) {
  if (attribute.kind === "number") {
    return <RangeEditor attribute={attribute} condition={condition?.kind === "range" ? condition : null} {...rest} />;
  }
  return <NameEditor attribute={attribute} condition={condition?.kind === "range" ? null : condition} {...rest} />;
}

function RangeEditor({ attribute, condition, data, onChange }: EditorProps<NumberAttribute, RangeCondition>) {
  const [isNegated, setNegated] = useState(condition?.isNegated ?? false);
  const { columns, narrowed, drawn } = data;
  const column = columns.find(attribute.name);
  const values = column !== null && isNumbers(column) ? column : null;
  const axis = useMemo(() => {
    const { min, max, minPositive } = findExtent(values ?? new Float32Array(), { filtered: null, drawn });
    const [from, to] = attribute.unit === "ratio" ? [0, 1] : [min, max];
    return Number.isNaN(min) ? null : makeAxis("linear", from, to, minPositive);
  }, [values, drawn, attribute.unit]);
  const histogram = useMemo(
    () => values && axis && countBins(values, axis, { filtered: markFiltered(narrowed), drawn }),
    [values, axis, narrowed, drawn],
  );
  const put = (range: Range | null, isFirst = true, negated = isNegated) =>
    onChange(
      range && (range.min !== null || range.max !== null) ? rangeCondition(attribute.name, range, negated) : null,
      isFirst,
    );
  const range: Range = condition ?? { min: null, max: null };
  return (
    <>
      <Operator
        attribute={attribute}
        value={isNegated ? "not" : "is"}
        options={[
          ["is", "is between"],
          ["not", "is not between"],
        ]}
        onChange={(value) => {
          setNegated(value === "not");
          if (condition) put(condition, true, value === "not");
        }}
      />
      {axis && histogram && histogram.allCount > 0 ? (
        <RangeBrush
          label={`${attribute.title} of ${formatPlural(histogram.allCount, "row")}`}
          all={histogram.all}
          kept={histogram.kept}
          ramp={null}
          range={condition && placesOf(axis, condition)}
          say={(place) => formatNumber(valueOn(axis, place), attribute.unit)}
          onChange={(next, isFirst) => put(next && rangeBetween(axis, next.from, next.to), isFirst)}
        />
      ) : (
        <p className={styles.note}>No values to show.</p>
      )}
      <div className={styles.ends}>
        <NumberInput
          label={`${attribute.title}, from`}
          unit={attribute.unit}
          value={range.min}
          auto={axis?.min ?? 0}
          isValid={(min) => range.max === null || min <= range.max}
          onChange={(min) => put({ min, max: range.max })}
        />
        <NumberInput
          label={`${attribute.title}, up to`}
          unit={attribute.unit}
          value={range.max}
          auto={axis?.max ?? 0}
          isValid={(max) => range.min === null || max >= range.min}
          onChange={(max) => put({ min: range.min, max })}
        />
      </div>
    </>
  );
}

type NameOperator = "is" | "not" | "contains" | "lacks";

function operatorOf(condition: NamesCondition | TextCondition | null): NameOperator {
  if (condition?.kind === "text") return condition.isNegated ? "lacks" : "contains";
  return condition?.isNegated ? "not" : "is";
}

function NameEditor(props: EditorProps<NameAttribute, NamesCondition | TextCondition>) {
  const { attribute, condition, onChange } = props;
  const [operator, setOperator] = useState<NameOperator>(operatorOf(condition));
  const isText = operator === "contains" || operator === "lacks";
  const isNegated = operator === "not" || operator === "lacks";
  const choose = (next: NameOperator) => {
    setOperator(next);
    const wasText = condition?.kind === "text";
    const willBeText = next === "contains" || next === "lacks";
    if (condition && wasText === willBeText) onChange({ ...condition, isNegated: next === "not" || next === "lacks" });
  };
  return (
    <>
      <Operator
        attribute={attribute}
        value={operator}
        options={[
          ["is", "is any of"],
          ["not", "is none of"],
          ["contains", "contains"],
          ["lacks", "does not contain"],
        ]}
        onChange={choose}
      />
      {isText ? (
        <input
          type="text"
          className={styles.text}
          aria-label={`${attribute.title} contains`}
          placeholder="Part of the name"
          spellCheck={false}
          value={condition?.kind === "text" ? condition.text : ""}
          onChange={({ target }) =>
            onChange(
              target.value === "" ? null : { kind: "text", attribute: attribute.name, text: target.value, isNegated },
              condition === null,
            )
          }
        />
      ) : (
        <NameList {...props} isNegated={isNegated} />
      )}
    </>
  );
}

const MOST_NAMES = 8;

function NameList({
  attribute,
  condition,
  clauseAt,
  data,
  isNegated,
  onChange,
}: EditorProps<NameAttribute, NamesCondition | TextCondition> & { readonly isNegated: boolean }) {
  const [text, setText] = useState("");
  const { columns, narrowed, drawn } = data;
  const column = columns.find(attribute.name);
  const named = column !== null && !isNumbers(column) ? column : null;
  const counts = useMemo(
    () => named && countNames(named, narrowed, clauseAt, drawn),
    [named, narrowed, clauseAt, drawn],
  );
  const chosen = condition?.kind === "names" ? condition.names : [];
  if (!named || !counts) return <p className={styles.note}>No values to show.</p>;
  const { codes, distinct, otherNames } = listTopNames({ names: named.names, counts, chosen, text, most: MOST_NAMES });
  const listed = codes.map((code) => ({ name: named.names[code] ?? null, count: counts[code] ?? 0 }));
  const lost = chosen.filter((name) => !listed.some((entry) => entry.name === name));
  const toggle = (name: string | null) => {
    const next = chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name];
    onChange(next.length > 0 ? namesCondition(attribute.name, next, isNegated) : null);
  };
  return (
    <>
      {distinct > MOST_NAMES && (
        <input
          type="search"
          className={styles.text}
          aria-label={`Search ${lowerTitle(attribute.title)}`}
          placeholder={`Search ${formatCount(distinct)}`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <ul className={styles.names} aria-label={`${attribute.title} values`}>
        {[...listed, ...lost.map((name) => ({ name, count: 0 }))].map(({ name, count }) => (
          <li key={name ?? ""}>
            <label>
              <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
              <span title={name ?? undefined}>{formatValue(name, attribute)}</span>
              <small>{formatCount(count)}</small>
            </label>
          </li>
        ))}
      </ul>
      {otherNames > 0 && <p className={styles.note}>and {formatCount(otherNames)} more</p>}
    </>
  );
}

function formatValue(name: string | null, { values }: NameAttribute): string {
  if (name === null) return "none";
  return values === null ? name : stateWords(name);
}

interface OperatorProps<T extends string> {
  readonly attribute: Attribute;
  readonly value: T;
  readonly options: readonly (readonly [value: T, title: string])[];
  onChange(value: T): void;
}

function Operator<T extends string>({ attribute, value, options, onChange }: OperatorProps<T>) {
  return (
    <select
      aria-label={`How ${lowerTitle(attribute.title)} is compared`}
      className={styles.operator}
      value={value}
      onChange={({ target }) => {
        const option = options.find(([operator]) => operator === target.value);
        if (option) onChange(option[0]);
      }}
    >
      {options.map(([operator, title]) => (
        <option key={operator} value={operator}>
          {title}
        </option>
      ))}
    </select>
  );
}
