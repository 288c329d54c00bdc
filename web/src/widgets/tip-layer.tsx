// One tooltip for the whole page: shows `data-tip` of the hovered or focused element, so that a tooltip costs one
// attribute.

import { useEffect, useState } from "react";
import styles from "./tip-layer.module.css";

interface Tip {
  readonly text: string;
  readonly left: number;
  readonly top: number;
  readonly isAbove: boolean;
}

const DELAY_MS = 350;
const EDGE_PX = 140;

export function TipLayer() {
  const [tip, setTip] = useState<Tip | null>(null);
  useEffect(() => watchTips(setTip), []);
  if (tip === null) return null;
  return (
    <div
      role="tooltip"
      className={styles.tip}
      data-above={tip.isAbove || undefined}
      style={{ left: tip.left, top: tip.top }}
    >
      {tip.text}
    </div>
  );
}

function watchTips(show: (tip: Tip | null) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let target: Element | null = null;
  const leave = () => {
    clearTimeout(timer);
    target = null;
    show(null);
  };
  const enter = (event: Event) => {
    const element = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (element === target) return;
    leave();
    if (element === null) return;
    target = element;
    timer = setTimeout(() => element.isConnected && show(placeTip(element)), DELAY_MS);
  };
  const listeners = [
    ["pointerover", enter],
    ["focusin", enter],
    ["focusout", leave],
    ["pointerdown", leave],
    ["keydown", leave],
    ["wheel", leave],
  ] as const;
  for (const [name, listener] of listeners) document.addEventListener(name, listener, { passive: true });
  return () => {
    clearTimeout(timer);
    for (const [name, listener] of listeners) document.removeEventListener(name, listener);
  };
}

function placeTip(target: Element): Tip {
  const box = target.getBoundingClientRect();
  const middle = box.left + box.width / 2;
  const isAbove = box.bottom + 48 > window.innerHeight;
  return {
    text: target.getAttribute("data-tip") ?? "",
    left: Math.min(Math.max(middle, EDGE_PX), Math.max(EDGE_PX, window.innerWidth - EDGE_PX)),
    top: isAbove ? box.top - 6 : box.bottom + 6,
    isAbove,
  };
}
