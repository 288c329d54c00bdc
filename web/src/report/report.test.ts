import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";
import lengths from "../api/fixtures/marey.json" with { type: "json" };
import type { DiagnosedUnit, DiagnosisAnswer, TraceAnswer } from "../api/generated.ts";
import { keepRecorded, openPage, plotsHeight } from "./diagnosis-report.tsx";
import { type RecordedTables, type ReportDocument, readReport, unpackTables } from "./document.ts";
import { createReportClient } from "./report-client.ts";

const HEAD = { title: "Report", written_at: 1_700_000_000_000, version: "1.0" };

function record(bytes: Uint8Array, headers: Readonly<Record<string, string>> = {}): RecordedTables {
  return { body: gzipSync(bytes).toString("base64"), headers };
}

function toBytes(arrays: Record<string, readonly unknown[]>): Uint8Array {
  return tableToIPC(tableFromArrays(arrays as Record<string, unknown[]>), { format: "stream" }) ?? new Uint8Array();
}

describe("a report's document", () => {
  it("is read from the page, which may be empty", () => {
    const document: ReportDocument = {
      ...HEAD,
      kind: "job-traces",
      answers: { description: { claims: [], level: 0.95, seed: 0, timezone: "UTC", traces: [] } },
    };
    expect(readReport(`\n${JSON.stringify(document).replaceAll("<", "\\u003c")}`)).toEqual(document);
    expect(readReport(" \n")).toBeNull();
  });

  it("has its tables as they were", async () => {
    const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 31) % 256);
    expect(await unpackTables(record(bytes))).toEqual(bytes);
  });
});

describe("the client of a diagnosis report", () => {
  const diagnosis = { workload: "slurm:1" } as DiagnosisAnswer;
  const client = createReportClient({
    ...HEAD,
    kind: "diagnosis",
    answers: {
      diagnosis,
      events: [],
      histograms: record(toBytes({ unit: ["a", "b"], b0: [3, 0], b1: [1, 4] }), { "x-domain": "[0, 2]" }),
      lines: record(
        toBytes({
          metric: ["power", "power", "util"],
          unit: ["a", "a", "a"],
          time_ms: [1, 2, 1],
          value: [10, 20, 0.5],
        }),
      ),
      metrics: ["power", "util"],
    },
  }).diagnosis;
  const span = { startMs: null, endMs: null };

  it("answers with what was recorded", async () => {
    const { low, high, counts } = await client.histograms("slurm:1", "power", span, 2);
    expect([low, high, [...(counts.get("b") ?? [])]]).toEqual([0, 2, [0, 4]]);
    expect(await client.events("slurm:1", span)).toEqual([]);
  });

  it("gives the lines of the metrics that are asked for", async () => {
    const query = { ...span, metrics: ["util"], units: [], points: 100, summary: "none" } as const;
    const lines = await client.lines("slurm:1", query);
    expect(lines.map(({ metric, unit, values }) => [metric, unit, ...values])).toEqual([["util", "a", 0.5]]);
  });

  it("has no answer to what was not recorded", async () => {
    const comparing = { metric: null, by: "histogram", maxLag: 0, linkage: "average", count: null } as const;
    const query = { ...span, ...comparing, x: "a", y: "b", units: [], isRobust: false, significance: 0.001, most: 10 };
    await expect(client.scatter("slurm:1", query)).rejects.toThrow("The report has no response");
  });
});

describe("the client of a trace report", () => {
  it("has rows that cannot be opened: what is inside was not recorded", async () => {
    const bytes = readFileSync(new URL("../api/fixtures/marey.arrow", import.meta.url));
    const marey = record(bytes, lengths);
    const { traces } = createReportClient({
      ...HEAD,
      kind: "trace",
      answers: { trace: {} as TraceAnswer, steps: null, graph: { marey, from_ns: 0, to_ns: 1 } },
    });
    const query = { level: "rank", open: [], fromNs: 0, toNs: 1, pixels: 10, classes: [], merge: "gap" };
    const { rows, spans } = await traces.marey("report", query);
    expect(spans.count).toBeGreaterThan(0);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.some(({ canOpen }) => canOpen)).toBe(false);
    await expect(traces.steps("report")).rejects.toThrow("The report has no response");
  });
});

describe("a diagnosis report", () => {
  it("opens as it was asked for", () => {
    const window = { start: 1000, end: 61_000 };
    const page = openPage({ workload: "slurm:1", metric: "power_watts", window, by: "euclidean" }, ["power_watts"]);
    expect(page).toMatchObject({
      workload: "slurm:1",
      metric: "power_watts",
      window: { fromMs: 1000, toMs: 61_000 },
      distance: "euclidean",
      lines: ["power_watts"],
    });
  });

  it("takes only changes that need no other answer", () => {
    expect(keepRecorded({ units: ["a"], metric: "other", window: null, brush: null })).toEqual({ units: ["a"] });
    expect(keepRecorded({ arrangement: "cluster", plot: "table", count: 3 })).toEqual({
      arrangement: "cluster",
      plot: "table",
    });
  });

  it("has room for every node, up to a screen", () => {
    const on = (nodes: number, each: number) => ({
      units: Array.from({ length: nodes * each }, (_, at) => ({ node: `n${at % nodes}` }) as DiagnosedUnit),
    });
    expect(plotsHeight(on(1, 1))).toBeLessThan(plotsHeight(on(8, 8)));
    expect(plotsHeight(on(1000, 8))).toBeLessThanOrEqual(900);
  });
});
