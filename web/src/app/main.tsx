// Creates the page's objects once and passes them down: client, clock, live store, screen.

import "@fontsource-variable/inter/wght.css";
import "./theme.css";
import { QueryCache, QueryClient } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createNetworkClient } from "../api/network-client.ts";
import { createClock } from "../base/clock.ts";
import { isSignInNeeded, Problem } from "../base/problem.ts";
import { createLiveStore } from "../data/live-store.ts";
import { fetchUnitsEarly } from "../data/units.ts";
import { createScreenStore } from "../state/screen-store.ts";
import { App } from "./app.tsx";
import { createSession, takeFailure } from "./session.ts";
import { applyTheme } from "./theme.ts";
import { VIEWS } from "./views.ts";

const RETRIES = 2;

const client = createNetworkClient();
const clock = createClock(Date.now);
const live = createLiveStore(client, clock);
const session = createSession(takeFailure(window));
const screen = createScreenStore(
  window,
  VIEWS.map((view) => view.name),
);
const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => isSignInNeeded(error) && session.setNeeded(true, hasAnswers()),
  }),
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      networkMode: "always",
      retry: (failures, error) => failures < RETRIES && !isAnswer(error),
    },
  },
});

/** Whether the server has returned cluster data, which it does only for authenticated requests. */
function hasAnswers(): boolean {
  return queries
    .getQueryCache()
    .getAll()
    .some(({ queryKey, state }) => queryKey[0] === "cluster" && state.data !== undefined);
}

/** The server responded with a client error: a retry would return the same. */
function isAnswer(error: unknown): boolean {
  return error instanceof Problem && error.status !== null && error.status < 500;
}

applyTheme();
const { view, at } = screen.read().screen;
if (view === "overview" && at === null) fetchUnitsEarly(queries, client);
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App services={{ client, live, clock }} screen={screen} session={session} queries={queries} />
  </StrictMode>,
);
