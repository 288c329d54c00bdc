// The legend, which is also a filter: for numbers a histogram to brush, for names a list to choose from. Hovering
// highlights units.

import { type MouseEvent, type ReactNode, useMemo, useState } from "react";
import { formatCount, formatPlural } from "../../../../base/format.ts";
import { RangeBrush } from "../../../../charts/range-brush.tsx";
import type { NameAttributeName } from "../../../../state/attributes.ts";
import { setNames, setRange, toggleName } from "../../../../state/changes.ts";
import { useChangeScreen } from "../../../../state/use-screen.ts";
import { findClause, findNames, findRange, type Where } from "../../../../state/where.ts";
import { countNames } from "../../filter/apply-where.ts";
import { lowerTitle } from "../../filter/condition-words.ts";
import { BINS, valueOn } from "../../filter/histogram.ts";
import { formatEnds, formatNumber, formatRange, placesOf, rangeBetween } from "../../filter/number-words.ts";
import { listTopNames } from "../../filter/top-names.ts";
import { toCss } from "../tokens.ts";
import type { PictureModel } from "../use-picture.ts";
import styles from "./color.module.css";
import type { Highlight, NameLegend, NumberLegend } from "./coloring.ts";
import { NO_COLOR } from "./name-color.ts";

interface LegendProps {
  readonly model: PictureModel;
  readonly where: Where;
}

export function Legend({ model, where }: LegendProps) {
  const { legend } = model.coloring;
  return legend.kind === "number" ? (
    <Distribution legend={legend} where={where} onHighlight={model.highlight} />
  ) : (
    <Names legend={legend} where={where} model={model} />
  );
}

interface DistributionProps {
  readonly legend: NumberLegend;
  readonly where: Where;
  onHighlight(lit: Highlight | null): void;
}

function Distribution({ legend, where, onHighlight }: DistributionProps) {
  const change = useChangeScreen();
  const { attribute, histogram, ramp } = legend;
  const { axis, all, kept, allCount, keptCount } = histogram;
  const format = (value: number) => formatNumber(value, attribute.unit);
  if (allCount === 0) return <p className={styles.note}>No values to show.</p>;
  const range = findRange(where, attribute.name);
  const [low, high] = formatEnds(histogram, attribute.unit);
  const highlight = (bin: number | null) => {
    if (bin === null) return onHighlight(null);
    const min = bin === 0 ? Number.NEGATIVE_INFINITY : valueOn(axis, bin / BINS);
    const max = bin === BINS - 1 ? Number.POSITIVE_INFINITY : valueOn(axis, (bin + 1) / BINS);
    onHighlight({ kind: "range", attribute, min, max });
  };
  return (
    <figure className={styles.distribution}>
      <RangeBrush
        label={`${attribute.title} of ${formatPlural(allCount, "unit")}`}
        all={all}
        kept={kept}
        ramp={ramp.map(toCss)}
        range={range && placesOf(axis, range)}
        say={(place) => format(valueOn(axis, place))}
        onChange={(next, isFirst) =>
          change(setRange(attribute.name, next && rangeBetween(axis, next.from, next.to)), isFirst ? "push" : "replace")
        }
        onHover={highlight}
      />
      <figcaption>
        <span data-tip={`Minimum: ${format(histogram.least)}`}>{low}</span>
        {range && (
          <b>
            {formatRange(range, attribute.unit)} · {formatCount(keptCount)}
          </b>
        )}
        <span data-tip={`Maximum: ${format(histogram.largest)}`}>{high}</span>
      </figcaption>
    </figure>
  );
}

const MOST_ENTRIES = 12;

function Names({ legend, where, model }: LegendProps & { readonly legend: NameLegend }) {
  const [text, setText] = useState("");
  const { attribute, column, titles, colors, all } = legend;
  const { narrowed, drawnRows, highlight } = model;
  const chosen = findNames(where, attribute.name);
  const clause = findClause(where, attribute.name, "names");
  const counts = useMemo(() => countNames(column, narrowed, clause, drawnRows), [column, narrowed, clause, drawnRows]);
  const { codes, distinct, otherNames, otherCount } = listTopNames({
    names: column.names,
    titles,
    counts: all,
    chosen,
    text,
    most: MOST_ENTRIES,
  });
  if (distinct === 0) return <p className={styles.note}>No values to show.</p>;
  return (
    <>
      {distinct > MOST_ENTRIES && (
        <input
          type="search"
          className={styles.search}
          aria-label={`Search ${lowerTitle(attribute.title)}`}
          placeholder={`Search ${formatCount(distinct)}`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <ul className={styles.names} aria-label={attribute.title}>
        {codes.map((code) => {
          const name = column.names[code] ?? null;
          const color = colors[code] ?? NO_COLOR;
          return (
            <LegendName
              key={name ?? ""}
              attribute={attribute.name}
              name={name}
              title={titles?.[code] ?? name ?? "none"}
              mark={<i data-swatch={true} style={color === NO_COLOR ? undefined : { background: toCss(color) }} />}
              count={counts[code] ?? 0}
              chosen={chosen}
              onHighlight={highlight}
            />
          );
        })}
        {otherNames > 0 && (
          <li className={styles.other}>
            <span>other ({formatCount(otherNames)})</span>
            <small>{formatCount(otherCount)}</small>
          </li>
        )}
      </ul>
      {legend.hasSharedColors && (
        <p className={styles.note}>There are more names than colors: some names share a color.</p>
      )}
    </>
  );
}

interface LegendNameProps {
  readonly attribute: NameAttributeName;
  /** Null: the units without one. */
  readonly name: string | null;
  readonly title: string;
  readonly mark: ReactNode;
  readonly count: number;
  readonly chosen: readonly (string | null)[];
  onHighlight(lit: Highlight | null): void;
}

/** One line of a legend: a click takes it among those chosen or out, with Alt or Ctrl it is the only one. */
export function LegendName({ attribute, name, title, mark, count, chosen, onHighlight }: LegendNameProps) {
  const change = useChangeScreen();
  const isChosen = chosen.includes(name);
  const highlight = () => onHighlight({ kind: "name", attribute, name });
  const onClick = (event: MouseEvent) => {
    const isOnly = event.altKey || event.ctrlKey || event.metaKey;
    const isAlone = isChosen && chosen.length === 1;
    change(isOnly ? setNames(attribute, isAlone ? [] : [name]) : toggleName(attribute, name));
  };
  return (
    <li>
      <button
        type="button"
        data-row={true}
        aria-pressed={isChosen}
        data-out={(chosen.length > 0 && !isChosen) || undefined}
        data-tip={`${name === null || name === title ? title : `${title} (${name})`}\nClick: filter. Alt-click: only this.`}
        onClick={onClick}
        onPointerEnter={highlight}
        onPointerLeave={() => onHighlight(null)}
        onFocus={highlight}
        onBlur={() => onHighlight(null)}
      >
        {mark}
        <span>{title.replaceAll("_", " ")}</span>
        <small>{formatCount(count)}</small>
      </button>
    </li>
  );
}
