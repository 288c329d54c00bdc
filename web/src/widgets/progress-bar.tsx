// A thin progress bar.

/** `value`: from 0 to 1. */
export function ProgressBar({ label, value }: { label: string; value: number }) {
  return <progress style={{ width: 140 }} max={1} value={value} aria-label={label} />;
}
