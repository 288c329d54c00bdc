// The usage page: GPU-hours, jobs, waits and money of a month or any other period, of the cluster, a project or a user.

import type { UsageReport } from "../../api/generated.ts";
import { formatCount, formatHours, formatRatio } from "../../base/format.ts";
import { formatDuration } from "../../base/time.ts";
import { useUsageReport } from "../../data/usage.ts";
import { changeUsage, type UsagePage, type UsagePart } from "../../state/usage.ts";
import { useChangeScreen, useScreen } from "../../state/use-screen.ts";
import { Button } from "../../widgets/button.tsx";
import { Frame } from "../../widgets/frame.tsx";
import { FigureList, FigureTerm, Strip } from "../../widgets/strip.tsx";
import { ViewLayout } from "../../widgets/view-layout.tsx";
import { Sheet } from "./sheet.tsx";
import styles from "./usage.module.css";
import { describePeriod, formatMoney, idleRatio, PART_WORDS } from "./words.ts";

export default function UsageView() {
  const { usage: page } = useScreen();
  const change = useChangeScreen();
  const report = useUsageReport(page);
  const choose = CHOOSABLE.find((part) => part === page.part);
  return (
    <ViewLayout
      strip={report.value ? <UsageStrip report={report.value} /> : null}
      controls={report.value ? <Controls report={report.value} page={page} /> : null}
      details={null}
    >
      <Frame source={report} what="usage">
        {(value) => (
          <div className={styles.main}>
            <Sheet
              report={value}
              part={page.part}
              onChoose={
                choose &&
                ((name) => change(changeUsage({ [choose]: name, part: choose === "project" ? "user" : "partition" })))
              }
            />
          </div>
        )}
      </Frame>
    </ViewLayout>
  );
}

const CHOOSABLE = ["project", "user"] as const;

export function UsageStrip({ report }: { report: UsageReport }) {
  const answer = report.parts[0];
  if (answer === undefined) return null;
  const { total } = answer;
  return (
    <Strip>
      <FigureList>
        <FigureTerm name="GPU-hours held" value={formatHours(total.gpu_hours)} />
        <FigureTerm
          name="idle of measured"
          value={formatRatio(idleRatio(total))}
          tip={`${formatHours(total.idle_gpu_hours + total.execution_idle_gpu_hours)} GPU-hours; ${formatHours(
            total.unknown_gpu_hours,
          )} were not measured`}
        />
        <FigureTerm name="CPU-hours" value={formatHours(total.cpu_hours)} />
        <FigureTerm name="jobs" value={formatCount(total.jobs)} />
        <FigureTerm name="active users" value={formatCount(total.users)} />
        <FigureTerm name="median wait" value={formatDuration(total.median_wait_s)} />
        {answer.currency !== null && <FigureTerm name="money" value={formatMoney(total.money, answer.currency)} />}
      </FigureList>
    </Strip>
  );
}

function Controls({ report, page }: { report: UsageReport; page: UsagePage }) {
  const change = useChangeScreen();
  const answer = report.parts[0];
  const parts = report.parts.flatMap(({ by }) => by.slice(0, 1)) as readonly UsagePart[];
  return (
    <div className={styles.controls}>
      <section aria-label="Period">
        <h2>Period</h2>
        <div className={styles.period}>
          <Button
            aria-label={`Before: ${report.previous}`}
            onClick={() => change(changeUsage({ period: report.previous }))}
          >
            ‹
          </Button>
          <strong>{answer?.name}</strong>
          <Button aria-label={`After: ${report.next}`} onClick={() => change(changeUsage({ period: report.next }))}>
            ›
          </Button>
        </div>
        {answer && (
          <p>
            {describePeriod(answer)}, {answer.timezone}
            {answer.until < answer.end && ", so far"}
          </p>
        )}
        <label>
          Length{" "}
          <select
            value={report.kind ?? ""}
            onChange={({ target }) => {
              change(changeUsage({ period: report.kinds.find(({ kind }) => kind === target.value)?.name ?? "" }));
            }}
          >
            {report.kind === null && <option value="">other</option>}
            {report.kinds.map(({ kind }) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
        {page.period !== "" && <Button onClick={() => change(changeUsage({ period: "" }))}>This month</Button>}
      </section>
      <section aria-label="Group by">
        <h2>Group by</h2>
        <ul className={styles.choices}>
          {parts.map((part) => (
            <li key={part}>
              <label>
                <input
                  type="radio"
                  name="usage-part"
                  checked={part === (parts.includes(page.part) ? page.part : parts[0])}
                  onChange={() => change(changeUsage({ part }))}
                />
                {PART_WORDS[part]}
              </label>
            </li>
          ))}
        </ul>
      </section>
      {(page.project !== "" || page.user !== "") && (
        <section aria-label="Only">
          <h2>Only</h2>
          {CHOOSABLE.filter((part) => page[part] !== "").map((part) => (
            <Button key={part} onClick={() => change(changeUsage({ [part]: "", part }))}>
              {PART_WORDS[part]} {page[part]} ×
            </Button>
          ))}
        </section>
      )}
    </div>
  );
}
