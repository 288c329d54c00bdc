// The content of a report file: its subject, when it was written, and the API responses that it shows.

import type {
  DiagnosisAnswer,
  HangReport,
  TraceAnswer,
  TracesDescription,
  UsageReport,
  WorkloadEvent,
} from "../api/generated.ts";

/** An answer that is not JSON: its body packed and written as text, and those of its headers that belong to it. */
export interface RecordedTables {
  /** Base64 of gzip. */
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface JobTracesAnswers {
  readonly description: TracesDescription;
}

export interface DiagnosisAnswers {
  readonly diagnosis: DiagnosisAnswer;
  readonly events: readonly WorkloadEvent[];
  /** Null: the metric has no samples. */
  readonly histograms: RecordedTables | null;
  readonly lines: RecordedTables | null;
  /** Those that `lines` are of. */
  readonly metrics: readonly string[];
}

/** A part of a trace's Marey graph. */
export interface RecordedGraph {
  readonly marey: RecordedTables;
  readonly from_ns: number;
  readonly to_ns: number;
}

export interface TraceAnswers {
  readonly trace: TraceAnswer;
  readonly steps: RecordedTables | null;
  /** Of the step of median length; null: there is nothing to draw, or too much. */
  readonly graph: RecordedGraph | null;
}

export interface HangAnswers {
  readonly report: HangReport;
}

export interface UsageAnswers {
  readonly report: UsageReport;
}

interface Head {
  readonly title: string;
  /** Unix ms. */
  readonly written_at: number;
  /** Of ClusterScape. */
  readonly version: string;
}

export type ReportDocument = Head &
  (
    | { readonly kind: "job-traces"; readonly answers: JobTracesAnswers }
    | { readonly kind: "diagnosis"; readonly answers: DiagnosisAnswers }
    | { readonly kind: "hang"; readonly answers: HangAnswers }
    | { readonly kind: "trace"; readonly answers: TraceAnswers }
    | { readonly kind: "usage"; readonly answers: UsageAnswers }
  );

/** Null: the file is the empty page that reports are made from. */
export function readReport(text: string): ReportDocument | null {
  return text.trim() === "" ? null : (JSON.parse(text) as ReportDocument);
}

export async function unpackTables({ body }: RecordedTables): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
