// Which metrics a rule looks at. Its document is a tree of conditions; only their metrics matter here.

export function findMetrics(document: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set<string>();
  const walk = (part: unknown) => {
    if (Array.isArray(part)) part.forEach(walk);
    else if (typeof part === "object" && part !== null) {
      for (const [key, value] of Object.entries(part)) {
        if (key === "metric" && typeof value === "string") found.add(value);
        else walk(value);
      }
    }
  };
  walk(document.expression);
  return [...found];
}
