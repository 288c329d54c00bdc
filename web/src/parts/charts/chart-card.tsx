// A chart in a card: title and unit, the same numbers as a table, and export.

import { type ReactNode, useRef, useState } from "react";
import { type CsvValue, formatCsv } from "../../base/csv.ts";
import { downloadText } from "../../base/download.ts";
import styles from "./chart-card.module.css";
import { PictureMenu } from "./picture-menu.tsx";

export interface TableTwin {
  readonly header: readonly string[];
  readonly rows: readonly (readonly CsvValue[])[];
}

interface ChartCardProps {
  readonly title: string;
  /** What is drawn, in which unit. */
  readonly hint: string;
  readonly twin: TableTwin;
  readonly isWide?: boolean;
  readonly children: ReactNode;
}

/** The most rows of the table on the page; the exported file has all. */
const MOST_ROWS = 400;

export function ChartCard({ title, hint, twin, isWide = false, children }: ChartCardProps) {
  const place = useRef<HTMLElement>(null);
  const [isTable, setTable] = useState(false);
  const file = `clusterscape-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
  return (
    <section ref={place} className={styles.card} aria-label={title} data-wide={isWide || undefined}>
      <header>
        <div>
          <h3>{title}</h3>
          <p data-drawn-label={true}>{hint}</p>
        </div>
        <button
          type="button"
          className={styles.twin}
          aria-pressed={isTable}
          aria-label={`${title} as a table`}
          onClick={() => setTable(!isTable)}
        >
          {isTable ? "Chart" : "Table"}
        </button>
        <PictureMenu
          place={place}
          what={title}
          file={file}
          hasPicture={!isTable}
          onCsv={() => downloadText(`${file}.csv`, formatCsv(twin.header, twin.rows), "text/csv")}
        />
      </header>
      {isTable ? <Twin title={title} twin={twin} /> : children}
    </section>
  );
}

/** As many cards per row as fit. */
export function ChartCards({ children }: { children: ReactNode }) {
  return <div className={styles.cards}>{children}</div>;
}

function Twin({ title, twin }: { title: string; twin: TableTwin }) {
  return (
    <div className={styles.table}>
      <table aria-label={title}>
        <thead>
          <tr>
            {twin.header.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {twin.rows.slice(0, MOST_ROWS).map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no names and never move
            <tr key={at}>
              {row.map((value, column) => (
                <td key={twin.header[column]} data-number={typeof value === "number" || undefined}>
                  {typeof value === "number" ? sayNumber(value) : (value ?? "–")}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {twin.rows.length > MOST_ROWS && <p>The file has all {twin.rows.length.toLocaleString("en-US")} rows.</p>}
    </div>
  );
}

const plain = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function sayNumber(value: number): string {
  return Math.abs(value) >= 1000 ? whole.format(value) : plain.format(value);
}
