// Menu that selects what to compare with: another workload, or another window of the same one.

import type { DiagnosisAnswer } from "../../api/generated.ts";
import { useWorkloads } from "../../data/queries.ts";
import { type Compared, changeDiagnostics, type DiagnosticsPage, toWindow } from "../../state/diagnostics.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { Choice } from "./choice.tsx";

const RUNNING = ["running"] as const;
const MAX_WORKLOADS = 40;

export function CompareMenu({ answer, page }: { answer: DiagnosisAnswer; page: DiagnosticsPage }) {
  const change = useChangeScreen();
  const others = useWorkloads(RUNNING, true).value?.workloads ?? [];
  const windows = listWindows(answer);
  const listed = others
    .filter(({ workload, gpus_requested }) => workload !== answer.workload && gpus_requested > 1)
    .sort((a, b) => b.gpus_requested - a.gpus_requested)
    .slice(0, MAX_WORKLOADS);
  const options: { value: string; title: string; compared: Compared | null }[] = [
    { value: "", title: "nothing", compared: null },
    ...windows.map(({ title, window }) => ({
      value: title,
      title,
      compared: { kind: "window" as const, window },
    })),
    ...listed.map(({ workload, name, gpus_requested }) => ({
      value: workload,
      title: `${name ?? workload} (${gpus_requested} GPUs)`,
      compared: { kind: "workload" as const, workload },
    })),
  ];
  const current = options.find(({ compared }) => JSON.stringify(compared) === JSON.stringify(page.compared));
  const linkOption = current ? [] : [{ value: "held", title: "as in the link", compared: page.compared }];
  const all = [...options, ...linkOption];
  return (
    <Choice
      label="Compare with"
      prefix="compare with"
      value={current?.value ?? "held"}
      options={all}
      onChange={(value) =>
        change(changeDiagnostics({ compared: all.find((option) => option.value === value)?.compared ?? null }))
      }
    />
  );
}

/** The windows before and after, of the same length; the two halves where the window is the whole life. */
function listWindows({ life, window }: DiagnosisAnswer) {
  if (life === null || window === null) return [];
  const length = window.end - window.start;
  const middle = (life.start + life.end) / 2;
  const isWhole = length >= 0.98 * (life.end - life.start);
  const candidates = isWhole
    ? [
        { title: "its first half", start: life.start, end: middle },
        { title: "its second half", start: middle, end: life.end },
      ]
    : [
        { title: "the window before", start: Math.max(life.start, window.start - length), end: window.start },
        { title: "the window after", start: window.end, end: Math.min(life.end, window.end + length) },
      ];
  return candidates
    .filter(({ start, end }) => end - start >= 60_000)
    .map(({ title, start, end }) => ({ title, window: toWindow(start, end) }));
}
