// Finds the metrics in a rule's document, a tree of conditions.

export function findMetrics(document: Readonly<Record<string, unknown>>): readonly string[] {
  const metrics = new Set<string>();
  const walk = (part: unknown) => {
    if (Array.isArray(part)) part.forEach(walk);
    else if (typeof part === "object" && part !== null) {
      for (const [key, value] of Object.entries(part)) {
        if (key === "metric" && typeof value === "string") metrics.add(value);
        else walk(value);
      }
    }
  };
  walk(document.expression);
  return [...metrics];
}
