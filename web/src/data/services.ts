// The objects that data hooks use: client, live store, clock. Created by app.

import { createContext, useContext, useSyncExternalStore } from "react";
import type { Client } from "../api/client.ts";
import type { Clock } from "../base/clock.ts";
import type { LiveState, LiveStore } from "./live-store.ts";

export interface Services {
  readonly client: Client;
  readonly live: LiveStore;
  readonly clock: Clock;
}

export const ServicesContext = createContext<Services | null>(null);

export function useServices(): Services {
  const services = useContext(ServicesContext);
  if (services === null) throw new Error("ServicesContext is not provided");
  return services;
}

export function useLive(): LiveState {
  const { live } = useServices();
  return useSyncExternalStore(live.subscribe, live.read);
}
