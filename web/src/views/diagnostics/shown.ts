// What the page shows now: which time, and how it is changed. In a comparison the second column is changed apart.

import { createContext, useContext } from "react";
import type { DiagnosisAnswer } from "../../api/generated.ts";
import { changeDiagnostics, type DiagnosticsPage } from "../../state/diagnostics.ts";
import type { Step } from "../../state/screen-store.ts";
import { useChangeScreen } from "../../state/use-screen.ts";

export type SetPage = (changes: Partial<DiagnosticsPage>, step?: Step) => void;

/** Null: the page's own. */
export const SetPageContext = createContext<SetPage | null>(null);

export function useSetPage(): SetPage {
  const change = useChangeScreen();
  const own = useContext(SetPageContext);
  return own ?? ((changes, step) => change(changeDiagnostics(changes), step));
}

/** The window the reader asked for, also while the answer to it is on its way. */
export function findShown({ life, window }: DiagnosisAnswer, page: Pick<DiagnosticsPage, "window">) {
  const all = life ?? window;
  const startMs = all?.start ?? 0;
  return { startMs: Math.max(startMs, page.window?.fromMs ?? startMs), endMs: page.window?.toMs ?? all?.end ?? 1 };
}
