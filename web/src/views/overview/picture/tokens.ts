// The page's colors as numbers, for what is drawn and not styled. Follows the theme.

import { useEffect, useState } from "react";
import type { PackedColor } from "../../../layers/squares/marks.ts";

const TOKENS = ["bg", "panel", "raised", "line", "text", "muted", "faint", "accent", "bad"] as const;
export type Token = (typeof TOKENS)[number];

export type Tokens = Readonly<Record<Token, PackedColor>>;

export function useTokens(): Tokens {
  const [tokens, setTokens] = useState(readTokens);
  useEffect(() => {
    const read = () => setTokens(readTokens());
    const scheme = window.matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(read);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    scheme.addEventListener("change", read);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", read);
    };
  }, []);
  return tokens;
}

/** A custom property is only text; the color it stands for is that of an element that has it. */
function readTokens(): Tokens {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (token: Token): PackedColor => {
    probe.style.color = `var(--${token})`;
    return parseColor(getComputedStyle(probe).color);
  };
  const tokens: Record<Token, PackedColor> = {
    bg: read("bg"),
    panel: read("panel"),
    raised: read("raised"),
    line: read("line"),
    text: read("text"),
    muted: read("muted"),
    faint: read("faint"),
    accent: read("accent"),
    bad: read("bad"),
  };
  probe.remove();
  return tokens;
}

/** `rgb(1, 2, 3)` and `rgb(1 2 3)`; black where it is neither. */
export function parseColor(css: string): PackedColor {
  const [red = 0, green = 0, blue = 0] = (css.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  return (Math.round(red) << 16) | (Math.round(green) << 8) | Math.round(blue);
}

export function toCss(color: PackedColor): string {
  return `#${color.toString(16).padStart(6, "0")}`;
}
