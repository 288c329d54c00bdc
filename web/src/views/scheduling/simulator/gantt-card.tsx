// Gantt chart of a small trace: each job is a rectangle from its start to its end, as high as its size. One choice at a time.

import { useCallback, useRef, useState } from "react";
import type { SimulatedJobs, SimulationAnswer } from "../../../api/generated.ts";
import { Axis } from "../../../charts/axis.tsx";
import { Canvas, useInk, useSize } from "../../../charts/canvas.tsx";
import type { Pen } from "../../../charts/pen.ts";
import { ChartCard } from "../../../parts/charts/chart-card.tsx";
import { Segmented } from "../../../widgets/segmented.tsx";
import { nameUnit } from "../history/words.ts";
import { toTimeAxis } from "./course-cards.tsx";
import styles from "./simulator.module.css";
import { nameChoice } from "./words.ts";

const HEIGHT_PX = 300;
const COLORS = 6;
const INKS = ["#5aa9ff", "#ffb454", "#b692ff", "#4fd1c5", "#f08ad0", "#facb39"];

export function GanttCard({ answer }: { answer: SimulationAnswer }) {
  const choicesWithJobs = answer.choices.filter(({ jobs }) => jobs !== null);
  const [name, setName] = useState("");
  const choice = choicesWithJobs.find((option) => nameChoice(option) === name) ?? choicesWithJobs[0];
  if (!choice?.jobs) return null;
  const { jobs } = choice;
  return (
    <ChartCard
      title="Schedule"
      hint={`each job from its start to its end, as high as the ${nameUnit(answer.size_unit)} it holds; jobs overlap where free units are not adjacent`}
      isWide
      twin={{
        header: ["choice", "job", "submit, s", "start, s", "end, s", answer.size_unit],
        rows: jobs.job.map((job, at) => [
          nameChoice(choice),
          job,
          jobs.submit_s[at],
          jobs.start_s[at],
          jobs.end_s[at],
          jobs.units[at],
        ]),
      }}
    >
      {choicesWithJobs.length > 1 && (
        <div className={styles.row}>
          <Segmented
            label="Schedule of"
            name="schedule-of"
            options={choicesWithJobs.map((option) => ({ value: nameChoice(option), title: nameChoice(option) }))}
            value={nameChoice(choice)}
            onChange={setName}
          />
        </div>
      )}
      <Gantt answer={answer} jobs={jobs} label={`Schedule of ${nameChoice(choice)}`} />
    </ChartCard>
  );
}

function Gantt({ answer, jobs, label }: { answer: SimulationAnswer; jobs: SimulatedJobs; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const size = useSize(place);
  const ink = useInk();
  const times = toTimeAxis(answer);
  const { processors } = answer;
  const draw = useCallback(
    (pen: Pen, { width, height }: { width: number; height: number }) => {
      const { scale, at } = toTimeAxis(answer);
      const unit = height / processors;
      for (let job = 0; job < jobs.job.length; job += 1) {
        const left = scale.place(at(jobs.start_s[job] ?? 0)) * width;
        const right = scale.place(at(jobs.end_s[job] ?? 0)) * width;
        const [lane, units] = [jobs.lane[job] ?? 0, jobs.units[job] ?? 1];
        pen.fillStyle = INKS[job % COLORS] ?? ink("var(--accent)");
        pen.globalAlpha = 0.75;
        pen.fillRect(
          left,
          height - (lane + units) * unit,
          Math.max(0.5, right - left - 0.5),
          Math.max(0.5, units * unit - 0.5),
        );
      }
      pen.globalAlpha = 1;
    },
    [answer, jobs, processors, ink],
  );
  return (
    <>
      <div ref={place} className={styles.gantt} style={{ height: HEIGHT_PX }} role="img" aria-label={label}>
        <Canvas size={size} draw={draw} />
      </div>
      <Axis scale={times.scale} side="below" length={size.width} />
      {times.title && <small className={styles.ganttTitle}>{times.title}</small>}
    </>
  );
}
