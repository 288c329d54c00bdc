// Tables as CSV (RFC 4180). Does not know where the rows come from nor how the file is saved.

export type CsvValue = string | number | null | undefined;

/** Spreadsheets run a cell that begins with one of these as a formula; names are other people's input. */
const FORMULA_START = /^[=+\-@\t\r]/;

export function formatCsv(header: readonly string[], rows: Iterable<readonly CsvValue[]>): string {
  const lines = [header.map(escapeCell).join(",")];
  for (const row of rows) lines.push(row.map(escapeCell).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function escapeCell(value: CsvValue): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = FORMULA_START.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
