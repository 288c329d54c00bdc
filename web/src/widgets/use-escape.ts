// Escape closes side panels, unless the focused element handles it.

import { useEffect, useEffectEvent } from "react";

export function useEscape(onEscape: () => void): void {
  const close = useEffectEvent(onEscape);
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isElsewhere =
        event.target instanceof Element && event.target.closest("input, textarea, select, [role=dialog]") !== null;
      if (event.key === "Escape" && !event.defaultPrevented && !isElsewhere) close();
    };
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
}
