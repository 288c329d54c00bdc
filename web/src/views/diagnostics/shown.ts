// The shown window, and how panels change the page. In a comparison, the second column has its own state.

import { createContext, useContext } from "react";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import { changeDiagnostics, type DiagnosticsPage } from "../../state/diagnostics.ts";
import type { Step } from "../../state/screen-store.ts";
import { useChangeScreen } from "../../state/use-screen.ts";

export type SetPage = (changes: Partial<DiagnosticsPage>, step?: Step) => void;

/** Null: changes apply to the page. */
export const SetPageContext = createContext<SetPage | null>(null);

/** Whether responses are recorded, as in a report: other metrics, windows and comparisons are not available. */
export const RecordedContext = createContext(false);

export function useIsRecorded(): boolean {
  return useContext(RecordedContext);
}

export function useSetPage(): SetPage {
  const change = useChangeScreen();
  const override = useContext(SetPageContext);
  return override ?? ((changes, step) => change(changeDiagnostics(changes), step));
}

/** The requested window, even while its response is loading. */
export function findShownWindow({ life, window }: DiagnosisAnswer, page: Pick<DiagnosticsPage, "window">) {
  const all = life ?? window;
  const startMs = all?.start ?? 0;
  return { startMs: Math.max(startMs, page.window?.fromMs ?? startMs), endMs: page.window?.toMs ?? all?.end ?? 1 };
}
