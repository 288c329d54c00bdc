// The usage of a period as a sheet: findings, GPU-hours over time, what became of them, a table, the periods before and
// budgets. The page and the report show the same.

import type { UsageAnswer, UsageFigures, UsageReport } from "../../api/generated.ts";
import { formatCount, formatHours, formatRatio, MISSING } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { colorAt } from "../../charts/series-colors.ts";
import { type ColumnPart, StackedColumns } from "../../charts/stacked-columns.tsx";
import { ChartCard } from "../../parts/charts/chart-card.tsx";
import type { UsagePart } from "../../state/usage.ts";
import { Legend } from "../../widgets/legend.tsx";
import { Budgets } from "./budgets.tsx";
import styles from "./usage.module.css";
import { formatMoney, formatShare, idleRatio, nameOf, nameSteps, orderGroups, PART_WORDS, USES } from "./words.ts";

/** Groups with a color of their own; the rest is drawn as one. */
const COLORED = 6;

export function Findings({ report }: { report: UsageReport }) {
  if (report.findings.length === 0) return <p className={styles.none}>No GPU-hours were held in this period.</p>;
  return (
    <section aria-label="Findings" className={styles.findings}>
      <h2>Findings</h2>
      <ul>
        {report.findings.map(({ code, text, is_bad }) => (
          <li key={code} data-bad={is_bad || undefined}>
            {text}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** GPU-hours, and what held GPUs did, in steps of time. */
export function OverTime({ answer, part }: { answer: UsageAnswer; part: UsagePart }) {
  const titles = nameSteps(answer);
  const parts = listParts(answer, part);
  const word = PART_WORDS[part].toLowerCase();
  const hasUse = answer.total.unknown_gpu_hours < answer.total.gpu_hours * 0.999;
  const uses = USES.map(({ key, title, color }) => ({
    key,
    title,
    color,
    values: answer.steps.map((figures) => figures[key]),
  }));
  return (
    <div className={styles.charts}>
      <ChartCard title={`GPU-hours by ${word}`} hint={`per ${answer.step}`} twin={toTwin(answer, titles, parts)}>
        <StackedColumns
          label={`GPU-hours per ${answer.step} by ${word}`}
          titles={titles}
          parts={parts}
          yTitle="GPU-hours"
          sayValue={formatHours}
        />
        <Key parts={parts} />
      </ChartCard>
      {hasUse && (
        <ChartCard
          title="Use of held GPUs"
          hint={`GPU-hours per ${answer.step}, by what the GPUs did`}
          twin={toTwin(answer, titles, uses)}
        >
          <StackedColumns
            label={`GPU-hours per ${answer.step} by what the GPUs did`}
            titles={titles}
            parts={uses}
            yTitle="GPU-hours"
            sayValue={formatHours}
          />
          <Key parts={uses} />
        </ChartCard>
      )}
    </div>
  );
}

function Key({ parts }: { parts: readonly ColumnPart[] }) {
  return (
    <Legend>
      {parts.map(({ key, title, color }) => (
        <li key={key}>
          <i data-swatch={true} style={{ background: color }} /> {title}
        </li>
      ))}
    </Legend>
  );
}

function listParts(answer: UsageAnswer, part: UsagePart): readonly ColumnPart[] {
  const ordered = orderGroups(answer);
  const colored = ordered.slice(0, COLORED).map((group, place) => ({
    key: nameOf(group, part),
    title: nameOf(group, part),
    color: colorAt(place),
    values: group.gpu_hours,
  }));
  const rest = answer.steps.map((figures, at) =>
    Math.max(0, figures.gpu_hours - colored.reduce((sum, { values }) => sum + (values[at] ?? 0), 0)),
  );
  if (Math.max(...rest) <= 1e-6) return colored;
  return [...colored, { key: "\u0000others", title: "others", color: "var(--muted)", values: rest }];
}

function toTwin(answer: UsageAnswer, titles: readonly string[], parts: readonly ColumnPart[]) {
  return {
    header: [answer.step, ...parts.map(({ title }) => title)],
    rows: titles.map((title, at) => [title, ...parts.map(({ values }) => values[at] ?? 0)]),
  };
}

interface GroupTableProps {
  readonly answer: UsageAnswer;
  readonly part: UsagePart;
  onChoose?: ((name: string) => void) | undefined;
}

export function GroupTable({ answer, part, onChoose }: GroupTableProps) {
  const rest = answer.group_count - answer.groups.length;
  const hasMoney = answer.currency !== null;
  const hasEnergy = answer.total.energy_kwh !== null;
  const row = (figures: UsageFigures) => (
    <>
      <td>{formatHours(figures.gpu_hours)}</td>
      <td>{formatShare(figures.gpu_hours, answer.total.gpu_hours)}</td>
      <td>
        <UseBar figures={figures} />
      </td>
      <td>{formatRatio(idleRatio(figures))}</td>
      <td>{formatHours(figures.cpu_hours)}</td>
      {hasEnergy && <td>{figures.energy_kwh === null ? MISSING : formatHours(figures.energy_kwh)}</td>}
      <td>{formatCount(figures.jobs)}</td>
      <td>{formatDuration(figures.median_wait_s)}</td>
      {hasMoney && <td>{formatMoney(figures.money, answer.currency)}</td>}
    </>
  );
  return (
    <table className={styles.groups} aria-label={`Usage by ${PART_WORDS[part].toLowerCase()}`}>
      <thead>
        <tr>
          <th scope="col">{PART_WORDS[part]}</th>
          <th scope="col">GPU-hours</th>
          <th scope="col">Share</th>
          <th scope="col">Use</th>
          <th scope="col">Idle</th>
          <th scope="col">CPU-hours</th>
          {hasEnergy && <th scope="col">kWh</th>}
          <th scope="col">Jobs</th>
          <th scope="col">Median wait</th>
          {hasMoney && <th scope="col">Money</th>}
        </tr>
      </thead>
      <tbody>
        {orderGroups(answer).map((group) => {
          const name = group[part];
          return (
            <tr key={name ?? "\u0000unknown"}>
              <th scope="row">
                {onChoose && name !== null ? (
                  <button type="button" onClick={() => onChoose(name)}>
                    {nameOf(group, part)}
                  </button>
                ) : (
                  nameOf(group, part)
                )}
              </th>
              {row(group.figures)}
            </tr>
          );
        })}
        {answer.others && (
          <tr>
            <th scope="row">{formatCount(rest)} others</th>
            {row(answer.others)}
          </tr>
        )}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">Total</th>
          {row(answer.total)}
        </tr>
      </tfoot>
    </table>
  );
}

/** What held GPUs did, as one bar. */
function UseBar({ figures }: { figures: UsageFigures }) {
  const words = USES.filter(({ key }) => figures[key] > 0)
    .map(({ key, title }) => `${title} ${formatShare(figures[key], figures.gpu_hours)}`)
    .join(" · ");
  return (
    <span className={styles.use} role="img" aria-label={words || "nothing held"} data-tip={words || undefined}>
      {USES.map(({ key, color }) =>
        figures[key] > 0 ? <i key={key} style={{ flexGrow: figures[key], background: color }} /> : null,
      )}
    </span>
  );
}

export function Former({ report }: { report: UsageReport }) {
  const { former } = report;
  if (former.length < 2) return null;
  const parts = [
    { key: "gpu", title: "GPU-hours", color: colorAt(0), values: former.map(({ figures }) => figures.gpu_hours) },
  ];
  return (
    <ChartCard
      title="Compared with before"
      hint="GPU-hours of each period"
      twin={{
        header: ["period", "GPU-hours", "CPU-hours", "jobs", "users", "median wait in s"],
        rows: former.map(({ name, figures }) => [
          name,
          figures.gpu_hours,
          figures.cpu_hours,
          figures.jobs,
          figures.users,
          figures.median_wait_s,
        ]),
      }}
    >
      <StackedColumns
        label="GPU-hours of this period and those before"
        titles={former.map(({ name }) => name)}
        parts={parts}
        yTitle="GPU-hours"
        height={170}
        sayValue={formatHours}
      />
    </ChartCard>
  );
}

export function Sheet({ report, part, onChoose }: { report: UsageReport } & Omit<GroupTableProps, "answer">) {
  const answer = report.parts.find(({ by }) => by[0] === part) ?? report.parts[0];
  const shown = answer?.by[0];
  if (answer === undefined || shown === undefined) return null;
  return (
    <div className={styles.sheet}>
      <Findings report={report} />
      <OverTime answer={answer} part={shown} />
      <GroupTable answer={answer} part={shown} onChoose={onChoose} />
      <Former report={report} />
      <Budgets budgets={report.budgets} />
    </div>
  );
}
