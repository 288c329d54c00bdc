// The client of a report: answers the requests of its charts from the file; other requests fail.

import type { Client } from "../api/client.ts";
import { decodeColumns } from "../api/columns.ts";
import { toHistograms } from "../api/diagnosis-client.ts";
import { type Marey, toMarey } from "../api/marey.ts";
import { type SeriesLine, toSeriesLines } from "../api/series.ts";
import { createStaticClient } from "../api/static-client.ts";
import { splitTables, toSteps } from "../api/traces-client.ts";
import {
  type DiagnosisAnswers,
  type RecordedTables,
  type ReportDocument,
  type TraceAnswers,
  unpackTables,
} from "./document.ts";

export function createReportClient(report: ReportDocument): Client {
  const none = createStaticClient({});
  switch (report.kind) {
    case "job-traces":
    case "hang":
    case "usage":
      return none;
    case "diagnosis":
      return createStaticClient({ diagnosis: { ...none.diagnosis, ...answerDiagnosis(report.answers) } });
    case "trace":
      return createStaticClient({ traces: { ...none.traces, ...answerTrace(report.answers) } });
  }
}

function answerDiagnosis({ diagnosis, events, histograms, lines }: DiagnosisAnswers): Partial<Client["diagnosis"]> {
  const readLines = once(async (): Promise<readonly SeriesLine[]> => {
    return lines === null ? [] : toSeriesLines(decodeColumns(await unpackTables(lines)));
  });
  return {
    diagnosis: async () => diagnosis,
    events: async () => events,
    ...(histograms
      ? {
          histograms: once(async () => {
            return toHistograms(decodeColumns(await unpackTables(histograms)), findHeader(histograms, "X-Domain"));
          }),
        }
      : {}),
    lines: async (_workload, { metrics }) => (await readLines()).filter(({ metric }) => metrics.includes(metric)),
  };
}

function answerTrace({ trace, steps, graph }: TraceAnswers): Partial<Client["traces"]> {
  return {
    trace: async () => trace,
    ...(steps ? { steps: once(async () => toSteps(decodeColumns(await unpackTables(steps)))) } : {}),
    ...(graph ? { marey: once(() => readGraph(graph.marey)) } : {}),
  };
}

async function readGraph(tables: RecordedTables): Promise<Marey> {
  const [spans, rows, bands] = splitTables(await unpackTables(tables), findHeader(tables, "X-Tables"));
  if (!spans || !rows || !bands) throw new Error("The graph of this report is incomplete: three tables are needed.");
  const marey = toMarey(spans, rows, bands);
  // What is inside a row was not recorded.
  return { ...marey, rows: marey.rows.map((row) => ({ ...row, canOpen: false })) };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined;
  return () => {
    cached ??= read();
    return cached;
  };
}

/** Names of headers have no case, and proxies change it. */
function findHeader({ headers }: RecordedTables, name: string): string | null {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1] ?? null;
}
