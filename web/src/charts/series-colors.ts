// One color per trace or per simulated choice, the same in every chart of a tab.

const COLORS: readonly string[] = [
  "light-dark(#1f6feb, #5aa9ff)",
  "light-dark(#b46a00, #ffb454)",
  "light-dark(#7a4fd0, #b692ff)",
  "light-dark(#14827a, #4fd1c5)",
  "light-dark(#b3368f, #f08ad0)",
  "light-dark(#7e6a07, #facb39)",
  "light-dark(#52606f, #9aa4b2)",
  "light-dark(#a33a1f, #ff9270)",
];

export function colorAt(place: number): string {
  return COLORS[place % COLORS.length] ?? "var(--muted)";
}
