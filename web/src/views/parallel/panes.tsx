// Side panes of the graph: the selected span, operators, communication and ranks.

import type { TraceAnswer } from "../../api/generated.ts";
import { changeParallel, type NsWindow, type Pane, type ParallelPage } from "../../state/parallel.ts";
import { useChangeScreen } from "../../state/use-screen.ts";
import { IconButton } from "../../widgets/button.tsx";
import { Segmented } from "../../widgets/segmented.tsx";
import { CommunicationPane } from "./details/communication-pane.tsx";
import { OperatorPane } from "./details/operator-table.tsx";
import { RanksPane } from "./details/ranks-pane.tsx";
import { SpanDetails } from "./details/span-details.tsx";
import { padWindow } from "./graph/windows.ts";
import styles from "./parallel.module.css";

export const PANE_OPTIONS: readonly { readonly value: Pane; readonly title: string }[] = [
  { value: "span", title: "Span" },
  { value: "operators", title: "Operators" },
  { value: "communication", title: "Links" },
  { value: "ranks", title: "Ranks" },
];

interface PanesProps {
  readonly answer: TraceAnswer;
  readonly page: ParallelPage;
  readonly window: NsWindow;
  readonly extent: NsWindow;
  readonly originNs: number;
}

export function Panes({ answer, page, window, extent, originNs }: PanesProps) {
  const change = useChangeScreen();
  const set = (changes: Partial<ParallelPage>) => change(changeParallel(changes), "replace");
  const trace = answer.row.trace_id;
  const range = { fromNs: Math.floor(window.fromNs), toNs: Math.ceil(window.toNs) };
  /** Moves the window where the span is not visible. */
  const open = (span: { readonly span: number; readonly start_ns: number; readonly end_ns: number }) => {
    const isVisible = span.end_ns > window.fromNs && span.start_ns < window.toNs;
    set({
      span: span.span,
      ...(isVisible ? {} : { window: padWindow(span.start_ns, span.end_ns, 4, extent) }),
    });
  };
  return (
    <div className={styles.panes}>
      <header>
        <Segmented
          label="Details"
          name="pane"
          options={PANE_OPTIONS}
          value={page.pane}
          onChange={(pane) => set({ pane })}
        />
        <IconButton icon="close" label="Close details" onClick={() => set({ pane: "none" })} />
      </header>
      {page.pane === "span" && (
        <SpanDetails
          trace={trace}
          span={page.span}
          originNs={originNs}
          onOpen={open}
          onFlow={() =>
            change(changeParallel({ drawing: page.drawing === "both" ? "both" : "flow", flow: null, nodes: [] }))
          }
          onZoom={({ arrive_ns, end_ns }) =>
            change(changeParallel({ window: padWindow(arrive_ns, end_ns, 1, extent) }))
          }
        />
      )}
      {page.pane === "operators" && (
        <OperatorPane trace={trace} range={range} text={page.text} onFind={(text) => set({ text })} />
      )}
      {page.pane === "communication" && <CommunicationPane trace={trace} />}
      {page.pane === "ranks" && answer.report && <RanksPane answer={answer} report={answer.report} />}
    </div>
  );
}
