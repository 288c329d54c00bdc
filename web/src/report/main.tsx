// A report: the components of the page on the responses in the file. No server, no address, no live stream.

import "./report.css";
import "../app/theme.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { CrashScreen } from "../app/crash-screen.tsx";
import { createClock } from "../base/clock.ts";
import { createLiveStore } from "../data/live-store.ts";
import { ServicesContext } from "../data/services.ts";
import { createMemoryScreenStore } from "../state/screen-store.ts";
import { ScreenContext } from "../state/use-screen.ts";
import { ClockContext } from "../widgets/clock-context.ts";
import { Message } from "../widgets/frame.tsx";
import { TipLayer } from "../widgets/tip-layer.tsx";
import { type ReportDocument, readReport } from "./document.ts";
import { createReportClient } from "./report-client.ts";
import { ReportPage } from "./report-page.tsx";

/** Nothing changes with time: what is still running ran as long as it had when the report was written. */
const STILL_MS = 2 ** 31 - 1;

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: Number.POSITIVE_INFINITY,
      networkMode: "always",
      retry: false,
    },
  },
});

function Report({ report }: { report: ReportDocument }) {
  const client = createReportClient(report);
  const clock = createClock(() => report.written_at, STILL_MS);
  return (
    <CrashScreen>
      <QueryClientProvider client={queries}>
        <ServicesContext value={{ client, clock, live: createLiveStore(client, clock) }}>
          <ClockContext value={clock}>
            <ScreenContext value={createMemoryScreenStore()}>
              <ReportPage report={report} />
              <TipLayer />
            </ScreenContext>
          </ClockContext>
        </ServicesContext>
      </QueryClientProvider>
    </CrashScreen>
  );
}

// First of all who listen: charts read their width and their colors when paper is asked for.
const { dataset } = document.documentElement;
window.addEventListener("beforeprint", () => {
  dataset.printing = "";
  dataset.theme = "light";
});
window.addEventListener("afterprint", () => {
  delete dataset.printing;
  delete dataset.theme;
});

const root = document.getElementById("root");
if (root === null) throw new Error("report.html has no #root");
const report = readReport(document.getElementById("report")?.textContent ?? "");
createRoot(root).render(
  <StrictMode>
    {report === null ? (
      <Message>This file contains no report; `clusterscape … --html FILE` writes one.</Message>
    ) : (
      <Report report={report} />
    )}
  </StrictMode>,
);
