// The icons of the page, on a 16 px grid in the color of the surrounding text.

const PATHS = {
  search: "M7 12.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM11 11l3.5 3.5",
  close: "m4 4 8 8M12 4l-8 8",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9 13 13M3 13l1.1-1.1M11.9 4.1 13 3",
  moon: "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1Z",
  screen: "M2 3h12v8H2zM6 14h4M8 11v3",
  link: "M6.5 9.5a2.8 2.8 0 0 0 4 0l2.2-2.2a2.8 2.8 0 0 0-4-4L8 4M9.5 6.5a2.8 2.8 0 0 0-4 0L3.3 8.7a2.8 2.8 0 0 0 4 4L8 12",
  download: "M8 2v8m0 0L5 7m3 3 3-3M2.5 13.5h11",
  filter: "M2 4h12M4.5 8h7M7 12h2",
  alert: "M8 5v4M8 11.5v.1M8 1.8 15 14H1z",
  check: "m3 8.5 3.2 3L13 4.5",
  retry: "M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 1.5v3h-3",
  workload: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
  user: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM2.5 14a5.5 5.5 0 0 1 11 0",
  project: "M1.5 4h5l1.5 2h6.5v7.5h-13z",
  node: "M2 2.5h12v4H2zM2 9.5h12v4H2zM4.5 4.5h.1M4.5 11.5h.1",
  action: "m9 1.5-5.5 8H8l-1 5 5.5-8H8z",
  play: "M4.5 2.5v11l9-5.5z",
  pause: "M5 3v10M11 3v10",
  recent: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.5V8l2.5 1.5",
  grip: "M6 3.5h.1M10 3.5h.1M6 8h.1M10 8h.1M6 12.5h.1M10 12.5h.1",
  gear: "M8 10.3a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6ZM6.9 1.8h2.2l.3 1.8 1.2.5 1.5-1.1 1.6 1.6-1.1 1.5.5 1.2 1.8.3v2.2l-1.8.3-.5 1.2 1.1 1.5-1.6 1.6-1.5-1.1-1.2.5-.3 1.8H6.9l-.3-1.8-1.2-.5-1.5 1.1-1.6-1.6 1.1-1.5-.5-1.2-1.8-.3V7.6l1.8-.3.5-1.2-1.1-1.5 1.6-1.6 1.5 1.1 1.2-.5z",
  plus: "M8 3v10M3 8h10",
  up: "M8 13V3m0 0L4 7m4-4 4 4",
  down: "M8 3v10m0 0 4-4m-4 4L4 9",
  chevron: "m4 6 4 4 4-4",
  undo: "M3 6h6.5a3.5 3.5 0 0 1 0 7H6M3 6l3-3M3 6l3 3",
  redo: "M13 6H6.5a3.5 3.5 0 0 0 0 7H10M13 6l-3-3M13 6l-3 3",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  star: "m8 1.8 1.9 4 4.3.5-3.2 3 .9 4.3L8 11.5l-3.9 2.1.9-4.3-3.2-3 4.3-.5z",
  upload: "M8 10V2m0 0L5 5m3-3 3 3M2.5 13.5h11",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.1M8 11.2v.1",
  save: "M3 2.5h8l2 2v9H3zM5.5 2.5v3.5h4V2.5M5.5 13.5v-4h5v4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
