// Labels of the rules page.

import type { Severity } from "../../api/generated.ts";
import type { Span, ViolationState } from "../../state/violations.ts";
import type { Tone } from "../../widgets/tag.tsx";

export const SPAN_WORDS: Readonly<Record<Span, string>> = { "2h": "2 h", "24h": "24 h", "7d": "7 d", "30d": "30 d" };

export const STATE_WORDS: Readonly<Record<ViolationState, string>> = {
  all: "All",
  now: "Now",
  past: "Past",
  muted: "Muted",
};

export const SEVERITY_TONES: Readonly<Record<Severity, Tone>> = { critical: "bad", warning: "warn", info: "accent" };

export const UNKNOWN_NAME = "unknown";

export { formatHours } from "../../base/format.ts";
export { nativeId } from "../../base/workload-id.ts";
