// The screen for components, and the function that changes it.

import { createContext, useContext, useSyncExternalStore } from "react";
import type { Screen, ViewName } from "./screen.ts";
import type { ScreenStore } from "./screen-store.ts";

export const ScreenContext = createContext<ScreenStore | null>(null);

export function useScreenStore(): ScreenStore {
  const store = useContext(ScreenContext);
  if (store === null) throw new Error("ScreenContext is not provided");
  return store;
}

export function useScreen(): Screen {
  const store = useScreenStore();
  return useSyncExternalStore(store.subscribe, store.read).screen;
}

export function useLinkNotices(): readonly string[] {
  const store = useScreenStore();
  return useSyncExternalStore(store.subscribe, store.read).notices;
}

export function useChangeScreen(): ScreenStore["change"] {
  return useScreenStore().change;
}

export function useViewNames(): readonly ViewName[] {
  return useScreenStore().views;
}
